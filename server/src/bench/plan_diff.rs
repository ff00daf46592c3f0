//! `stackship bench plan-diff`: what people and policies may see of a large plan, made by the step that
//! makes it in the sandbox of an inspection, against reading the same bytes into a tree of the common
//! kind. Both are this same program, started anew.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use stackship_plan_diff::Summary;
use stackship_runner::redact::{self, PLAN_JSON_FILE, POLICY_INPUT_FILE, SECRETS_FILE};
use tempfile::TempDir;

use super::Bench;
use super::figures::{Figure, mebibytes, seconds};
use super::large_plan::{self, RESOURCES, SECRETS};
use super::program::{self, Taken};
use crate::Failure;
use crate::answer::{answer, remark};

/// First argument by which the binary knows that it is the baseline; the path of a plan follows.
const PARSE: &str = "bench-parse-plan";

/// Becomes the baseline when the first argument says so; otherwise returns.
pub fn run_helper_if_asked() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|first| first != PARSE) {
        return;
    }
    let path = arguments.next().map(PathBuf::from).unwrap_or_default();
    std::process::exit(match parse(&path).and_then(answer) {
        Ok(()) => 0,
        Err(error) => {
            remark(format_args!("{PARSE}: {error}"));
            1
        }
    })
}

/// The baseline.
fn parse(path: &Path) -> Result<usize, Failure> {
    let tree: Value = serde_json::from_slice(&std::fs::read(path)?)?;
    let resources = tree["resource_changes"].as_array().map_or(0, Vec::len);
    Ok(std::hint::black_box(resources))
}

/// Measures pairs, one after the other, so that both sides see the same machine.
pub fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let plan = large_plan::plan(RESOURCES)?;
    remark(format_args!(
        "{RESOURCES} resources, {} bytes of JSON; the step runs here without its sandbox",
        plan.len()
    ));
    // Once each first, over nothing: the program is in memory, and what it holds idle is known.
    let nothing = large_plan::plan(0)?;
    let idle = inspect(&nothing, 0)?.peak;
    let idle_tree = read(&nothing, 0)?.peak;
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..bench.n {
        ours.push(inspect(&plan, RESOURCES)?);
        bare.push(read(&plan, RESOURCES)?);
    }
    let time = |taken: &[Taken]| taken.iter().map(|one| one.time).collect::<Vec<Duration>>();
    let above = |taken: &[Taken], idle: u64| {
        let peaks = taken.iter().map(|one| one.peak.saturating_sub(idle));
        peaks.collect::<Vec<u64>>()
    };
    Ok(vec![
        seconds(
            "plan-diff of 5,000 resources",
            &time(&ours),
            Some(&time(&bare)),
        ),
        mebibytes(
            "memory of that process above idle, peak",
            &above(&ours, idle),
            Some(&above(&bare, idle_tree)),
        ),
        mebibytes("memory of that process, idle", &[idle], Some(&[idle_tree])),
    ])
}

fn inspect(plan: &str, resources: usize) -> Result<Taken, Failure> {
    Ok(inspected(&std::env::current_exe()?, plan, resources)?.0)
}

/// The step over a plan: what it took, and the directory with what it made.
fn inspected(program: &Path, plan: &str, resources: usize) -> Result<(Taken, TempDir), Failure> {
    let directory = directory(plan)?;
    let mut command = Command::new(program);
    command.arg(redact::ARGUMENT).arg(directory.path());
    let (taken, printed) = program::run(&mut command)?;
    let summary: Summary = serde_json::from_slice(&printed)?;
    let changed = usize::try_from(summary.counts.change)?;
    if changed == resources && summary.doubtful == 0 && summary.has_policy_input {
        Ok((taken, directory))
    } else {
        Err(format!("the plan was not read as it is: {summary:?}").into())
    }
}

/// The plan as policies see it.
pub fn policy_input(plan: &str, resources: usize) -> Result<Vec<u8>, Failure> {
    let (_, directory) = inspected(&std::env::current_exe()?, plan, resources)?;
    Ok(std::fs::read(directory.path().join(POLICY_INPUT_FILE))?)
}

fn directory(plan: &str) -> Result<TempDir, Failure> {
    let directory = tempfile::tempdir()?;
    std::fs::write(directory.path().join(PLAN_JSON_FILE), plan)?;
    let secrets = serde_json::to_vec(SECRETS)?;
    std::fs::write(directory.path().join(SECRETS_FILE), secrets)?;
    Ok(directory)
}

fn read(plan: &str, resources: usize) -> Result<Taken, Failure> {
    let directory = directory(plan)?;
    let mut command = Command::new(std::env::current_exe()?);
    command
        .arg(PARSE)
        .arg(directory.path().join(PLAN_JSON_FILE));
    let (taken, printed) = program::run(&mut command)?;
    if String::from_utf8(printed)?.trim() == resources.to_string() {
        Ok(taken)
    } else {
        Err("the baseline did not read the plan".into())
    }
}
