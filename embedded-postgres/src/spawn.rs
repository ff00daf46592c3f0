//! What a child does between `fork` and `exec`. The only unsafe code of this room.
#![expect(
    unsafe_code,
    reason = "`pre_exec` is the only way to set a parent-death signal without a second program"
)]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, getegid, geteuid, getpid, getppid, write};

use crate::identity::{Identity, MAPPED_ID};

/// Makes the child receive SIGTERM when the calling **thread** ends, however it ends.
///
/// The kernel ties this signal to the thread that starts the child, not to the process: start
/// the command from a thread that lives as long as the child should, never from a pool.
pub fn end_with_this_thread(command: &mut Command) {
    prepare(command, Signal::SIGTERM, Identity::Own);
}

/// As [`end_with_this_thread`], with another signal and in a user namespace if need be.
///
/// The child also starts with no signal blocked: a supervisor may block signals to read them
/// from a descriptor, and its children would inherit that.
pub(crate) fn prepare(command: &mut Command, on_parent_death: Signal, identity: Identity) {
    let parent = getpid();
    let maps = match identity {
        Identity::Own => None,
        Identity::Mapped { .. } => Some(Maps::of_this_process()),
    };
    let child = move || -> io::Result<()> {
        if let Some(maps) = &maps {
            maps.enter()?;
        }
        SigSet::empty().thread_set_mask()?;
        // After the namespace, because a change of credentials clears it.
        set_pdeathsig(on_parent_death)?;
        die_if_orphaned(parent)
    };
    // SAFETY: the closure runs in the forked child and may only do what is async-signal-safe. It
    // makes system calls on values prepared before the fork and on literals; it does not allocate,
    // lock, or touch the parent's memory. `io::Error` from an errno does not allocate either.
    unsafe { command.pre_exec(child) };
}

/// The parent may have died before the signal was set; then it would never come.
fn die_if_orphaned(parent: Pid) -> io::Result<()> {
    if getppid() == parent {
        Ok(())
    } else {
        Err(Errno::ESRCH.into())
    }
}

/// The contents of `uid_map` and `gid_map`, written down before the fork.
struct Maps {
    uid: String,
    gid: String,
}

impl Maps {
    fn of_this_process() -> Self {
        Self {
            uid: format!("{MAPPED_ID} {} 1", geteuid()),
            gid: format!("{MAPPED_ID} {} 1", getegid()),
        }
    }

    fn enter(&self) -> io::Result<()> {
        unshare(CloneFlags::CLONE_NEWUSER)?;
        write_proc("/proc/self/setgroups", b"deny")?;
        write_proc("/proc/self/gid_map", self.gid.as_bytes())?;
        write_proc("/proc/self/uid_map", self.uid.as_bytes())
    }
}

fn write_proc(path: &str, content: &[u8]) -> io::Result<()> {
    let file = open(path, OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty())?;
    write(&file, content)?;
    Ok(())
}

/// Whether an error of a mapped child's start came from the namespace and not from `exec`.
pub(crate) fn is_namespace_refusal(error: &io::Error) -> bool {
    let refusals = [
        Errno::EPERM,
        Errno::ENOSPC,
        Errno::EUSERS,
        Errno::EINVAL,
        Errno::ENOSYS,
    ];
    refusals
        .iter()
        .any(|&errno| error.raw_os_error() == Some(errno as i32))
}
