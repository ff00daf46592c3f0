//! `stackship audit verify`.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sqlx::PgPool;
use stackship_projections::audit::{
    HeadLog, HeadPublicKey, Verified, VerifyError, audit_heads_after, verify_export, verify_stored,
};

use super::Verify;
use crate::Failure;
use crate::answer::{answer, remark};
use crate::database::Database;
use crate::settings::Settings;

/// Room for reading ahead.
const READ_AHEAD_BYTES: usize = 256 * 1024;
/// How many organizations are asked for at once.
const PART_ORGANIZATIONS_MAX: i64 = 500;

type Heads = HeadLog<BufReader<File>>;

/// Signed heads and what they are checked with.
struct HeadsSource {
    path: PathBuf,
    key: HeadPublicKey,
}

impl HeadsSource {
    fn new(
        settings: &Settings,
        path: PathBuf,
        key: Option<HeadPublicKey>,
    ) -> Result<Self, Failure> {
        let own = super::key_file(&settings.data_dir);
        let key = match key {
            Some(key) => key,
            None if own.is_file() => super::signing_key(&settings.data_dir)?.public(),
            None => {
                let missing = "--public-key: heads are checked with the key that `stackship audit public-key` \
                               printed where they were signed, and there is none in the data directory";
                return Err(missing.into());
            }
        };
        Ok(Self { path, key })
    }

    fn open(&self) -> Result<Heads, Failure> {
        Ok(HeadLog::new(open(&self.path)?, self.key))
    }

    /// Checks every signature, and says whose heads there are.
    fn organizations(&self) -> Result<BTreeSet<String>, Failure> {
        let (mut log, mut organizations) = (self.open()?, BTreeSet::new());
        let failed = |error| failed(&self.path.display().to_string(), error);
        while let Some(head) = log.next_head().map_err(failed)? {
            organizations.insert(head.organization);
        }
        warn_of_torn_lines(&log);
        Ok(organizations)
    }
}

/// Checks an export or the database.
pub async fn run(settings: &Settings, options: Verify) -> Result<(), Failure> {
    let Some(export) = options.export.clone() else {
        return stored(settings, options).await;
    };
    let heads = match options.heads {
        None => None,
        Some(path) => Some(HeadsSource::new(settings, path, options.public_key)?),
    };
    tokio::task::spawn_blocking(move || file(&export, heads.as_ref())).await?
}

fn file(path: &Path, heads: Option<&HeadsSource>) -> Result<(), Failure> {
    let mut heads = heads.map(HeadsSource::open).transpose()?;
    let began = Instant::now();
    let verified = verify_export(open(path)?, heads.as_mut());
    let verified = verified.map_err(|error| failed(&path.display().to_string(), error))?;
    report(&verified, began.elapsed())?;
    if let Some(heads) = &heads {
        warn_of_torn_lines(heads);
    }
    Ok(())
}

async fn stored(settings: &Settings, options: Verify) -> Result<(), Failure> {
    let kept = super::heads_file(&settings.data_dir);
    let path = options.heads.or_else(|| kept.is_file().then_some(kept));
    let heads = match path {
        None => None,
        Some(path) => Some(HeadsSource::new(settings, path, options.public_key)?),
    };
    let database = Database::join(settings).await?;
    let pool = database.auditor()?;
    let outcome = every_organization(&pool, heads.as_ref()).await;
    pool.close().await;
    database.close().await?;
    outcome
}

/// Checks one organization after the other, all of them even when one fails; those of which only
/// signed heads are left as well.
async fn every_organization(pool: &PgPool, heads: Option<&HeadsSource>) -> Result<(), Failure> {
    let mut signed = heads.map_or_else(|| Ok(BTreeSet::new()), HeadsSource::organizations)?;
    let (mut after, mut wrong, mut is_any) = (String::new(), 0_u64, !signed.is_empty());
    loop {
        let part = audit_heads_after(pool, &after, PART_ORGANIZATIONS_MAX).await?;
        let Some(last) = part.last() else { break };
        is_any = true;
        after.clone_from(&last.organization);
        for head in part {
            signed.remove(&head.organization);
            wrong += one(pool, &head.organization, heads).await?;
        }
    }
    for organization in signed {
        wrong += one(pool, &organization, heads).await?;
    }
    match wrong {
        0 if !is_any => Err("no organization has a history yet, so nothing was verified".into()),
        0 => Ok(()),
        wrong => Err(format!("{wrong} of the audits did not pass").into()),
    }
}

/// Checks one organization; says 1 when it did not pass.
async fn one(
    pool: &PgPool,
    organization: &str,
    heads: Option<&HeadsSource>,
) -> Result<u64, Failure> {
    let lines = heads.map(|heads| open(&heads.path)).transpose()?;
    let mut log = lines.map(HeadLog::checked_before);
    let began = Instant::now();
    match verify_stored(pool, organization, log.as_mut()).await {
        Ok(verified) => {
            report(&verified, began.elapsed())?;
            Ok(0)
        }
        Err(error) => {
            remark(failed(organization, error));
            Ok(1)
        }
    }
}

fn open(path: &Path) -> Result<BufReader<File>, Failure> {
    let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(BufReader::with_capacity(READ_AHEAD_BYTES, file))
}

fn report(verified: &Verified, took: Duration) -> Result<(), Failure> {
    let seconds = took.as_secs_f64().max(f64::EPSILON);
    let entries = u32::try_from(verified.entries).map_or(f64::INFINITY, f64::from);
    answer(format_args!(
        "{}: {} entries and {} signed heads verified in {seconds:.3} s ({:.0} entries/s); the last one is {}",
        verified.organization,
        verified.entries,
        verified.heads,
        entries / seconds,
        verified.hash
    ))
}

fn warn_of_torn_lines(heads: &Heads) {
    if heads.torn() > 0 {
        remark(format_args!(
            "{} lines of the heads are no heads: a crash cut them off while they were written",
            heads.torn()
        ));
    }
}

fn failed(what: &str, error: VerifyError) -> Failure {
    match error {
        VerifyError::Fault(fault) => format!("{what}: NOT verified: {fault}").into(),
        VerifyError::Read(error) => format!("{what}: could not be read to its end: {error}").into(),
    }
}
