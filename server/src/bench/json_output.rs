//! `stackship bench json-output`: the largest plan as JSON through a server, against reading the same
//! bytes from a file; and how much memory the server takes for it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};
use stackship_runner_protocol::PLAN_JSON_BYTES_MAX;
use tempfile::NamedTempFile;

use super::Bench;
use super::figures::{Figure, mebibytes, seconds};
use super::product::Product;
use super::scripted;
use crate::Failure;

/// Room for reading the file, as large as a frame of an object.
const READ_BYTES: usize = 64 * 1024;

/// Measures pairs, one after the other, against one server.
pub async fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let document = document();
    let mut file = NamedTempFile::new()?;
    file.write_all(&document)?;
    let product = Product::start_without_runner().await?;
    let run = scripted::plan(&product, document).await?;
    let path = format!("/api/v2/plans/{}/json-output", run.replace("run-", "plan-"));
    // Once each first: what is made once is made, and the bytes are the right ones.
    let (mut came, mut stood) = (Sha256::new(), Sha256::new());
    download(&product, &path, |bytes| came.update(bytes)).await?;
    read(file.path(), |bytes| stood.update(bytes))?;
    if came.finalize() != stood.finalize() {
        return Err("the document that came is not the one that was handed in".into());
    }
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    let (mut peaks, mut idles) = (Vec::new(), Vec::new());
    for _ in 0..bench.n {
        let memory = product.memory()?;
        let idle = memory.forget_peak()?;
        ours.push(download(&product, &path, look).await?);
        peaks.push(memory.peak()?.saturating_sub(idle));
        idles.push(idle);
        bare.push(read(file.path(), look)?);
    }
    product.stop().await?;
    Ok(vec![
        seconds(
            "plan as JSON of 100 MiB, to its last byte",
            &ours,
            Some(&bare),
        ),
        mebibytes("memory of the server above idle, at its peak", &peaks, None),
        mebibytes("memory of the server, idle", &idles, None),
    ])
}

async fn download(
    product: &Product,
    path: &str,
    mut sink: impl FnMut(&[u8]),
) -> Result<Duration, Failure> {
    let began = Instant::now();
    let mut answer = product.get(path).await?;
    while let Some(piece) = answer.chunk().await? {
        sink(&piece);
    }
    Ok(began.elapsed())
}

/// The baseline: the same bytes out of a file that is in memory.
fn read(path: &Path, mut sink: impl FnMut(&[u8])) -> Result<Duration, Failure> {
    let began = Instant::now();
    let mut file = File::open(path)?;
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(began.elapsed()),
            read => sink(&buffer[..read]),
        }
    }
}

/// Leaves the compiler no reason to leave the reading out.
fn look(bytes: &[u8]) {
    std::hint::black_box(bytes);
}

/// A document of exactly the largest size.
fn document() -> Vec<u8> {
    const BEGIN: &[u8] = br#"{"format_version":"1.2","filling":""#;
    const END: &[u8] = br#""}"#;
    let size = usize::try_from(PLAN_JSON_BYTES_MAX).expect("100 MiB fit a usize");
    let mut document = Vec::with_capacity(size);
    document.extend_from_slice(BEGIN);
    document.resize(size - END.len(), b'x');
    document.extend_from_slice(END);
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_one_and_as_large_as_one_may_be() {
        let document = document();
        assert_eq!(document.len() as u64, PLAN_JSON_BYTES_MAX);
        assert!(serde_json::from_slice::<serde::de::IgnoredAny>(&document).is_ok());
    }
}
