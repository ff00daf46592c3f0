//! `stackship bench`: what the product costs, as a ratio to the same work done bare in the same run.

mod audit;
mod bare;
mod figures;
mod json_output;
mod large_plan;
mod leaks;
mod memory;
mod plan_diff;
mod policy;
mod product;
mod program;
mod review;
mod run;
mod runs;
mod scripted;
mod served;
mod terminal;
mod workspace;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

pub use plan_diff::run_helper_if_asked;

use self::figures::Figure;
use crate::Failure;

/// What to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Benchmark {
    /// A run of 20 resources through the API, from upload to applied, approved at once, against the
    /// same OpenTofu commands bare; interleaved.
    Run,
    /// The same run as `tofu apply` in a pseudo-terminal, answered at once, above what the CLI itself
    /// waits.
    Terminal,
    /// Verification of an audit of 200,000 entries, against one SHA-256 over the same bytes. Measure a
    /// release build.
    Audit,
    /// Making a workspace anew from 10,000 stored events, against making it from 100. Measure a release
    /// build.
    Workspace,
    /// A review among 100,000 runs that ask, read over HTTP, against reading its row bare. Measure a
    /// release build.
    Review,
    /// Pages of a list of 1,000,000 runs, read over HTTP, against the same pages read bare. Measure a
    /// release build.
    Runs,
    /// A plan as JSON of 100 MiB, the largest there is, through `/api/v2`, against reading the same file;
    /// and what the server's process takes of memory for it, above idle. Measure a release build.
    JsonOutput,
    /// What people and policies may see of a plan of 5,000 resources, made by the step that makes it in a
    /// sandbox, against reading the same JSON into a tree; and what either process takes of memory.
    /// Measure a release build.
    PlanDiff,
    /// Three policies over a plan of 5,000 resources in the limited process, against the same over an empty
    /// plan; and what that process takes of memory. Measure a release build.
    Policy,
    /// Secrets that come out of random plans with secrets planted in them, 1,000 plans for each of N, against
    /// how many were planted. Fails unless there are none.
    Leaks,
}

/// How to measure.
#[derive(Debug, Clone, Args)]
pub struct Bench {
    /// What to measure.
    pub name: Benchmark,
    /// How many pairs of measurements, or thousands of plans.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub n: u16,
    /// Print one JSON object a figure instead of a table.
    #[arg(long)]
    pub json: bool,
    /// Where the random plans begin, to have the same ones again.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Directory with verified OpenTofu releases (VERSION/tofu), for what runs OpenTofu.
    #[arg(long, env = "STACKSHIP_TOFU__MIRROR", value_name = "DIR",
        required_if_eq_any([("name", "run"), ("name", "terminal")]))]
    pub mirror: Option<PathBuf>,
}

impl Bench {
    /// Where OpenTofu releases are.
    fn mirror(&self) -> Result<&Path, Failure> {
        let missing = "--mirror: this measurement runs OpenTofu and needs its releases";
        self.mirror.as_deref().ok_or_else(|| missing.into())
    }

    /// The OpenTofu that both sides run.
    fn tofu(&self) -> Result<PathBuf, Failure> {
        let version = crate::settings::Settings::default().default_tofu_version;
        Ok(self.mirror()?.join(version).join("tofu"))
    }
}

/// Measures and prints.
pub async fn bench(command: Bench) -> Result<(), Failure> {
    let figures = match command.name {
        Benchmark::Run => run::measure(&command).await?,
        Benchmark::Terminal => terminal::measure(&command).await?,
        Benchmark::Audit => audit::measure(&command)?,
        Benchmark::Workspace => workspace::measure(&command).await?,
        Benchmark::Review => review::measure(&command).await?,
        Benchmark::Runs => runs::measure(&command).await?,
        Benchmark::JsonOutput => json_output::measure(&command).await?,
        Benchmark::PlanDiff => plan_diff::measure(&command)?,
        Benchmark::Policy => policy::measure(&command).await?,
        Benchmark::Leaks => leaks::measure(&command)?,
    };
    if command.json {
        figures::print_json(&figures)?;
    } else {
        figures::print_table(&figures)?;
    }
    if command.name == Benchmark::Leaks && !figures.iter().all(Figure::is_zero) {
        return Err("secrets came out of plans".into());
    }
    Ok(())
}
