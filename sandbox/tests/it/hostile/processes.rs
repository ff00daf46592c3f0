use std::process::Command;

use stackship_sandbox::EndReason;

use crate::support::{output, run, shell, spec};

#[tokio::test]
async fn only_own_processes_are_seen() {
    let seen = output("cat /proc/[0-9]*/comm").await;
    assert!(
        seen.contains("bwrap\n") && seen.contains("sandbox-init\n"),
        "{seen}"
    );
    for name in seen.lines() {
        assert!(
            ["bwrap", "sandbox-init", "sh", "cat"].contains(&name),
            "{name} is not ours"
        );
    }
}

#[tokio::test]
async fn host_processes_cannot_be_signaled() {
    let mut canary = Command::new("sleep").arg("1000").spawn().unwrap();
    let script = format!(
        "kill -9 {}; kill -0 {0}; kill -9 -1; echo alive",
        canary.id()
    );
    let ran = run(spec(vec![shell("one", &script)])).await;
    assert_eq!(
        ran.stderr.matches("No such process").count(),
        2,
        "{}",
        ran.stderr
    );
    assert!(
        canary.try_wait().unwrap().is_none(),
        "the canary was reached"
    );
    canary.kill().unwrap();
    canary.wait().unwrap();
}

#[tokio::test]
async fn a_host_user_other_than_root_runs_the_tree_without_groups() {
    let ran = run(spec(vec![shell(
        "one",
        "id -u; id -g; grep Groups: /proc/self/status | xargs",
    )]))
    .await;
    assert_eq!(ran.stdout, "1000\n1000\nGroups:\n");
    assert!(ran.outcome.isolation.host_uid >= 200_000);
}

#[tokio::test]
async fn no_privilege_is_left_and_none_can_be_gained() {
    let seen = output(
        "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status | cut -f2 | xargs; \
         cp /usr/bin/id own-id && chmod u+s own-id && ./own-id -u; \
         perl -e '$< = 0; $> = 0; print \"$< $>\\n\"'; \
         perl -e '$h = pack(\"LL\", 0x20080522, 0); $c = pack(\"L6\", -1, -1, 0, 0, 0, 0); \
         print syscall(126, $h, $c), \" $!\\n\"'; \
         su -c id 2>/dev/null || echo no su",
    )
    .await;
    let zeros = "0000000000000000";
    let expected = format!(
        "{zeros} {zeros} {zeros} {zeros} {zeros} 1 2\n1000\n1000 1000\n-1 Operation not permitted\nno su\n"
    );
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn the_runners_environment_and_arguments_are_not_seen() {
    assert!(
        std::env::vars_os().any(|(name, _)| name == "CARGO_MANIFEST_DIR"),
        "the control"
    );
    let mut first = shell(
        "one",
        "cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' ' '",
    );
    first.environment.set("MINE", "own-secret");
    let mut second = shell("two", ":");
    second.environment.set("LATER", "later-secret");
    let ran = run(spec(vec![first, second])).await;
    assert_eq!(ran.outcome.reason, EndReason::Exited);
    for hidden in ["CARGO", "later-secret", "--ro-bind", "stackship", "target"] {
        assert!(!ran.stdout.contains(hidden), "{hidden} in {}", ran.stdout);
    }
    assert!(
        ran.stdout.contains("own-secret"),
        "the control: a step sees its own environment"
    );
    let command_lines = run(spec(vec![shell(
        "one",
        "cat /proc/[12]/cmdline | tr '\\0' ' '",
    )]))
    .await;
    assert!(
        command_lines.stdout.contains("--args"),
        "{}",
        command_lines.stdout
    );
}

#[tokio::test]
async fn other_processes_memory_and_descriptors_are_closed() {
    let look = "for p in 1 2; do for f in mem environ; do \
                head -c1 /proc/$p/$f >/dev/null 2>&1 && echo $p/$f; done; \
                for f in /proc/$p/fd/*; do readlink $f; done; done; :";
    let ran = run(spec(vec![shell("one", look)])).await;
    if ran.outcome.isolation.landlock {
        assert_eq!(ran.stdout, "");
    } else {
        assert!(!ran.stdout.contains("2/"), "{}", ran.stdout);
    }
}

#[tokio::test]
async fn a_step_inherits_no_descriptor_of_the_runner() {
    // The control: a descriptor that this process would hand to every child.
    let kept = std::fs::File::open("/etc/shadow").unwrap();
    rustix::io::fcntl_setfd(&kept, rustix::io::FdFlags::empty()).unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&kept);
    let direct = Command::new("/bin/ls")
        .arg("/proc/self/fd")
        .output()
        .unwrap();
    let direct = String::from_utf8(direct.stdout).unwrap();
    assert!(
        direct.lines().any(|line| line == number.to_string()),
        "{direct}"
    );
    let mut step = shell("one", "");
    step.argv = ["/bin/ls", "/proc/self/fd"].map(String::from).to_vec();
    let ran = run(spec(vec![step])).await;
    assert_eq!(ran.stdout, "0\n1\n2\n3\n", "3 is the listing itself");
}
