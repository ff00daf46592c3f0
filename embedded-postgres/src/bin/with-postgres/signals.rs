//! Passing signals on to the command.

use std::io;
use std::process::{Child, ExitStatus};

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;

/// The signals that this program handles, read one by one instead of by a handler.
pub(crate) struct Signals {
    set: SigSet,
    file: SignalFd,
}

/// The code of a signal that the terminal sent, and not another process.
const FROM_KERNEL: i32 = 0x80;

impl Signals {
    pub(crate) fn block() -> Result<Self, Errno> {
        let mut set = SigSet::empty();
        for signal in [
            Signal::SIGINT,
            Signal::SIGTERM,
            Signal::SIGHUP,
            Signal::SIGCHLD,
        ] {
            set.add(signal);
        }
        set.thread_block()?;
        let file = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC)?;
        Ok(Self { set, file })
    }

    /// A signal to end that came while the server was starting.
    pub(crate) fn ended_early(&self) -> Result<Option<Signal>, Errno> {
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let pending = SignalFd::with_flags(&self.set, flags)?;
        while let Some(info) = pending.read_signal()? {
            let signal = signal_of(info.ssi_signo)?;
            if signal != Signal::SIGCHLD {
                return Ok(Some(signal));
            }
        }
        Ok(None)
    }

    /// One thread reads both "a child ended" and "pass this on", so a signal can never go to a
    /// pid that was just given away.
    pub(crate) fn forward_until_the_end_of(&self, mut child: Child) -> io::Result<ExitStatus> {
        let pid = Pid::from_raw(child.id().cast_signed());
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            let Some(info) = self.file.read_signal()? else {
                continue;
            };
            let signal = signal_of(info.ssi_signo)?;
            // A Ctrl-C reaches the command from the terminal itself. Twice would mean "at once" to
            // many programs.
            if signal != Signal::SIGCHLD && info.ssi_code != FROM_KERNEL {
                kill(pid, signal)?;
            }
        }
    }
}

fn signal_of(number: u32) -> Result<Signal, Errno> {
    Signal::try_from(number.cast_signed())
}
