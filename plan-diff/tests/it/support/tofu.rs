//! Plans made by the real OpenTofu.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A directory with a configuration and a local state.
pub struct Directory {
    directory: TempDir,
    configurations: PathBuf,
}

impl Directory {
    /// A copy of the modules that belong to the plan of that name.
    pub fn new(plan: &str) -> Self {
        let configurations = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plans");
        let this = Self {
            directory: tempfile::tempdir().expect("a directory"),
            configurations: configurations.join(plan),
        };
        let child = this.configurations.join("child/main.tf");
        if child.exists() {
            fs::create_dir(this.path().join("child")).expect("a directory");
            fs::copy(child, this.path().join("child/main.tf")).expect("a copy");
        }
        this
    }

    /// Brings the state to what `before.tf` says, if there is one.
    pub fn apply_before(&self) {
        if self.configurations.join("before.tf").exists() {
            self.configure("before.tf");
            self.tofu(&["apply", "-auto-approve", "-input=false"], &[0]);
        }
    }

    /// What `tofu show -json` says about the plan of `after.tf`.
    pub fn plan_after(&self) -> Vec<u8> {
        self.configure("after.tf");
        // A plan that fails is a plan, too.
        let planned = self.tofu(&["plan", "-input=false", "-out=plan"], &[0, 1]);
        let shown = self.tofu(&["show", "-json", "plan"], &[0]);
        assert!(!shown.stdout.is_empty(), "{planned:?}");
        shown.stdout
    }

    fn configure(&self, name: &str) {
        fs::copy(self.configurations.join(name), self.path().join("main.tf")).expect("a copy");
        self.tofu(&["init", "-input=false"], &[0]);
    }

    fn tofu(&self, arguments: &[&str], codes: &[i32]) -> Output {
        let output = Command::new(binary())
            .args(arguments)
            .current_dir(self.path())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.path())
            .env("CHECKPOINT_DISABLE", "1")
            .env("TF_CLI_CONFIG_FILE", "/dev/null")
            .env("TF_IN_AUTOMATION", "1")
            .output()
            .expect("tofu starts");
        let code = output.status.code().expect("tofu ends by itself");
        assert!(codes.contains(&code), "{arguments:?}: {output:?}");
        output
    }

    fn path(&self) -> &Path {
        self.directory.path()
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
