//! The smallest program with a limited process in it, and a probe that tells what is left to a
//! process that has limited itself. Tests start it; nothing else does.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::process::{Command, ExitCode};

use stackship_policy::helper::{
    CPU_SECONDS_MAX, EvaluationThread, NotConfined, confine_process, confine_threads,
};

fn main() -> ExitCode {
    stackship_policy::run_helper_if_asked();
    match confine_process(CPU_SECONDS_MAX).and_then(|()| EvaluationThread::run(probe)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("policy-trial: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Says for each attempt whether it succeeded, then waits to be looked at from outside.
fn probe() -> Result<(), NotConfined> {
    confine_threads()?;
    let mut said = Vec::new();
    for (name, attempt) in ATTEMPTS {
        let outcome =
            attempt().map_or_else(|error| error.kind().to_string(), |()| "done".to_owned());
        writeln!(said, "{name}: {outcome}")?;
    }
    writeln!(said, "ready")?;
    let mut output = std::io::stdout().lock();
    output.write_all(&said)?;
    output.flush()?;
    std::io::stdin().lock().read_to_end(&mut Vec::new())?;
    Ok(())
}

type Attempt = fn() -> std::io::Result<()>;

const ATTEMPTS: &[(&str, Attempt)] = &[
    ("read a file", || File::open("/etc/passwd").map(drop)),
    ("read its own environment", || {
        File::open("/proc/self/environ").map(drop)
    }),
    ("write a file", || {
        File::create("/tmp/policy-trial-was-here").map(drop)
    }),
    ("list a directory", || std::fs::read_dir("/").map(drop)),
    ("remove a file", || {
        std::fs::remove_file("/tmp/policy-trial-is-not-here")
    }),
    ("make a TCP socket", || {
        TcpListener::bind("127.0.0.1:0").map(drop)
    }),
    ("make a UDP socket", || {
        UdpSocket::bind("127.0.0.1:0").map(drop)
    }),
    ("make a pipe", || std::io::pipe().map(drop)),
    ("start a program", || {
        Command::new("/bin/true").status().map(drop)
    }),
    ("start a thread", || {
        std::thread::Builder::new().spawn(|| ()).map(drop)
    }),
];
