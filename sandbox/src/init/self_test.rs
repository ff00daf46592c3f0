//! The part of the driver's probe that runs inside, as an ordinary step.
//!
//! Each check looks for one way out. They run to the first that fails, whose name is the result.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use rustix::mount::{MountFlags, mount};
use serde::{Deserialize, Serialize};

use crate::spec::GATEWAY_ADDRESS;

/// Longest wait for a connection that should be refused at once, or answered at once.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// Longest answer of the gateway that is looked at.
const ANSWER_MAX: u64 = 256;

/// What the outside planted for the inside not to reach.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Canaries {
    /// A file of the host that any user may read.
    pub(crate) file: String,
    /// A listener on the host's loopback.
    pub(crate) listener: SocketAddr,
}

/// What the inside found, as JSON on standard output.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Findings {
    pub(crate) passed: Vec<String>,
    /// The first failed check and what it found.
    pub(crate) failed: Option<(String, String)>,
}

type Check = fn(&Canaries) -> Result<(), String>;

const CHECKS: [(&str, Check); 14] = [
    ("user namespace", |_| user_namespace()),
    ("capabilities", |_| {
        status_says("CapInh CapPrm CapEff CapBnd CapAmb", "0000000000000000")
    }),
    ("no new privileges", |_| status_says("NoNewPrivs", "1")),
    ("system call filter", |_| status_says("Seccomp", "2")),
    ("processes", |_| only_own_processes()),
    ("network interfaces", |_| only_loopback()),
    ("read-only root", |_| read_only()),
    ("kernel settings", |_| kernel_settings()),
    ("writable workspace", |_| writable()),
    ("refused system calls", |_| refused_calls()),
    ("environment", |_| environment()),
    ("host files", canary_file),
    ("host loopback", canary_listener),
    ("gateway", |_| gateway()),
];

/// Runs the checks, prints the findings and ends the process.
pub(crate) fn main(canaries: Option<OsString>) -> ! {
    let text = canaries
        .and_then(|text| text.into_string().ok())
        .unwrap_or_default();
    let findings = match serde_json::from_str(&text) {
        Ok(canaries) => check_all(&canaries),
        Err(error) => Findings {
            passed: Vec::new(),
            failed: Some(("canaries".to_owned(), error.to_string())),
        },
    };
    let printed = serde_json::to_writer(io::stdout(), &findings);
    std::process::exit(i32::from(printed.is_err()))
}

fn check_all(canaries: &Canaries) -> Findings {
    let mut passed = Vec::new();
    for (name, check) in CHECKS {
        if let Err(found) = check(canaries) {
            return Findings {
                passed,
                failed: Some((name.to_owned(), found)),
            };
        }
        passed.push(name.to_owned());
    }
    Findings {
        passed,
        failed: None,
    }
}

fn read(path: &str) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))
}

/// One user only. Which host user it is cannot be seen here, because `bwrap` nests two namespaces
/// to forbid more; the outside looks at that.
fn user_namespace() -> Result<(), String> {
    let map = read("/proc/self/uid_map")?;
    let fields: Vec<&str> = map.split_whitespace().collect();
    match fields[..] {
        ["1000", _, "1"] => Ok(()),
        _ => Err(format!("the user map is `{}`", map.trim())),
    }
}

fn status_says(names: &str, expected: &str) -> Result<(), String> {
    let status = read("/proc/self/status")?;
    names.split(' ').try_for_each(|name| {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        match line.map(str::trim) {
            Some(value) if value == expected => Ok(()),
            other => Err(format!("{name} is {}", other.unwrap_or("absent"))),
        }
    })
}

fn only_own_processes() -> Result<(), String> {
    let entries = fs::read_dir("/proc").map_err(|error| error.to_string())?;
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.bytes().all(|byte| byte.is_ascii_digit()) {
            let process = read(&format!("/proc/{name}/comm"))?;
            if !matches!(process.trim_end(), "bwrap" | "sandbox-init") {
                return Err(format!("process {name} is `{}`", process.trim_end()));
            }
        }
    }
    Ok(())
}

fn only_loopback() -> Result<(), String> {
    let interfaces = read("/proc/net/dev")?;
    let names = interfaces.lines().filter_map(|line| line.split_once(':'));
    let names: Vec<&str> = names.map(|(name, _)| name.trim()).collect();
    if names != ["lo"] {
        return Err(format!("the interfaces are {names:?}"));
    }
    match read("/proc/net/route")?.lines().count() {
        0 | 1 => Ok(()),
        lines => Err(format!("there are {} routes", lines - 1)),
    }
}

fn read_only() -> Result<(), String> {
    for directory in ["", "/usr", "/usr/local", "/etc", "/opt", "/dev", "/proc"] {
        let path = format!("{directory}/canary");
        if File::create(&path).is_ok() {
            return Err(format!("{path} could be made"));
        }
    }
    Ok(())
}

fn kernel_settings() -> Result<(), String> {
    for path in [
        "/proc/sys/kernel/hostname",
        "/proc/sys/vm/overcommit_memory",
        "/proc/sysrq-trigger",
    ] {
        if File::options().write(true).open(path).is_ok() {
            return Err(format!("{path} can be written"));
        }
    }
    Ok(())
}

fn writable() -> Result<(), String> {
    fs::write("/workspace/.canary", "x")
        .and_then(|()| fs::remove_file("/workspace/.canary"))
        .map_err(|error| format!("/workspace: {error}"))
}

fn refused_calls() -> Result<(), String> {
    let mounted = mount("none", "/tmp", "tmpfs", MountFlags::empty(), None);
    let mounted = mounted.map_err(|error| Errno::from_raw(error.raw_os_error()));
    let vsock = socket(
        AddressFamily::Vsock,
        SockType::Stream,
        SockFlag::empty(),
        None,
    );
    for (name, result) in [
        ("mount", mounted),
        ("unshare", unshare(CloneFlags::CLONE_NEWUSER)),
        ("ptrace", nix::sys::ptrace::traceme()),
        ("socket of family VSOCK", vsock.map(drop)),
    ] {
        match result {
            Err(Errno::ENOSYS) => {}
            Err(other) => {
                return Err(format!(
                    "{name} was refused with {other}, not by the filter"
                ));
            }
            Ok(()) => return Err(format!("{name} worked")),
        }
    }
    Ok(())
}

fn environment() -> Result<(), String> {
    let known = crate::Environment::base(crate::Network::default());
    let stranger = std::env::vars_os().find(|(name, _)| {
        !known
            .pairs()
            .iter()
            .any(|(known, _)| name.to_str() == Some(known))
    });
    match stranger {
        None => Ok(()),
        Some((name, _)) => Err(format!("the variable {} came in", name.display())),
    }
}

fn canary_file(canaries: &Canaries) -> Result<(), String> {
    match File::open(&canaries.file) {
        Ok(_) => Err(format!("{} can be read", canaries.file)),
        Err(_) => Ok(()),
    }
}

fn canary_listener(canaries: &Canaries) -> Result<(), String> {
    match TcpStream::connect_timeout(&canaries.listener, CONNECT_TIME_MAX) {
        Ok(_) => Err(format!("{} answers", canaries.listener)),
        Err(_) => Ok(()),
    }
}

fn gateway() -> Result<(), String> {
    let asked = || -> io::Result<String> {
        let address: SocketAddr = GATEWAY_ADDRESS.parse().map_err(io::Error::other)?;
        let mut stream = TcpStream::connect_timeout(&address, CONNECT_TIME_MAX)?;
        stream.set_read_timeout(Some(CONNECT_TIME_MAX))?;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.take(ANSWER_MAX).read_to_string(&mut answer)?;
        Ok(answer)
    };
    match asked() {
        Ok(answer) if answer.starts_with("HTTP/1.0 204 ") => Ok(()),
        Ok(answer) => Err(format!("it answered `{}`", answer.trim())),
        Err(error) => Err(error.to_string()),
    }
}
