//! `stackship audit`: whether the history is what was written, asked of an export, of the database
//! and of the heads that are signed outside of it.

mod heads;
mod keeper;
mod replay;
mod verify;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use stackship_domain::ids::RunId;
use stackship_projections::audit::{HeadKey, HeadPublicKey};
use stackship_store::objects::secret_load_or_create;

use crate::Failure;
use crate::answer::answer;
use crate::settings::Settings;

pub use keeper::Keeper;

/// What to ask of the history.
#[derive(Debug, Subcommand)]
pub enum Audit {
    /// Check that nothing in the history was changed, removed, added or moved: in an export, without
    /// any database, or, without --export, in the database against the log itself. With signed heads
    /// also that the end was not cut off and nothing was written anew. Ends with 1 and the first
    /// entry that is wrong.
    Verify(Verify),
    /// Make a run's review again from the log, as of its newest event or an earlier one, print it as
    /// JSON, and compare it with the stored one. Ends with 1 and the first field that differs.
    Replay(Replay),
    /// Print the public key that this installation's heads are checked with. Keep it elsewhere.
    PublicKey,
}

/// What is checked.
#[derive(Debug, Args)]
pub struct Verify {
    /// An export: what `GET /v1/organizations/{organization}/audit-events/export` answered.
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
    /// Signed heads, best a copy that is kept elsewhere. Without --export, those in the data directory
    /// are taken when there are any.
    #[arg(long, value_name = "FILE")]
    heads: Option<PathBuf>,
    /// What the heads were signed with, as `stackship audit public-key` printed it. Without it the key
    /// in the data directory is taken.
    #[arg(long, value_name = "HEX")]
    public_key: Option<HeadPublicKey>,
}

/// What is made again.
#[derive(Debug, Args)]
pub struct Replay {
    /// The run.
    #[arg(long)]
    run: RunId,
    /// As of this event of the run; its newest one otherwise.
    #[arg(long, value_name = "SEQUENCE", value_parser = clap::value_parser!(i64).range(1..))]
    at: Option<i64>,
    /// As of this position of the organization's history.
    #[arg(long, value_name = "POSITION", conflicts_with = "at",
        value_parser = clap::value_parser!(i64).range(1..))]
    at_position: Option<i64>,
}

/// Carries out one command.
pub async fn run(settings: &Settings, command: Audit) -> Result<(), Failure> {
    match command {
        Audit::Verify(options) => verify::run(settings, options).await,
        Audit::Replay(options) => replay::run(settings, &options).await,
        Audit::PublicKey => public_key(settings),
    }
}

/// Only a server makes a key: one that is made here, beside the installation that was meant, would be kept
/// and never fit.
fn public_key(settings: &Settings) -> Result<(), Failure> {
    let file = key_file(&settings.data_dir);
    if !file.is_file() {
        return Err(format!(
            "there is no `{}`, which `stackship serve` makes at its first start; name the installation with \
             --config, or its directory with STACKSHIP_DATA_DIR",
            file.display()
        )
        .into());
    }
    answer(signing_key(&settings.data_dir)?.public())
}

/// Where heads are written.
fn heads_file(data_dir: &Path) -> PathBuf {
    data_dir.join("audit-heads.ndjson")
}

fn key_file(data_dir: &Path) -> PathBuf {
    data_dir.join("keys").join("audit-heads.key")
}

/// The key that heads are signed with. A file of its own: what reads objects need not sign, and a new
/// key for objects must not make old heads unreadable.
fn signing_key(data_dir: &Path) -> Result<HeadKey, Failure> {
    let seed = secret_load_or_create(&key_file(data_dir))?;
    Ok(HeadKey::from_seed(&seed))
}
