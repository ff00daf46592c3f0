use std::os::unix::fs::PermissionsExt;

use crate::support::{finish, launch, output, run, shell, spec, until_log};

#[tokio::test]
async fn host_files_are_absent() {
    let directory = tempfile::Builder::new()
        .prefix("canary-")
        .tempdir_in("/tmp")
        .unwrap();
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(directory.path(), mode).unwrap();
    let canary = directory.path().join("file");
    std::fs::write(&canary, "CANARY").unwrap();
    assert!(
        std::path::Path::new("/etc/shadow").exists(),
        "the control needs a file to miss"
    );
    let canary = canary.display();
    let seen = output(&format!(
        "for p in {canary} /etc/shadow /etc/hostname /etc/ssh /root /home /var /run /srv /mnt /sys \
         /boot /work /opt/tofu; do [ -e $p ] && echo $p; done; ls /etc | xargs; cat /etc/passwd"
    ))
    .await;
    let mut lines = seen.lines();
    let names: Vec<&str> = lines.next().unwrap().split(' ').collect();
    for name in names {
        let known = [
            "alternatives",
            "group",
            "hosts",
            "nsswitch.conf",
            "passwd",
            "pki",
            "resolv.conf",
            "ssl",
        ];
        assert!(known.contains(&name), "/etc/{name}");
    }
    assert_eq!(
        lines.collect::<Vec<_>>(),
        ["sandbox:x:1000:1000::/tmp:/bin/sh"]
    );
}

#[tokio::test]
async fn only_the_work_directories_can_be_written() {
    let seen = output(
        "for d in / /usr /usr/bin /usr/local /usr/local/bin /etc /etc/ssl/certs /dev /proc /proc/self \
         /sandbox-init /workspace /tmp /dev/shm; do touch $d/canary 2>/dev/null && echo $d; done; :",
    )
    .await;
    assert_eq!(seen, "/workspace\n/tmp\n/dev/shm\n");
}

#[tokio::test]
async fn writable_directories_are_full_at_their_size() {
    let seen = output(
        "for d in /workspace /tmp /dev/shm; do head -c 400M /dev/zero > $d/f 2>/dev/null; \
         stat -c %s $d/f; rm $d/f; done",
    )
    .await;
    assert_eq!(seen, format!("{}\n{}\n{}\n", 128 << 20, 32 << 20, 64 << 20));
}

#[tokio::test]
async fn a_read_only_file_cannot_be_linked_into_the_work_directory() {
    let ran = run(spec(vec![shell(
        "one",
        "LC_ALL=C ln /usr/bin/env /workspace/env",
    )]))
    .await;
    assert!(ran.stderr.contains("cross-device link"), "{}", ran.stderr);
}

#[tokio::test]
async fn devices_cannot_be_made_and_are_not_there() {
    let seen = output(
        "mknod b b 1 1 2>&1; mknod c c 1 3 2>&1; mkfifo p && echo fifo; \
         for d in kvm mem kmem sda vda tun net/tun fuse loop0 vsock vhost-vsock; do \
         [ -e /dev/$d ] && echo $d; done; :",
    )
    .await;
    assert_eq!(
        seen.matches("Function not implemented").count(),
        2,
        "{seen}"
    );
    assert!(seen.ends_with("fifo\n"), "{seen}");
}

#[tokio::test]
async fn kernel_settings_and_facts_are_covered() {
    let seen = output(
        "for f in sys/kernel/hostname sys/kernel/core_pattern sys/vm/drop_caches sysrq-trigger; do \
         echo 1 2>/dev/null > /proc/$f && echo wrote $f; done; \
         for f in kallsyms keys cmdline kcore kmsg; do cat /proc/$f 2>/dev/null; done; \
         echo -1000 2>/dev/null > /proc/self/oom_score_adj && echo adjusted; \
         cat /proc/self/oom_score_adj; ls /sys/fs/cgroup 2>/dev/null; :",
    )
    .await;
    assert_eq!(seen, "500\n");
}

#[tokio::test]
async fn another_sandbox_is_not_reachable() {
    let mut other = launch(spec(vec![shell(
        "one",
        "echo SECRET > f; echo up; sleep 1000",
    )]))
    .await;
    until_log(&mut other, "up").await;
    let seen = output("echo OWN > f; cat /proc/*/root/workspace/f 2>/dev/null | sort -u").await;
    assert_eq!(seen, "OWN\n");
    other.control().kill().await;
    finish(other).await;
}
