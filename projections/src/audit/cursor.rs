//! The place where the next page of an audit begins.

use sha2::{Digest as _, Sha256};
use stackship_domain::Timestamp;
use stackship_domain::ids::{Id as _, OrganizationId};

use super::{AuditEntry, AuditFilter};
use crate::{CursorKey, PageError, sealed};

/// Tells these cursors from those of other lists; changes with the layout or the sort key.
const LABEL: &[u8] = b"audit/v1";
const ID_BYTES: usize = 16;
const FILTER_BYTES: usize = 16;
const NUMBER_BYTES: usize = 8;
const BODY_BYTES: usize = LABEL.len() + ID_BYTES + FILTER_BYTES + 2 * NUMBER_BYTES;

/// The last entry of the page before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) recorded_at: Timestamp,
    pub(super) number: i64,
}

impl From<&AuditEntry> for Cursor {
    fn from(entry: &AuditEntry) -> Self {
        Self {
            recorded_at: entry.recorded_at,
            number: entry.number,
        }
    }
}

/// The list a cursor belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct List<'a> {
    pub(super) key: &'a CursorKey,
    pub(super) organization: OrganizationId,
    pub(super) filter: &'a AuditFilter,
}

impl List<'_> {
    pub(super) fn seal(&self, cursor: Cursor) -> String {
        let mut bytes = self.header();
        bytes.extend(cursor.recorded_at.as_microsecond().to_be_bytes());
        bytes.extend(cursor.number.to_be_bytes());
        sealed::seal(self.key, bytes)
    }

    pub(super) fn open(&self, text: &str) -> Result<Cursor, PageError> {
        self.verified(text).ok_or(PageError::CursorInvalid)
    }

    fn verified(&self, text: &str) -> Option<Cursor> {
        let body = sealed::open(self.key, text, BODY_BYTES)?;
        let place = body.strip_prefix(self.header().as_slice())?;
        let (time, number) = place.split_at_checked(NUMBER_BYTES)?;
        let microseconds = i64::from_be_bytes(time.try_into().ok()?);
        Some(Cursor {
            recorded_at: Timestamp::from_microsecond(microseconds).ok()?,
            number: i64::from_be_bytes(number.try_into().ok()?),
        })
    }

    /// What is the same for every cursor of this list.
    fn header(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(BODY_BYTES);
        bytes.extend(LABEL);
        bytes.extend(self.organization.uuid().into_bytes());
        bytes.extend(&self.filter_digest()[..FILTER_BYTES]);
        bytes
    }

    fn filter_digest(&self) -> [u8; 32] {
        let filter = self.filter;
        let time = |time: Option<Timestamp>| time.map(|time| time.as_microsecond().to_string());
        let parts = [
            filter.actor.map(|actor| actor.to_string()),
            filter.run.map(|run| run.to_string()),
            filter.workspace.map(|workspace| workspace.to_string()),
            filter.event_type.clone(),
            time(filter.from),
            time(filter.to),
        ];
        let mut digest = Sha256::new();
        for part in parts {
            let part = part.unwrap_or_default();
            let bytes = u64::try_from(part.len()).expect("a length in memory fits 64 bits");
            digest.update(bytes.to_be_bytes());
            digest.update(part);
        }
        digest.finalize().into()
    }
}
