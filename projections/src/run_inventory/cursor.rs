//! The place where the next page begins, in a form that only this installation can make: a cursor
//! that was changed, guessed, or made for another list does not verify (S-INV-1).

use sha2::{Digest as _, Sha256};
use stackship_domain::Timestamp;
use stackship_domain::ids::{Id as _, OrganizationId, RunId};

use super::{InventoryFilter, InventoryRow};
use crate::{CursorKey, PageError, sealed};

/// Raised when the layout or the sort key changes.
const VERSION: u8 = 1;
const ID_BYTES: usize = 16;
const FILTER_BYTES: usize = 16;
const TIME_BYTES: usize = 8;
const BODY_BYTES: usize = 1 + ID_BYTES + FILTER_BYTES + TIME_BYTES + ID_BYTES;

/// The last row of the page before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) created_at: Timestamp,
    pub(super) run: RunId,
}

impl From<&InventoryRow> for Cursor {
    fn from(row: &InventoryRow) -> Self {
        Self {
            created_at: row.created_at,
            run: row.run,
        }
    }
}

/// The list a cursor belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct List<'a> {
    pub(super) key: &'a CursorKey,
    pub(super) organization: OrganizationId,
    pub(super) filter: InventoryFilter,
}

impl List<'_> {
    pub(super) fn seal(&self, cursor: Cursor) -> String {
        let mut bytes = self.header();
        bytes.extend(cursor.created_at.as_microsecond().to_be_bytes());
        bytes.extend(cursor.run.uuid().into_bytes());
        sealed::seal(self.key, bytes)
    }

    pub(super) fn open(&self, text: &str) -> Result<Cursor, PageError> {
        self.verified(text).ok_or(PageError::CursorInvalid)
    }

    fn verified(&self, text: &str) -> Option<Cursor> {
        let body = sealed::open(self.key, text, BODY_BYTES)?;
        let position = body.strip_prefix(self.header().as_slice())?;
        let (time, run) = position.split_at_checked(TIME_BYTES)?;
        let microseconds = i64::from_be_bytes(time.try_into().ok()?);
        Some(Cursor {
            created_at: Timestamp::from_microsecond(microseconds).ok()?,
            run: RunId::from_uuid(uuid::Uuid::from_slice(run).ok()?),
        })
    }

    /// What is the same for every cursor of this list.
    fn header(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(BODY_BYTES);
        bytes.push(VERSION);
        bytes.extend(self.organization.uuid().into_bytes());
        bytes.extend(&self.filter_digest()[..FILTER_BYTES]);
        bytes
    }

    fn filter_digest(&self) -> [u8; 32] {
        let status = self.filter.status.map_or("", |status| status.as_str());
        let workspace = self
            .filter
            .workspace
            .map_or(String::new(), |workspace| workspace.to_string());
        // Neither part can hold the separator.
        Sha256::digest(format!("{status}\n{workspace}")).into()
    }
}
