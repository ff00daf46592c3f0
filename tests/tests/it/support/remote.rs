//! `stackship runner` as a process of its own, as it would run on another machine.

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::environment;
use super::server::{HOSTNAME, Server, spawn_for_this_process};

/// A runner's machine; its name and its directory outlive its processes.
pub struct RemoteRunner {
    home: TempDir,
    environment: Vec<(String, String)>,
    process: Option<Child>,
}

impl RemoteRunner {
    /// Registers a runner with the server and starts it.
    pub fn start(server: &Server, name: &str) -> Self {
        Self::through(server, &server.url(), name, &[])
    }

    /// The same, with the control plane at another address and with `settings` of its own.
    pub fn through(server: &Server, url: &str, name: &str, settings: &[(&str, &str)]) -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        let token = home.path().join("token");
        fs::write(&token, register(server, name)).expect("a writable directory");
        let path = |of: &std::path::Path| of.display().to_string();
        let environment = [
            ("STACKSHIP_DATA_DIR", path(&home.path().join("data"))),
            ("STACKSHIP_HOSTNAME", HOSTNAME.to_owned()),
            ("STACKSHIP_TOFU__MIRROR", path(&environment::mirror())),
            ("STACKSHIP_RUNNER__NAME", name.to_owned()),
            ("STACKSHIP_RUNNER__CONTROL_PLANE_URL", url.to_owned()),
            ("STACKSHIP_RUNNER__TOKEN_FILE", path(&token)),
            ("PATH", environment::path()),
        ];
        let own = settings.iter().map(|&(key, value)| (key, value.to_owned()));
        let all = environment.into_iter().chain(own);
        let mut runner = Self {
            home,
            environment: all.map(|(key, value)| (key.to_owned(), value)).collect(),
            process: None,
        };
        runner.restart();
        runner
    }

    /// Starts the runner after its end.
    pub fn restart(&mut self) {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.home.path().join("runner.log"));
        let mut command = Command::new(environment::stackship());
        command
            .arg("runner")
            .env_clear()
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::from(log.expect("the log can be opened")));
        self.process = Some(spawn_for_this_process(command));
    }

    /// The process, as the system knows it.
    pub fn id(&self) -> u32 {
        self.process.as_ref().expect("a started runner").id()
    }

    /// Everything that all processes of this runner have logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.home.path().join("runner.log")).expect("the log can be read")
    }

    /// Ends the process as a crash of its machine would.
    pub fn kill(&mut self) {
        let mut process = self.process.take().expect("a started runner");
        process.kill().expect("one may kill one's own child");
        process.wait().expect("a child can be waited for");
    }
}

impl Drop for RemoteRunner {
    fn drop(&mut self) {
        if self.process.is_some() {
            self.kill();
        }
    }
}

pub(super) fn register(server: &Server, name: &str) -> String {
    let printed = server.admin(&["create-runner", "--name", name]);
    let token = printed.lines().find_map(|line| line.strip_prefix("Token"));
    token.expect("the program prints a token").trim().to_owned()
}
