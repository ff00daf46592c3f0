//! The binary: reads settings, puts the rooms together, and has no logic worth a unit test.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod admin;
mod answer;
mod audit;
mod bench;
mod cli;
mod database;
mod logging;
mod rebuild;
mod runner;
mod serve;
mod settings;

use std::process::ExitCode;

use clap::Parser as _;

use crate::answer::answer;
use crate::cli::{Cli, Command};
use crate::settings::Settings;

/// Stack of the main thread's runtime workers, in bytes: deep futures in debug builds need room.
const WORKER_STACK_BYTES: usize = 8 * 1024 * 1024;

fn main() -> ExitCode {
    // Before anything else: this binary is also the process that evaluates policies, the supervisor
    // inside a sandbox, one of its steps, and what that step is measured against.
    stackship_policy::run_helper_if_asked();
    stackship_sandbox::run_helper_if_asked();
    stackship_runner::run_helper_if_asked();
    bench::run_helper_if_asked();
    let cli = Cli::parse();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => answer::failed(&error),
    }
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn run(cli: Cli) -> Result<(), Failure> {
    if matches!(cli.command, Command::Openapi) {
        return answer(stackship_api::openapi_json());
    }
    let settings = Settings::load(cli.config.as_deref())?;
    if matches!(cli.command, Command::Settings) {
        return answer(settings::describe().trim_end());
    }
    logging::start(&settings)?;
    // One TLS provider for every client; a second installation would only say that it is there.
    drop(rustls::crypto::ring::default_provider().install_default());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(WORKER_STACK_BYTES)
        .build()?;
    runtime.block_on(async move {
        match cli.command {
            Command::Serve => serve::serve(settings).await,
            Command::Runner => runner::alone(settings).await,
            Command::Migrate => database::migrate_only(&settings).await,
            Command::Projections(cli::Projections::Rebuild) => rebuild::rebuild(&settings).await,
            Command::Audit(command) => audit::run(&settings, command).await,
            Command::Admin(command) => admin::run(&settings, command).await,
            Command::Bench(command) => bench::bench(command).await,
            Command::Openapi | Command::Settings => Ok(()),
        }
    })
}
