//! The stage between the driver and `bwrap`, run as its own single-threaded process.
//!
//! It reads one plan from standard input, gives up privileges and becomes `bwrap`. Standard input
//! stays the socket over which the supervisor inside hands out its own.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use nix::sched::{CloneFlags, unshare};
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};
use rustix::fs::{CWD, Mode};
use rustix::io::{Errno, FdFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount,
    mount_change, move_mount, open_tree, unmount,
};
use rustix::process::{Signal, set_parent_process_death_signal};
use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

use super::arguments::{Sources, arguments, etc_files};
use super::inputs::in_memory;
use crate::wire::{
    INIT_ARGUMENT, INIT_PATH, Incoming, LaunchPlan, ORDER_MAX, order, read_frame, receive_fds,
};

/// Where the helper gathers what `bwrap` shall bind, in a mount namespace of its own. Every Linux
/// root has it, and nothing below it is shown inside.
const STAGE: &str = "/run";
/// Largest file a process inside may write.
const FILE_SIZE_MAX: u64 = 1 << 30;
/// Open descriptors of a process inside.
const OPEN_FILES_MAX: u64 = 4096;
/// Locked memory of a process inside.
const LOCKED_MEMORY_MAX: u64 = 64 * 1024;
/// The kernel should kill inside a sandbox before it kills the runner.
const OOM_SCORE_ADJUST: &str = "500";

/// Becomes `bwrap` or ends with a message on standard error.
pub(crate) fn main() -> ! {
    let error = match become_bwrap() {
        Ok(never) => match never {},
        Err(error) => error,
    };
    eprintln!("sandbox-launch: {error}");
    std::process::exit(71)
}

fn become_bwrap() -> io::Result<std::convert::Infallible> {
    at("closing inherited descriptors", close_inherited())?;
    let (plan, filter) = receive_plan()?;
    for procs in &plan.cgroups {
        at(procs.display(), fs::write(procs, "0"))?;
    }
    at(
        "oom_score_adj",
        fs::write("/proc/self/oom_score_adj", OOM_SCORE_ADJUST),
    )?;
    let sources = match plan.uid {
        Some(_) => at("gathering the mounts", stage(&plan))?,
        None => Sources::direct(&plan),
    };
    limit_resources(&plan)?;
    if let Some(uid) = plan.uid {
        drop_privileges(uid)?;
    }
    rustix::process::umask(Mode::from_raw_mode(0o077));
    hear_signals()?;
    die_with(plan.parent)?;
    exec(&plan, &sources, filter)
}

/// A signal that is ignored stays ignored by whatever is executed, and a runner that somebody started in
/// the background of a script ignores interrupts: no step would ever hear one. A signal with a handler
/// has its default meaning again after `exec`, so each gets one.
fn hear_signals() -> io::Result<()> {
    let unused = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM] {
        signal_hook::flag::register(signal, Arc::clone(&unused))?;
    }
    Ok(())
}

/// The runner can hold descriptors that are not close-on-exec, its own or inherited ones; `bwrap`
/// would hand them to the steps.
fn close_inherited() -> io::Result<()> {
    let entries = fs::read_dir("/proc/self/fd")?;
    let number = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    let numbers: Vec<i32> = entries.filter_map(number).collect();
    for number in numbers.into_iter().filter(|number| *number > 2) {
        match nix::unistd::close(number) {
            // The listing itself was one of them.
            Ok(()) | Err(nix::errno::Errno::EBADF) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn receive_plan() -> io::Result<(LaunchPlan, OwnedFd)> {
    let mut socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut payload = Vec::new();
    match read_frame(&mut socket, &mut payload, ORDER_MAX)? {
        Incoming::Frame(order::LAUNCH) => {}
        other => {
            return Err(io::Error::other(format!(
                "expected a plan, found {other:?}"
            )));
        }
    }
    let plan = serde_json::from_slice(&payload).map_err(io::Error::other)?;
    let filter = receive_fds(&socket, 1)?
        .pop()
        .ok_or(io::ErrorKind::InvalidData)?;
    Ok((plan, filter))
}

/// Binds every source below [`STAGE`], so that the slot's user reaches it without being allowed
/// into the runner's own directories.
fn stage(plan: &LaunchPlan) -> io::Result<Sources> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount_change(
        "/",
        MountPropagationFlags::REC | MountPropagationFlags::PRIVATE,
    )?;
    // `bwrap` reads the whole list of mounts for each one it makes, and half of it is here.
    match unmount("/sys", UnmountFlags::DETACH) {
        Ok(()) | Err(Errno::INVAL | Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let clone = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let open = |path: &Path| at(path.display(), open_tree(CWD, path, clone));
    let helper = open(&plan.helper)?;
    let directories = plan.directories.iter().map(|(host, _)| open(host));
    let directories = directories.collect::<io::Result<Vec<_>>>()?;

    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", STAGE, "tmpfs", flags, Some(c"mode=0755,size=64k"))?;
    let attach = |tree: &OwnedFd, place: &Path| {
        move_mount(
            tree,
            "",
            CWD,
            place,
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
        )
    };
    let helper_place = Path::new(STAGE).join("init");
    File::create(&helper_place)?;
    attach(&helper, &helper_place)?;
    let mut places = Vec::new();
    for (number, tree) in directories.iter().enumerate() {
        let place = PathBuf::from(format!("{STAGE}/{number}"));
        fs::create_dir(&place)?;
        attach(tree, &place)?;
        places.push(place);
    }
    Ok(Sources {
        helper: helper_place,
        directories: places,
    })
}

fn limit_resources(plan: &LaunchPlan) -> io::Result<()> {
    for (resource, limit) in [
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_NOFILE, OPEN_FILES_MAX),
        (
            Resource::RLIMIT_FSIZE,
            FILE_SIZE_MAX.max(plan.workspace_bytes),
        ),
        (Resource::RLIMIT_MEMLOCK, LOCKED_MEMORY_MAX),
        (Resource::RLIMIT_MSGQUEUE, 0),
    ] {
        at(format!("{resource:?}"), setrlimit(resource, limit, limit))?;
    }
    // A second fence behind the cgroup, which must be met first because it is what gets counted.
    // As a plain user this counts the user's own processes too.
    if plan.uid.is_some() {
        let processes = u64::from(plan.pids) * 2;
        setrlimit(Resource::RLIMIT_NPROC, processes, processes)?;
    }
    Ok(())
}

fn drop_privileges(uid: u32) -> io::Result<()> {
    let (user, group) = (Uid::from_raw(uid), Gid::from_raw(uid));
    at("setgroups", setgroups(&[]))?;
    at("setresgid", setresgid(group, group, group))?;
    at("setresuid", setresuid(user, user, user))?;
    // The kernel must have taken every way back.
    if setresuid(Uid::from_raw(0), Uid::from_raw(0), Uid::from_raw(0)).is_ok() {
        return Err(io::Error::other("root could be taken back"));
    }
    Ok(())
}

/// Must come after the change of user, which clears the setting.
fn die_with(parent: i32) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let now = rustix::process::getppid().map(rustix::process::Pid::as_raw_pid);
    if now == Some(parent) {
        Ok(())
    } else {
        Err(io::Error::other("the runner is gone"))
    }
}

fn exec(
    plan: &LaunchPlan,
    sources: &Sources,
    filter: OwnedFd,
) -> io::Result<std::convert::Infallible> {
    let mut inherited = vec![filter];
    for (_, content) in etc_files() {
        inherited.push(in_memory("etc", content.as_bytes())?);
    }
    let numbers: Vec<i32> = inherited.iter().map(AsRawFd::as_raw_fd).collect();
    let text = join_with_nul(&arguments(plan, sources, &numbers));
    inherited.push(in_memory("arguments", &text)?);
    let last = inherited.last().map(AsRawFd::as_raw_fd).unwrap_or_default();
    for fd in &inherited {
        rustix::io::fcntl_setfd(fd, FdFlags::empty())?;
    }
    // Anyone inside can read the argument list of PID 1, so the arguments go by descriptor.
    let error = Command::new(&plan.bwrap)
        .env_clear()
        .current_dir("/")
        .arg("--args")
        .arg(last.to_string())
        .args(["--", INIT_PATH, INIT_ARGUMENT])
        .exec();
    at(plan.bwrap.display(), Err(error))
}

fn join_with_nul(arguments: &[OsString]) -> Vec<u8> {
    let mut text = Vec::new();
    for argument in arguments {
        text.extend_from_slice(argument.as_encoded_bytes());
        text.push(0);
    }
    text
}

fn at<T, E: Into<io::Error>>(what: impl std::fmt::Display, result: Result<T, E>) -> io::Result<T> {
    result.map_err(|error| {
        let error = error.into();
        io::Error::new(error.kind(), format!("{what}: {error}"))
    })
}
