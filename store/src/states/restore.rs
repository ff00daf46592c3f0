//! The content of an older state under another serial. Nothing else of it is touched: not a byte before
//! the serial's digits and not a byte after them.

use std::io;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use futures::TryStreamExt as _;
use stackship_domain::Sha256Digest;
use stackship_domain::ids::ObjectId;
use tokio_util::io::StreamReader;

use super::{Found, Identity, STATE_BYTES_MAX, Scanner, StateVersionRow};
use crate::objects::{NewObject, ObjectError, ObjectKind, ObjectReader};
use crate::{Store, StoreError};

/// A stored state with another serial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restored {
    /// Where its bytes are.
    pub object: ObjectId,
    /// SHA-256 of them.
    pub sha256: Sha256Digest,
}

/// Why a state cannot have another serial.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// OpenTofu wants the serial outside to be the one inside, and only its key opens the inside.
    #[error(
        "the state is encrypted by OpenTofu, and its serial cannot be changed without OpenTofu's key"
    )]
    Encrypted,
    /// A failure of ours.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<ObjectError> for RestoreError {
    fn from(error: ObjectError) -> Self {
        Self::Store(error.into())
    }
}

/// Stores the bytes of `row` once more, with `serial` in place of their own; in constant memory.
pub async fn under_serial(
    store: &Store,
    row: &StateVersionRow,
    serial: i64,
) -> Result<Restored, RestoreError> {
    let found = look_at(store, row).await?;
    if found.is_encrypted {
        return Err(RestoreError::Encrypted);
    }
    let mut splice = Splice {
        place: found.serial_at,
        digits: serial.to_string(),
        passed: 0,
    };
    let written = Mutex::new(Scanner::default());
    let bytes = open(store, row)
        .await?
        .map_ok(|frame| splice.pass(&frame))
        .inspect_ok(|frame| {
            written
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .feed(frame);
        })
        .map_err(io::Error::other);
    let new = NewObject {
        organization: row.organization,
        workspace: Some(row.workspace),
        kind: ObjectKind::State,
        bytes_max: STATE_BYTES_MAX,
    };
    let stored = store.objects.put(new, StreamReader::new(bytes)).await?;
    let expected = Identity {
        serial,
        lineage: row.lineage.clone(),
    };
    let written = written.into_inner().unwrap_or_else(PoisonError::into_inner);
    if written.finish() != Some(expected) {
        return Err(inconsistent(row, "serial").into());
    }
    Ok(Restored {
        object: stored.id,
        sha256: stored.sha256,
    })
}

async fn look_at(store: &Store, row: &StateVersionRow) -> Result<Found, RestoreError> {
    let mut reader = open(store, row).await?;
    let mut scanner = Scanner::default();
    while let Some(frame) = reader.try_next().await? {
        scanner.feed(&frame);
    }
    let is_recorded = |found: &Found| {
        found.identity.serial == row.serial && found.identity.lineage == row.lineage
    };
    let found = scanner.found().filter(is_recorded);
    Ok(found.ok_or_else(|| inconsistent(row, "serial"))?)
}

async fn open(store: &Store, row: &StateVersionRow) -> Result<ObjectReader, StoreError> {
    let reader = super::reader(store, row).await?;
    reader
        .filter(|reader| Some(reader.sha256()) == row.sha256)
        .ok_or_else(|| inconsistent(row, "sha256"))
}

fn inconsistent(row: &StateVersionRow, column: &'static str) -> StoreError {
    StoreError::inconsistent("record.state_versions", column, row.id)
}

/// Puts digits in place of others while bytes pass by.
struct Splice {
    place: Range<u64>,
    digits: String,
    passed: u64,
}

impl Splice {
    fn pass(&mut self, frame: &Bytes) -> Bytes {
        let end = self.passed + frame.len() as u64;
        let here = self.passed..end;
        // A position in the whole as one in this frame, or its nearer edge.
        let within = |position: u64| {
            let inside = position.clamp(here.start, here.end) - here.start;
            usize::try_from(inside).expect("a position in a frame fits")
        };
        let (before, after) = (within(self.place.start), within(self.place.end));
        let mut out = BytesMut::with_capacity(frame.len() + self.digits.len());
        out.extend_from_slice(&frame[..before]);
        if here.contains(&self.place.start) {
            out.extend_from_slice(self.digits.as_bytes());
        }
        out.extend_from_slice(&frame[after..]);
        self.passed = end;
        out.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spliced(text: &str, place: Range<u64>, digits: &str, piece: usize) -> String {
        let mut splice = Splice {
            place,
            digits: digits.to_owned(),
            passed: 0,
        };
        let pieces = text.as_bytes().chunks(piece);
        let out: Vec<u8> = pieces
            .flat_map(|piece| splice.pass(&Bytes::copy_from_slice(piece)).to_vec())
            .collect();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_the_digits_change() {
        let text = r#"{"serial":12,"a":12}"#;
        for piece in 1..=text.len() {
            let expected = r#"{"serial":345,"a":12}"#;
            assert_eq!(spliced(text, 10..12, "345", piece), expected, "{piece}");
        }
    }

    proptest! {
        #[test]
        fn every_other_byte_stays_however_the_frames_are_cut(
            before in "[a-z]{0,40}",
            old in "[0-9]{1,19}",
            after in "[a-z]{0,40}",
            new in "[0-9]{1,19}",
            piece in 1_usize..50,
        ) {
            let place = before.len() as u64..(before.len() + old.len()) as u64;
            let text = format!("{before}{old}{after}");
            prop_assert_eq!(spliced(&text, place, &new, piece), format!("{before}{new}{after}"));
        }
    }
}
