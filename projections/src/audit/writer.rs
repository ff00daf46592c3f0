//! Makes an export out of events, chain and all: for benchmarks, and for whoever wants to see that a
//! chain written anew is found out by signed heads alone.

use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use stackship_domain::{Sha256Digest, Timestamp};

use super::line::{self, ExportHead, HeadLine};
use super::{CHAIN_START, CHAIN_VERSION, Columns, EntryLine, Linker, strict};

/// Writes an export, line by line.
#[derive(Debug)]
pub struct ExportWriter {
    organization: String,
    number: i64,
    hash: Sha256Digest,
    bytes: Sha256,
    linker: Linker,
}

impl ExportWriter {
    /// An export of this organization, with nothing in it yet.
    pub fn new(organization: &str) -> Self {
        Self {
            organization: organization.to_owned(),
            number: 0,
            hash: CHAIN_START,
            bytes: Sha256::new(),
            linker: Linker::default(),
        }
    }

    /// The line of the next entry. The tenant is that of the export, whatever the columns say.
    pub fn entry(
        &mut self,
        columns: &Columns<'_>,
        payload: &RawValue,
    ) -> Result<Vec<u8>, serde_json::Error> {
        let columns = Columns {
            organization: &self.organization,
            ..*columns
        };
        let (number, previous_hash) = (self.number + 1, self.hash);
        let value = strict::value(payload.get())?;
        let hash = self.linker.link(previous_hash, number, &columns, &value);
        let line = line::bytes(&EntryLine {
            organization: columns.organization.into(),
            position: number,
            aggregate_type: columns.aggregate_type.into(),
            aggregate_id: columns.aggregate_id.into(),
            sequence: columns.sequence,
            event_type: columns.event_type.into(),
            event_version: columns.event_version.into(),
            actor: columns.actor.into(),
            request_id: columns.request_id.into(),
            command_id: columns.command_id.into(),
            recorded_at: columns.recorded_at,
            payload,
            previous_hash,
            hash,
        })?;
        self.bytes.update(&line);
        (self.number, self.hash) = (number, hash);
        Ok(line)
    }

    /// The line of the head, which is the last one.
    pub fn head(self, exported_at: Timestamp) -> Result<Vec<u8>, serde_json::Error> {
        let head = ExportHead {
            chain: CHAIN_VERSION.to_owned(),
            organization: self.organization,
            position: self.number,
            hash: self.hash,
            exported_at,
            sha256: CHAIN_START,
        };
        HeadLine::sealed(head, self.bytes)
    }
}
