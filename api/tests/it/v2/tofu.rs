//! The real `tofu`, in a directory and an environment of its own.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// The configuration of most tests: one resource that needs no provider, and outputs.
pub const CONFIGURATION: &str = r#"
variable "size" {
  type    = number
  default = 1
}
resource "terraform_data" "a" {
  input = var.size
}
output "size" {
  value = terraform_data.a.output
}
output "password" {
  value     = "hunter2"
  sensitive = true
}
"#;

pub struct Tofu {
    directory: tempfile::TempDir,
    /// The directory of a plan, which its apply goes on with.
    inherited: Option<Box<Tofu>>,
    environment: Vec<(String, String)>,
}

#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    /// Both streams.
    pub text: String,
}

impl Ended {
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{}", self.text);
        self.text
    }

    #[track_caller]
    pub fn failed_with(&self, words: &str) {
        assert_eq!(self.code, Some(1), "{}", self.text);
        // The terminal wraps lines.
        let text = self.text.replace(['\n', '│'], " ");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(words), "no `{words}` in:\n{}", self.text);
    }
}

impl Tofu {
    /// A directory with a `cloud` block for this workspace, and a credential.
    pub fn new(url: &str, token: &str, workspace: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        let cloud = format!(
            "terraform {{\n  cloud {{\n    hostname     = \"ship.test\"\n    organization = \"acme\"\n    workspaces {{\n      \
             name = \"{workspace}\"\n    }}\n  }}\n}}\n"
        );
        std::fs::create_dir(directory.path().join("root")).unwrap();
        write("root/cloud.tf", &cloud);
        write("root/main.tf", CONFIGURATION);
        let tofu = Self {
            directory,
            inherited: None,
            environment: Vec::new(),
        };
        tofu.sign_in(url, token);
        tofu
    }

    /// Goes on with this credential.
    pub fn sign_in(&self, url: &str, token: &str) {
        let services = ["tfe.v2", "tfe.v2.1", "state.v2"]
            .map(|name| format!("    \"{name}\" = \"{url}/api/v2/\"\n"))
            .concat();
        let configuration = format!(
            "host \"ship.test\" {{\n  services = {{\n{services}  }}\n}}\ncredentials \"ship.test\" {{\n  token = \"{token}\"\n}}\n"
        );
        std::fs::write(self.directory.path().join("tofurc"), configuration).unwrap();
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn root(&self) -> PathBuf {
        match &self.inherited {
            Some(earlier) => earlier.root(),
            None => self.directory.path().join("root"),
        }
    }

    /// Works in another one's directory, with this one's credential.
    pub fn take_root_of(&mut self, earlier: Self) {
        self.inherited = Some(Box::new(earlier));
    }

    /// Runs a command to its end; `answer` is what the person types.
    pub async fn run(&self, arguments: &[&str], answer: &str) -> Ended {
        let mut child = self.command(arguments).spawn().unwrap();
        let mut typed = child.stdin.take().unwrap();
        // A command that asks nothing may have closed it already.
        drop(typed.write_all(answer.as_bytes()).await);
        drop(typed);
        let output = child.wait_with_output().await.unwrap();
        let text = [output.stdout, output.stderr].concat();
        Ended {
            code: output.status.code(),
            text: String::from_utf8_lossy(&text).into_owned(),
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let (binary, environment) = self.invocation();
        let mut command = Command::new(binary);
        command
            .args(arguments)
            .current_dir(self.root())
            .env_clear()
            .envs(environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// The binary and everything of its environment.
    pub fn invocation(&self) -> (PathBuf, Vec<(String, String)>) {
        let home = self.directory.path().display();
        let mut environment = vec![
            ("PATH".to_owned(), "/usr/bin:/bin".to_owned()),
            ("HOME".to_owned(), home.to_string()),
            ("CHECKPOINT_DISABLE".to_owned(), "1".to_owned()),
            ("TF_CLI_CONFIG_FILE".to_owned(), format!("{home}/tofurc")),
        ];
        environment.extend(self.environment.iter().cloned());
        (binary(), environment)
    }
}

/// Where `make test` has put the release that the repository names.
#[expect(
    clippy::disallowed_methods,
    reason = "a test is told by its environment where tofu is"
)]
fn binary() -> PathBuf {
    if let Ok(told) = std::env::var("STACKSHIP_TOFU") {
        return PathBuf::from(told);
    }
    let cache = std::env::var("XDG_CACHE_HOME")
        .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cache")))
        .expect("a home directory");
    let found = Path::new(&cache).join("stackship/tofu/1.12.6/tofu");
    assert!(
        found.exists(),
        "no tofu at {}: run `make test`",
        found.display()
    );
    found
}
