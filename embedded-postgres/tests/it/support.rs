//! Clusters, SQL and waiting for the tests.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use stackship_embedded_postgres::{Cluster, DATABASE, Durability, Error, Settings};
use tempfile::TempDir;

/// Generous, because other builds may share the machine. Only a failing test waits this long.
pub const LIMIT: Duration = Duration::from_mins(1);

/// Looks again and again until `look` finds something.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < LIMIT, "never came: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A place for one cluster.
pub struct Home {
    dir: TempDir,
}

impl Home {
    pub fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn data_dir(&self) -> PathBuf {
        self.path().join("pg")
    }

    pub fn settings(&self) -> Settings {
        Settings::new(self.data_dir(), Durability::Throwaway)
    }

    pub fn start(&self) -> Cluster {
        Cluster::start(&self.settings()).unwrap()
    }

    /// With a data directory as a stopped server leaves it.
    pub fn with_stopped_cluster() -> Self {
        let home = Self::new();
        let copied = Command::new("cp")
            .arg("-a")
            .args([stopped_cluster(), &home.data_dir()])
            .status()
            .unwrap();
        assert!(copied.success());
        home
    }
}

/// A cluster to copy, because `initdb` takes seconds. It stays for the next test run; the lock is
/// for test runners that start a process per test.
fn stopped_cluster() -> &'static Path {
    static CHECKED: OnceLock<PathBuf> = OnceLock::new();
    CHECKED.get_or_init(|| {
        let parent = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stopped-cluster");
        fs::create_dir_all(&parent).unwrap();
        let lock = File::create(parent.join("tests.lock")).unwrap();
        lock.lock().unwrap();
        let data_dir = parent.join("pg");
        let settings = Settings::new(&data_dir, Durability::Throwaway);
        let cluster = Cluster::start(&settings).or_else(|error| match error {
            Error::OtherMajor { .. } => {
                fs::remove_dir_all(&data_dir).unwrap();
                Cluster::start(&settings)
            }
            other => Err(other),
        });
        cluster.unwrap().stop().unwrap();
        data_dir
    })
}

/// Runs SQL with `psql` and returns the first column of its answer.
pub fn sql(cluster: &Cluster, statement: &str) -> String {
    let url = cluster.url(DATABASE);
    let output = Command::new("psql")
        .args([
            "--no-psqlrc",
            "-qtA",
            "-v",
            "ON_ERROR_STOP=1",
            "-c",
            statement,
            &url,
        ])
        .output()
        .expect("psql is installed with PostgreSQL");
    assert!(output.status.success(), "{statement}: {output:?}");
    stdout(&output)
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone())
        .unwrap()
        .trim()
        .to_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// `with-postgres`, keeping its files below `temp_dir`.
pub fn with_postgres(temp_dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_with-postgres"));
    command
        .env("TMPDIR", temp_dir)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A child that is killed when the test ends, whatever its result.
pub struct Killed(pub Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Whether a process runs; a zombie does not.
pub fn is_alive(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        let after_name = stat.rsplit(") ").next().unwrap_or_default();
        !after_name.starts_with(['Z', 'X'])
    })
}

pub fn kill_9(pid: u32) {
    let pid = nix::unistd::Pid::from_raw(pid.cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
}

/// All processes whose working directory is `dir`: the servers of a data directory.
pub fn processes_in(dir: &Path) -> Vec<u32> {
    let pids = fs::read_dir("/proc").unwrap();
    pids.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok())
        .filter(|pid| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == dir))
        .collect()
}

/// The directory of the programs that `cluster` runs on.
pub fn bin_dir(cluster: &Cluster) -> PathBuf {
    let exe = fs::read_link(format!("/proc/{}/exe", cluster.pid())).unwrap();
    exe.parent().unwrap().to_owned()
}

/// A shell script in the place of one of PostgreSQL's programs, which get no PATH.
pub fn script(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\nPATH=/usr/bin:/bin\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
