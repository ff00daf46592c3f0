//! System calls that the filter refuses, called by number.

use crate::support::output;

/// Name, number and arguments; every one must look as if the kernel did not have it.
#[cfg(target_arch = "x86_64")]
const REFUSED: &[(&str, &str)] = &[
    ("mount", "165, 0, 0, 0, 0, 0"),
    ("umount2", "166, 0, 0"),
    ("pivot_root", "155, 0, 0"),
    ("chroot", "161, 0"),
    ("open_tree", "428, 0, 0, 0"),
    ("move_mount", "429, 0, 0, 0, 0, 0"),
    ("fsopen", "430, 0, 0"),
    ("mount_setattr", "442, 0, 0, 0, 0, 0"),
    ("unshare, user", "272, 0x10000000"),
    ("unshare, nothing", "272, 0"),
    ("setns", "308, 0, 0"),
    ("clone, new user namespace", "56, 0x10000011, 0, 0, 0, 0"),
    ("clone, new mount namespace", "56, 0x00020011, 0, 0, 0, 0"),
    ("clone3", "435, 0, 0"),
    ("ptrace", "101, 0, 0, 0, 0"),
    ("process_vm_readv", "310, 1, 0, 0, 0, 0, 0"),
    ("process_vm_writev", "311, 1, 0, 0, 0, 0, 0"),
    ("pidfd_getfd", "438, 0, 0, 0"),
    ("kcmp", "312, 1, 1, 0, 0, 0"),
    ("keyctl", "250, 0, 0, 0, 0, 0"),
    ("add_key", "248, 0, 0, 0, 0, 0"),
    ("request_key", "249, 0, 0, 0, 0"),
    ("bpf", "321, 0, 0, 0"),
    ("perf_event_open", "298, 0, 0, 0, 0, 0"),
    ("io_uring_setup", "425, 1, 0"),
    ("userfaultfd", "323, 0"),
    ("fanotify_init", "300, 0, 0"),
    ("name_to_handle_at", "303, 0, 0, 0, 0, 0"),
    ("open_by_handle_at", "304, 0, 0, 0"),
    ("init_module", "175, 0, 0, 0"),
    ("finit_module", "313, 0, 0, 0"),
    ("delete_module", "176, 0, 0"),
    ("kexec_load", "246, 0, 0, 0, 0"),
    ("reboot", "169, 0, 0, 0, 0"),
    ("settimeofday", "164, 0, 0"),
    ("clock_settime", "227, 0, 0"),
    ("adjtimex", "159, 0"),
    ("sethostname", "170, 0, 0"),
    ("swapon", "167, 0, 0"),
    ("syslog", "103, 0, 0, 0"),
    ("acct", "163, 0"),
    ("quotactl", "179, 0, 0, 0, 0"),
    ("memfd_secret", "447, 0"),
    ("mbind", "237, 0, 0, 0, 0, 0, 0"),
    ("move_pages", "279, 0, 0, 0, 0, 0, 0"),
    ("iopl", "172, 3"),
    ("personality, no randomization", "135, 0x0040000"),
    ("ioctl TIOCSTI", "16, 0, 0x5412, 0"),
    ("ioctl TIOCSTI with high bits", "16, 0, 0x100005412, 0"),
    ("ioctl TIOCLINUX", "16, 0, 0x541c, 0"),
    ("socket VSOCK", "41, 40, 1, 0"),
    ("socket PACKET", "41, 17, 3, 0"),
    ("socket ALG", "41, 38, 5, 0"),
    ("getpid of x32", "0x40000027"),
    ("a number of the future", "700"),
];

#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn dangerous_system_calls_look_absent() {
    let mut script = String::from("perl -e '");
    for (name, call) in REFUSED {
        let test = "if $r != -1 || $! != 38";
        let print = format!("print \"{name}: $r \", $!+0, \"\\n\" {test};");
        script.extend(["$! = 0; $r = syscall(", call, "); ", &print]);
    }
    // The control: what is not refused works, and a refusal of another kind is told apart.
    script += "print \"works: \", syscall(39) == $$ ? 1 : 0, \"\\n\";";
    script += "$! = 0; syscall(3, 999); print \"other: \", $!+0, \"\\n\"; ";
    script += "print \"query: \", syscall(135, 0xffffffff), \"\\n\"; ";
    script += "print \"inet: \", syscall(41, 2, 1, 0) > 2 ? 1 : 0, \"\\n\"'";
    assert_eq!(
        output(&script).await,
        "works: 1\nother: 9\nquery: 0\ninet: 1\n"
    );
}

#[tokio::test]
async fn no_user_namespace_can_be_made_by_tools() {
    let seen =
        output("unshare -Ur true 2>&1; unshare -m true 2>&1; nsenter -t 1 -m true 2>&1; :").await;
    assert_eq!(
        seen.matches("unshare failed: Function not implemented")
            .count(),
        2,
        "{seen}"
    );
}

#[tokio::test]
async fn limits_cannot_be_raised() {
    let seen = output(
        "ulimit -n; ulimit -n 100000 2>&1; ulimit -c; ulimit -c unlimited 2>&1; ulimit -l; :",
    )
    .await;
    assert!(seen.starts_with("4096\n"), "{seen}");
    assert_eq!(seen.matches("not permitted").count(), 2, "{seen}");
}
