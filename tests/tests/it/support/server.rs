//! `stackship serve` as a process of its own.

use std::fs::{self, File};
use std::io::{PipeWriter, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use stackship_embedded_postgres::end_with_this_thread;

use super::{environment, eventually};

/// The name in `cloud` blocks.
pub const HOSTNAME: &str = "stackship.test";

/// One installation: its settings and its directory outlive its processes.
pub struct Server {
    home: PathBuf,
    port: u16,
    environment: Vec<(String, String)>,
    process: Option<Child>,
    /// Held by every process of the installation; when the last one ends, `home` is removed.
    life: PipeWriter,
    _janitor: Child,
}

impl Server {
    /// Settles where the server lives; `settings` win over what tests usually want.
    pub fn new(database: &str, name: &str, settings: &[(&str, &str)]) -> Self {
        let home = tempfile::tempdir().expect("a temporary directory").keep();
        let (life, janitor) = remove_after_the_last_process(&home);
        let free = TcpListener::bind(("127.0.0.1", 0)).and_then(|taken| taken.local_addr());
        let port = free.expect("a free port").port();
        let mut environment = vec![
            ("STACKSHIP_DATABASE_URL".to_owned(), database.to_owned()),
            (
                "STACKSHIP_DATA_DIR".to_owned(),
                home.join("data").display().to_string(),
            ),
            ("STACKSHIP_LISTEN".to_owned(), format!("127.0.0.1:{port}")),
            ("STACKSHIP_HOSTNAME".to_owned(), HOSTNAME.to_owned()),
            (
                "STACKSHIP_TOFU__MIRROR".to_owned(),
                environment::mirror().display().to_string(),
            ),
            (
                "STACKSHIP_RUNNER__PROVIDER_MIRROR".to_owned(),
                environment::providers().display().to_string(),
            ),
            ("STACKSHIP_RUNNER__NAME".to_owned(), name.to_owned()),
            ("PATH".to_owned(), environment::path()),
        ];
        let own = settings
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        environment.extend(own);
        Self {
            home,
            port,
            environment,
            process: None,
            life,
            _janitor: janitor,
        }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Where everything of this installation lies.
    pub fn data(&self) -> PathBuf {
        self.home.join("data")
    }

    /// Everything that all processes of this installation have logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).expect("the server's log can be read")
    }

    fn log_file(&self) -> PathBuf {
        self.home.join("server.log")
    }

    pub fn start(&mut self) {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log_file());
        let life = self.life.try_clone().expect("a pipe can be shared");
        let mut command = self.command();
        command
            .arg("serve")
            .stdin(Stdio::from(life))
            .stdout(Stdio::null())
            .stderr(Stdio::from(log.expect("the log can be opened")));
        self.process = Some(spawn_for_this_process(command));
    }

    /// Whether the process is there; its end is a failure unless a test asked for it.
    pub fn assert_alive(&mut self) {
        let process = self.process.as_mut().expect("a started server");
        let ended = process.try_wait().expect("a child can be waited for");
        assert!(
            ended.is_none(),
            "the server ended: {ended:?}\n{}",
            self.log()
        );
    }

    pub fn signal(&self, signal: Signal) {
        let process = self.process.as_ref().expect("a started server");
        let id = i32::try_from(process.id()).expect("process ids are small");
        kill(Pid::from_raw(id), signal).expect("one may signal one's own child");
    }

    pub fn wait_exit(&mut self) -> ExitStatus {
        let mut process = self.process.take().expect("a started server");
        eventually("the server's end", || {
            process.try_wait().expect("a child can be waited for")
        })
    }

    /// Makes an organization with an owner; says what was made, the token included.
    pub fn bootstrap(&self, organization: &str, login: &str) -> Value {
        let printed = self.admin(&[
            "bootstrap",
            "--json",
            "--organization",
            organization,
            "--login",
            login,
        ]);
        serde_json::from_str(&printed).expect("the program prints JSON")
    }

    /// Carries out a command of the machine's administrator and says what it printed.
    pub fn admin(&self, arguments: &[&str]) -> String {
        self.tool("admin", arguments)
            .unwrap_or_else(|said| panic!("{said}"))
    }

    /// Runs another command of the program with this installation's settings: what it printed, or what
    /// it said when it failed.
    pub fn tool(&self, command: &str, arguments: &[&str]) -> Result<String, String> {
        let made = self.command().arg(command).args(arguments).output();
        let made = made.expect("the program starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program prints text");
        if made.status.success() {
            Ok(text(made.stdout))
        } else {
            Err(text(made.stderr))
        }
    }

    /// Sets a user's password, as only somebody at the machine can.
    pub fn set_password(&self, organization: &str, login: &str, password: &str) {
        let mut command = self.command();
        command.args([
            "admin",
            "set-password",
            "--organization",
            organization,
            "--login",
            login,
        ]);
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        writeln!(writer, "{password}").expect("a pipe takes a line");
        drop(writer);
        let set = command.stdin(reader).stdout(Stdio::null()).status();
        assert!(set.expect("the program starts").success());
    }

    /// The most memory that the process has used, in bytes.
    pub fn peak_memory(&self) -> u64 {
        self.memory("VmHWM:")
    }

    /// Begins to measure the peak anew; says what the process uses now, in bytes.
    pub fn forget_peak_memory(&self) -> u64 {
        fs::write(self.proc("clear_refs"), "5").expect("one may look at one's own child");
        self.memory("VmRSS:")
    }

    fn memory(&self, name: &str) -> u64 {
        const KIB: u64 = 1024;
        let status = fs::read_to_string(self.proc("status"));
        let status = status.expect("a running process has a status");
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let value = line.and_then(|line| line.split_whitespace().next());
        KIB * value
            .and_then(|value| value.parse::<u64>().ok())
            .expect("a number of kB")
    }

    fn proc(&self, file: &str) -> String {
        let process = self.process.as_ref().expect("a started server");
        format!("/proc/{}/{file}", process.id())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(environment::stackship());
        command.env_clear().envs(self.environment.iter().cloned());
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // Whatever goes wrong here, the janitor and the kernel clean up.
            drop(process.kill());
            drop(process.wait());
        }
    }
}

/// The kernel ends the server with the thread that started it, and the threads of tests are short.
pub(super) fn spawn_for_this_process(mut command: Command) -> Child {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        end_with_this_thread(&mut command);
        drop(sender.send(command.spawn()));
        loop {
            std::thread::park();
        }
    });
    receiver
        .recv()
        .expect("the thread sends once")
        .expect("the server starts")
}

/// Neither a killed test program nor one that forgot its statics may leave a directory behind.
fn remove_after_the_last_process(home: &Path) -> (PipeWriter, Child) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let janitor = Command::new("/bin/sh")
        .args(["-c", "cat; rm -rf \"$1\"", "janitor"])
        .arg(home)
        .stdin(reader)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell starts");
    (writer, janitor)
}
