//! What is left to the limited process, seen from outside and tried from inside.

use std::fs::read_to_string;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::support::program;

fn probe() -> Child {
    Command::new(program())
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_limited_process_can_neither_open_nor_connect_nor_start_anything() {
    let mut child = probe();
    let mut tried = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if line == "ready" {
            break;
        }
        assert!(line.ends_with(": unsupported"), "{line}");
        tried += 1;
    }
    assert_eq!(tried, 10);
    let proc = |file: &str| read_to_string(format!("/proc/{}/{file}", child.id())).unwrap();
    limits_are_in_place(&proc("limits"));
    let status = proc("status");
    for wanted in ["Seccomp:\t2\n", "NoNewPrivs:\t1\n", "Threads:\t2\n"] {
        assert!(status.contains(wanted), "{wanted} is missing: {status}");
    }
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert!(!std::path::Path::new("/tmp/policy-trial-was-here").exists());
}

fn limits_are_in_place(limits: &str) {
    for (name, soft, hard) in [
        ("Max cpu time", "10", "11"),
        ("Max address space", "1073741824", "1073741824"),
        ("Max core file size", "0", "0"),
        ("Max file size", "0", "0"),
        ("Max open files", "16", "16"),
        ("Max processes", "0", "0"),
    ] {
        let line = limits
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap();
        let mut values = line.split_whitespace();
        assert_eq!(
            (values.next(), values.next()),
            (Some(soft), Some(hard)),
            "{name}: {line}"
        );
    }
}

#[test]
fn with_anything_in_the_environment_it_does_nothing() {
    let helper = || {
        let mut command = Command::new(program());
        command
            .args(["__stackship-policy-helper", "10"])
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    };
    let refused = helper()
        .env("STACKSHIP_SECRET", "hunter2")
        .output()
        .unwrap();
    assert!(!refused.status.success() && refused.stdout.is_empty());
    // Without it, it goes on to read, and says that there is nothing to read.
    let served = helper().output().unwrap();
    assert!(served.status.success());
    assert!(
        String::from_utf8(served.stdout)
            .unwrap()
            .contains("\"policy_error\"")
    );
}

#[test]
fn arguments_it_does_not_know_end_it() {
    for arguments in [
        &["__stackship-policy-helper"][..],
        &["__stackship-policy-helper", "x"],
    ] {
        let mut command = Command::new(program());
        let ended = command
            .args(arguments)
            .env_clear()
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(!ended.status.success() && ended.stdout.is_empty());
    }
}

#[test]
fn what_a_policy_prints_reaches_nobody() {
    let text = "package stackship.tested\ndeny contains \"x\" if { print(input.secret); input.secret == \"\" }";
    let request = json!({
        "task": "evaluate",
        "evaluation_ms": 60_000,
        "data": [null],
        "policies": [{"bundle": 0, "package": "data.stackship.tested", "file": "tested.rego", "text": text}],
    });
    let request = request.to_string();
    let mut child = Command::new(program())
        .args(["__stackship-policy-helper", "10"])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let length = u32::try_from(request.len()).unwrap();
    stdin.write_all(&length.to_le_bytes()).unwrap();
    stdin.write_all(request.as_bytes()).unwrap();
    stdin.write_all(b"{\"secret\": \"hunter2\"}").unwrap();
    drop(stdin);
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success());
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
    let said = String::from_utf8(ended.stdout).unwrap();
    assert!(
        said.contains("\"evaluated\"") && !said.contains("hunter2"),
        "{said}"
    );
}
