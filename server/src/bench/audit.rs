//! `stackship bench audit`: an export of many entries, verified, against one SHA-256 over the same
//! bytes.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use stackship_domain::{Sha256Digest, Timestamp};
use stackship_projections::audit::{Columns, ExportWriter, HeadLog, verify_export};

use super::Bench;
use super::figures::{Figure, rate, seconds};
use crate::Failure;

/// How many entries are verified.
const ENTRIES: u32 = 200_000;
/// Room for reading, the same on both sides.
const READ_BYTES: usize = 256 * 1024;
const ORGANIZATION: &str = "org-00000000000000000000000001";
const RUN: &str = "run-00000000000000000000000001";
const USER: &str = "user-00000000000000000000000001";

/// Measures pairs, one after the other, over one file that is read from memory on both sides.
pub fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("audit.ndjson");
    write(&path)?;
    // Once each first: the file is in memory for every measured pair.
    verify(&path)?;
    digest(&path)?;
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..bench.n {
        ours.push(timed(|| verify(&path))?);
        bare.push(timed(|| digest(&path))?);
    }
    Ok(vec![
        rate("audit entries verified", ENTRIES, &ours, Some(&bare)),
        seconds("200,000 entries verified", &ours, Some(&bare)),
    ])
}

fn timed(work: impl FnOnce() -> Result<(), Failure>) -> Result<Duration, Failure> {
    let began = Instant::now();
    work()?;
    Ok(began.elapsed())
}

fn verify(path: &Path) -> Result<(), Failure> {
    let export = BufReader::with_capacity(READ_BYTES, File::open(path)?);
    let verified = verify_export(export, None::<&mut HeadLog<io::Empty>>)?;
    if verified.entries == i64::from(ENTRIES) {
        Ok(())
    } else {
        Err(format!("{} entries were verified, not {ENTRIES}", verified.entries).into())
    }
}

/// The baseline: what no check of these bytes can do without.
fn digest(path: &Path) -> Result<(), Failure> {
    let (mut file, mut digest) = (File::open(path)?, Sha256::new());
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => digest.update(&buffer[..read]),
        }
    }
    std::hint::black_box(digest.finalize());
    Ok(())
}

fn write(path: &Path) -> Result<(), Failure> {
    let mut file = BufWriter::with_capacity(READ_BYTES, File::create(path)?);
    let mut export = ExportWriter::new(ORGANIZATION);
    for number in 0..ENTRIES {
        let columns = Columns {
            organization: ORGANIZATION,
            aggregate_type: "run",
            aggregate_id: RUN,
            sequence: i64::from(number) + 1,
            event_type: "approval_requested",
            event_version: "1.0",
            actor: USER,
            request_id: "0192f0c1a2b37c4d8e5f60718293a4b5",
            command_id: "0192f0c1a2b37c4d8e5f60718293a4b6",
            recorded_at: Timestamp::from_microsecond(i64::from(number) * 1_000_003)?,
        };
        file.write_all(&export.entry(&columns, &payload(number)?)?)?;
    }
    file.write_all(&export.head(Timestamp::UNIX_EPOCH)?)?;
    file.flush()?;
    Ok(())
}

/// Of the size and shape of the larger events: evidence of what is asked to be approved.
fn payload(number: u32) -> Result<Box<RawValue>, serde_json::Error> {
    let digest = Sha256Digest::of(&number.to_be_bytes());
    let payload = json!({
        "type": "approval_requested", "binding": digest, "expires_at": "2026-01-01T00:00:00Z",
        "evidence": {
            "plan": digest, "plan_json": digest, "policy_result": digest, "configuration": digest,
            "inputs": digest, "dependencies": digest, "tofu_version": "1.12.6",
            "predecessor": {"kind": "version", "serial": number, "digest": digest},
        },
    });
    serde_json::value::to_raw_value(&payload)
}
