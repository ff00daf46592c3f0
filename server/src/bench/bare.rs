//! The baseline: the same OpenTofu commands with a local state and nothing around them.

use std::path::Path;
use std::time::{Duration, Instant};

use tokio::process::Command;

use crate::Failure;

/// The configuration that both sides run.
pub const CONFIGURATION: &str = r#"
resource "terraform_data" "item" {
  count = 20
  input = "value-${count.index}"
}
"#;

/// init, plan, show and apply in a fresh directory; how long they took together.
pub async fn run(tofu: &Path) -> Result<Duration, Failure> {
    let directory = tempfile::tempdir()?;
    std::fs::write(directory.path().join("main.tf"), CONFIGURATION)?;
    let began = Instant::now();
    let commands: [&[&str]; 4] = [
        &["init", "-input=false", "-no-color"],
        &[
            "plan",
            "-input=false",
            "-no-color",
            "-lock=false",
            "-detailed-exitcode",
            "-out=plan.bin",
        ],
        &["show", "-json", "plan.bin"],
        &[
            "apply",
            "-input=false",
            "-no-color",
            "-lock=false",
            "plan.bin",
        ],
    ];
    for arguments in commands {
        let output = Command::new(tofu)
            .args(arguments)
            .current_dir(directory.path())
            .env_clear()
            .envs([
                ("HOME", "/nonexistent"),
                ("PATH", "/usr/bin:/bin"),
                ("TF_IN_AUTOMATION", "1"),
                ("CHECKPOINT_DISABLE", "1"),
            ])
            .kill_on_drop(true)
            .output()
            .await?;
        let code = output.status.code();
        if code != Some(0) && code != Some(2) {
            return Err(format!("tofu {} ended with {code:?}", arguments[0]).into());
        }
    }
    Ok(began.elapsed())
}
