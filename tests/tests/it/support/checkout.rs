//! A directory with a configuration, on the machine of somebody who types `tofu`.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::client::{Client, Workspace};
use super::server::HOSTNAME;
use super::terminal::Terminal;

/// A root module that is connected to a workspace.
pub struct Checkout {
    home: TempDir,
    variables: Vec<(String, String)>,
}

impl Checkout {
    /// A directory that `tofu init` has not seen yet.
    pub fn new(person: &Client, workspace: &Workspace, main: &str) -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        let settings = home.path().join("tofurc");
        fs::write(&settings, tofurc(person)).expect("a writable directory");
        fs::create_dir(home.path().join("root")).expect("a writable directory");
        let variables = vec![
            ("HOME".to_owned(), home.path().display().to_string()),
            (
                "TF_CLI_CONFIG_FILE".to_owned(),
                settings.display().to_string(),
            ),
        ];
        let checkout = Self { home, variables };
        checkout.write("cloud.tf", &cloud(person.organization(), &workspace.name));
        checkout.write("main.tf", main);
        checkout
    }

    /// A directory in which `tofu init` has run.
    #[track_caller]
    pub fn initialized(person: &Client, workspace: &Workspace, main: &str) -> Self {
        let checkout = Self::new(person, workspace, main);
        checkout.tofu(&["init"]).exits(0);
        checkout
    }

    /// With a variable in the environment of every command.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn root(&self) -> PathBuf {
        self.home.path().join("root")
    }

    pub fn write(&self, name: &str, content: &str) {
        fs::write(self.root().join(name), content).expect("a writable directory");
    }

    pub fn tofu(&self, arguments: &[&str]) -> Terminal {
        Terminal::tofu(Path::new(&self.root()), &self.variables, arguments)
    }

    /// Types `tofu apply` and reads until it asks.
    #[track_caller]
    pub fn apply_until_asked(&self) -> Terminal {
        let terminal = self.tofu(&["apply"]);
        terminal.expect("Enter a value:");
        terminal
    }

    /// Types `tofu apply`, then `yes`, and reads to the end.
    #[track_caller]
    pub fn apply(&self) -> String {
        let mut terminal = self.apply_until_asked();
        terminal.type_line("yes");
        terminal.exits(0)
    }
}

fn tofurc(person: &Client) -> String {
    let (url, token) = (person.url(), person.token());
    format!(
        r#"
host "{HOSTNAME}" {{
  services = {{
    "tfe.v2"   = "{url}/api/v2/"
    "state.v2" = "{url}/api/v2/"
  }}
}}
credentials "{HOSTNAME}" {{
  token = "{token}"
}}
"#
    )
}

fn cloud(organization: &str, workspace: &str) -> String {
    format!(
        r#"
terraform {{
  cloud {{
    hostname     = "{HOSTNAME}"
    organization = "{organization}"
    workspaces {{
      name = "{workspace}"
    }}
  }}
}}
"#
    )
}
