//! What `bwrap` is told to build.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::spec::{TMP_DIR, WORKSPACE_DIR};
use crate::wire::{INIT_PATH, LaunchPlan};

/// Size of `/dev/shm` inside.
const SHARED_MEMORY_BYTES: u64 = 64 << 20;

/// Files of `/proc` that tell about the host or that reach into the kernel.
const PROC_COVERED: [&str; 13] = [
    "kcore",
    "keys",
    "key-users",
    "timer_list",
    "cmdline",
    "config.gz",
    "kallsyms",
    "kmsg",
    "kpagecount",
    "kpageflags",
    "sched_debug",
    "slabinfo",
    "vmallocinfo",
];

/// Where the things to bind are, as `bwrap` can reach them.
pub(super) struct Sources {
    pub(super) helper: PathBuf,
    pub(super) directories: Vec<PathBuf>,
}

impl Sources {
    /// The plan's own paths, which a plain user reaches directly.
    pub(super) fn direct(plan: &LaunchPlan) -> Self {
        Self {
            helper: plan.helper.clone(),
            directories: plan
                .directories
                .iter()
                .map(|(host, _)| host.clone())
                .collect(),
        }
    }
}

/// The files of `/etc` inside, with no trace of the host's accounts or resolver.
pub(super) const fn etc_files() -> [(&'static str, &'static str); 5] {
    [
        ("/etc/passwd", "sandbox:x:1000:1000::/tmp:/bin/sh\n"),
        ("/etc/group", "sandbox:x:1000:\n"),
        ("/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n"),
        (
            "/etc/nsswitch.conf",
            "passwd: files\ngroup: files\nhosts: files\n",
        ),
        ("/etc/resolv.conf", ""),
    ]
}

/// All arguments before the command. `fds` are the filter and then the files of [`etc_files`].
pub(super) fn arguments(plan: &LaunchPlan, sources: &Sources, fds: &[i32]) -> Vec<OsString> {
    let mut list = List(Vec::new());
    list.add("--unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup");
    list.add("--unshare-net --disable-userns --assert-userns-disabled --die-with-parent");
    list.add("--new-session --clearenv --cap-drop ALL --hostname sandbox --uid 1000 --gid 1000");
    list.add("--ro-bind /usr /usr --symlink usr/lib /lib --symlink usr/lib64 /lib64");
    list.add("--symlink usr/bin /bin --symlink usr/sbin /sbin --dir /etc");
    for certificates in [
        "/etc/ssl/certs",
        "/etc/pki/tls/certs",
        "/etc/pki/ca-trust/extracted",
    ] {
        list.bind("--ro-bind-try", Path::new(certificates), certificates);
    }
    list.bind(
        "--ro-bind-try",
        Path::new("/etc/alternatives"),
        "/etc/alternatives",
    );
    let data = etc_files();
    for ((path, _), fd) in data.iter().zip(&fds[1..]) {
        list.add(&format!("--ro-bind-data {fd} {path}"));
    }
    for (source, (_, inside)) in sources.directories.iter().zip(&plan.directories) {
        list.bind("--ro-bind", source, inside);
    }
    list.add("--tmpfs /usr/local --proc /proc --dev /dev");
    for name in PROC_COVERED {
        let path = format!("/proc/{name}");
        if Path::new(&path).exists() {
            list.bind("--ro-bind", Path::new("/dev/null"), &path);
        }
    }
    list.add(&format!(
        "--size {} --perms 0700 --tmpfs {WORKSPACE_DIR}",
        plan.workspace_bytes
    ));
    list.add(&format!(
        "--size {} --perms 1777 --tmpfs {TMP_DIR}",
        plan.tmp_bytes
    ));
    list.add(&format!(
        "--size {SHARED_MEMORY_BYTES} --perms 1777 --tmpfs /dev/shm"
    ));
    list.bind("--ro-bind", &sources.helper, INIT_PATH);
    list.add("--remount-ro /usr/local --remount-ro /dev --remount-ro /");
    list.add(&format!("--chdir {WORKSPACE_DIR} --seccomp {}", fds[0]));
    list.0
}

struct List(Vec<OsString>);

impl List {
    fn add(&mut self, words: &str) {
        self.0.extend(words.split(' ').map(OsString::from));
    }

    /// For paths, which may contain spaces.
    fn bind(&mut self, how: &str, source: &Path, inside: &str) {
        self.0.extend([how.into(), source.into(), inside.into()]);
    }
}
