//! The bytes that are hashed. They are made here, part by part and with their lengths, so that no
//! library's way of printing JSON can change them, and so that no two events have the same bytes.
//!
//! `SHA-256(version ‖ previous hash ‖ number ‖ columns ‖ payload)`. Texts and lists are preceded by
//! their length as eight big-endian bytes. A JSON value is a letter and its content: `n`, `f`, `t`;
//! `i` with the decimal text; `d` with the eight bytes of a number that is not a whole one; `s` with
//! the text; `a` with the number of items and the items; `o` with the number of members and, sorted
//! by the bytes of their names, each name and value.
//!
//! The payload is the stored one. Today's shape is no evidence: a release that reads old events in a
//! new shape would find another chain over a log that nobody touched.
//!
//! Changing anything here needs a new version and a rebuild, and breaks every head kept outside.

use serde_json::Value;
use stackship_domain::{Sha256Digest, Timestamp};
use stackship_store::log::LoggedEvent;

/// Which layout is hashed.
pub const CHAIN_VERSION: &str = "stackship.audit/v1";
/// What the first entry of an organization is chained to.
pub const CHAIN_START: Sha256Digest = Sha256Digest::from_bytes([0; 32]);

/// What of an event is hashed beside its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns<'a> {
    /// The tenant.
    pub organization: &'a str,
    /// `run`, `workspace` or `fact`.
    pub aggregate_type: &'a str,
    /// Whose event it is.
    pub aggregate_id: &'a str,
    /// Its number within the aggregate.
    pub sequence: i64,
    /// Its name.
    pub event_type: &'a str,
    /// Version of its stored shape.
    pub event_version: &'a str,
    /// Who caused it.
    pub actor: &'a str,
    /// The request that led to it.
    pub request_id: &'a str,
    /// The command that led to it.
    pub command_id: &'a str,
    /// When it was written.
    pub recorded_at: Timestamp,
}

impl<'a> From<&'a LoggedEvent> for Columns<'a> {
    fn from(event: &'a LoggedEvent) -> Self {
        Self {
            organization: &event.organization_id,
            aggregate_type: &event.aggregate_type,
            aggregate_id: &event.aggregate_id,
            sequence: event.sequence,
            event_type: &event.event_type,
            event_version: &event.event_version,
            actor: &event.actor,
            request_id: &event.request_id,
            command_id: &event.command_id,
            recorded_at: event.recorded_at,
        }
    }
}

/// The hash of the entry with this number, chained to the hash before it.
pub fn link(previous: Sha256Digest, number: i64, event: &LoggedEvent) -> Sha256Digest {
    Linker::default().link(previous, number, &event.into(), &event.stored_payload)
}

/// Computes many hashes in the room of one.
#[derive(Debug, Default)]
pub struct Linker {
    bytes: Vec<u8>,
}

impl Linker {
    /// The hash of the entry with this number, chained to the hash before it.
    pub fn link(
        &mut self,
        previous: Sha256Digest,
        number: i64,
        columns: &Columns<'_>,
        stored_payload: &Value,
    ) -> Sha256Digest {
        let bytes = &mut self.bytes;
        bytes.clear();
        text(CHAIN_VERSION, bytes);
        bytes.extend(previous.as_bytes());
        bytes.extend(number.to_be_bytes());
        for column in [
            columns.organization,
            columns.aggregate_type,
            columns.aggregate_id,
        ] {
            text(column, bytes);
        }
        bytes.extend(columns.sequence.to_be_bytes());
        for column in [
            columns.event_type,
            columns.event_version,
            columns.actor,
            columns.request_id,
            columns.command_id,
        ] {
            text(column, bytes);
        }
        bytes.extend(columns.recorded_at.as_microsecond().to_be_bytes());
        json(stored_payload, bytes);
        Sha256Digest::of(bytes)
    }
}

fn length(items: usize, out: &mut Vec<u8>) {
    let items = u64::try_from(items).expect("a length in memory fits 64 bits");
    out.extend(items.to_be_bytes());
}

fn text(text: &str, out: &mut Vec<u8>) {
    length(text.len(), out);
    out.extend(text.as_bytes());
}

/// Total over JSON: a value that had no bytes would stop every projection.
fn json(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(b'n'),
        Value::Bool(false) => out.push(b'f'),
        Value::Bool(true) => out.push(b't'),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => {
                out.push(b'd');
                out.extend(float.to_be_bytes());
            }
            Some(_) | None => {
                out.push(b'i');
                text(&number.to_string(), out);
            }
        },
        Value::String(content) => {
            out.push(b's');
            text(content, out);
        }
        Value::Array(items) => {
            out.push(b'a');
            length(items.len(), out);
            for item in items {
                json(item, out);
            }
        }
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by_key(|(name, _)| name.as_bytes());
            out.push(b'o');
            length(sorted.len(), out);
            for (name, member) in sorted {
                text(name, out);
                json(member, out);
            }
        }
    }
}
