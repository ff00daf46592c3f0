//! `stackship bench`: what the product costs, as a ratio to the same work done bare in the same run.

mod audit;
mod bare;
mod figures;
mod product;
mod review;
mod run;
mod runs;
mod served;
mod terminal;
mod workspace;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

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
    /// A review among 100,000 runs that ask, read over HTTP, against reading its row bare. Measure a
    /// release build.
    Review,
    /// Pages of a list of 1,000,000 runs, read over HTTP, against the same pages read bare. Measure a
    /// release build.
    Runs,
    /// Making a workspace anew from 10,000 stored events, against making it from 100. Measure a release
    /// build.
    Workspace,
}

/// How to measure.
#[derive(Debug, Clone, Args)]
pub struct Bench {
    /// What to measure.
    pub name: Benchmark,
    /// How many pairs of measurements.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub n: u16,
    /// Print one JSON object a figure instead of a table.
    #[arg(long)]
    pub json: bool,
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
        Benchmark::Review => review::measure(&command).await?,
        Benchmark::Runs => runs::measure(&command).await?,
        Benchmark::Workspace => workspace::measure(&command).await?,
    };
    if command.json {
        figures::print_json(&figures);
    } else {
        figures::print_table(&figures);
    }
    Ok(())
}
