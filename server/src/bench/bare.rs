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

const INIT: &[&str] = &["init", "-input=false", "-no-color"];
const PLAN: &[&str] = &[
    "plan",
    "-input=false",
    "-no-color",
    "-lock=false",
    "-detailed-exitcode",
    "-out=plan.bin",
];
const SHOW: &[&str] = &["show", "-json", "plan.bin"];
const APPLY: &[&str] = &[
    "apply",
    "-input=false",
    "-no-color",
    "-lock=false",
    "plan.bin",
];

/// The commands of a run, where the plan and the apply each begin in a fresh directory, as in every
/// pipeline that asks a person in between; how long they took together.
pub async fn run(tofu: &Path) -> Result<Duration, Failure> {
    let (plan, apply) = (tempfile::tempdir()?, tempfile::tempdir()?);
    for directory in [&plan, &apply] {
        std::fs::write(directory.path().join("main.tf"), CONFIGURATION)?;
    }
    let began = Instant::now();
    for command in [INIT, PLAN, SHOW] {
        execute(tofu, plan.path(), command).await?;
    }
    std::fs::copy(plan.path().join("plan.bin"), apply.path().join("plan.bin"))?;
    for command in [INIT, APPLY] {
        execute(tofu, apply.path(), command).await?;
    }
    Ok(began.elapsed())
}

async fn execute(tofu: &Path, directory: &Path, arguments: &[&str]) -> Result<(), Failure> {
    let output = Command::new(tofu)
        .args(arguments)
        .current_dir(directory)
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
    match output.status.code() {
        Some(0 | 2) => Ok(()),
        code => Err(format!("tofu {} ended with {code:?}", arguments[0]).into()),
    }
}
