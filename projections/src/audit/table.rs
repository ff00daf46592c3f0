//! The tables of the audit. Written by the projector alone, in the order of the feed, after the runs of
//! the same batch: what an entry is about is looked up there.

use std::collections::BTreeMap;

use sqlx::PgConnection;
use stackship_domain::Sha256Digest;
use stackship_store::log::LoggedEvent;

use super::{CHAIN_START, link};
use crate::ProjectionError;
use crate::target::Target;

/// Where an organization's chain ends.
#[derive(Debug, Clone, Copy)]
struct Head {
    number: i64,
    hash: Sha256Digest,
}

/// A numbered and chained event.
struct Entry<'a> {
    event: &'a LoggedEvent,
    at: Head,
}

/// Appends these events to the audits of their organizations.
pub(crate) async fn append(
    connection: &mut PgConnection,
    target: Target,
    events: &[&LoggedEvent],
) -> Result<(), ProjectionError> {
    let mut heads = load_heads(connection, target, events).await?;
    let entries: Vec<Entry<'_>> = events
        .iter()
        .map(|event| Entry {
            event,
            at: advance(&mut heads, event),
        })
        .collect();
    insert(connection, target, &entries).await?;
    write_heads(connection, target, &heads).await
}

fn advance(heads: &mut BTreeMap<String, Head>, event: &LoggedEvent) -> Head {
    let head = heads.entry(event.organization_id.clone()).or_insert(Head {
        number: 0,
        hash: CHAIN_START,
    });
    let number = head.number + 1;
    *head = Head {
        number,
        hash: link(head.hash, number, event),
    };
    *head
}

async fn load_heads(
    connection: &mut PgConnection,
    target: Target,
    events: &[&LoggedEvent],
) -> Result<BTreeMap<String, Head>, ProjectionError> {
    let mut organizations: Vec<&str> = events.iter().map(|event| &*event.organization_id).collect();
    organizations.sort_unstable();
    organizations.dedup();
    let rows: Vec<(String, i64, Vec<u8>)> = sqlx::query_as(&target.sql(
        "select organization_id, number, hash from {view}.audit_heads where organization_id = any($1)",
    ))
    .bind(organizations)
    .fetch_all(connection)
    .await?;
    rows.into_iter()
        .map(|(organization, number, hash)| {
            let hash = super::page::digest(&hash)
                .ok_or_else(|| ProjectionError::row("audit_heads", &organization))?;
            Ok((organization, Head { number, hash }))
        })
        .collect()
}

async fn insert(
    connection: &mut PgConnection,
    target: Target,
    entries: &[Entry<'_>],
) -> Result<(), ProjectionError> {
    let texts = |pick: fn(&LoggedEvent) -> &str| {
        entries
            .iter()
            .map(|entry| pick(entry.event).to_owned())
            .collect::<Vec<_>>()
    };
    let numbers = |pick: fn(&Entry<'_>) -> i64| entries.iter().map(pick).collect::<Vec<_>>();
    let abouts = |pick: fn(&LoggedEvent) -> Option<&str>| {
        let picked = entries.iter().map(|entry| pick(entry.event));
        picked.map(|id| id.map(str::to_owned)).collect::<Vec<_>>()
    };
    let hashes: Vec<&[u8]> = entries
        .iter()
        .map(|entry| entry.at.hash.as_bytes().as_slice())
        .collect();
    let times: Vec<String> = entries
        .iter()
        .map(|entry| entry.event.recorded_at.to_string())
        .collect();
    sqlx::query(&target.sql(
        "insert into {view}.audit_entries (organization_id, number, aggregate_type, aggregate_id, sequence, \
             event_type, event_version, actor, request_id, command_id, recorded_at, global_position, hash, run_id, \
             workspace_id) \
         select new.organization_id, number, aggregate_type, aggregate_id, sequence, event_type, event_version, actor, \
             request_id, command_id, recorded_at::timestamptz, global_position, hash, new.run_id, \
             coalesce(new.workspace_id, run.workspace_id) \
         from unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[], \
             $8::text[], $9::text[], $10::text[], $11::text[], $12::bigint[], $13::bytea[], $14::text[], $15::text[]) \
             as new (organization_id, number, aggregate_type, aggregate_id, sequence, event_type, event_version, \
                 actor, request_id, command_id, recorded_at, global_position, hash, run_id, workspace_id) \
         left join {view}.run_inventory as run on run.run_id = new.run_id",
    ))
    .bind(texts(|event| &event.organization_id))
    .bind(numbers(|entry| entry.at.number))
    .bind(texts(|event| &event.aggregate_type))
    .bind(texts(|event| &event.aggregate_id))
    .bind(numbers(|entry| entry.event.sequence))
    .bind(texts(|event| &event.event_type))
    .bind(texts(|event| &event.event_version))
    .bind(texts(|event| &event.actor))
    .bind(texts(|event| &event.request_id))
    .bind(texts(|event| &event.command_id))
    .bind(times)
    .bind(numbers(|entry| entry.event.at.position))
    .bind(hashes)
    .bind(abouts(about_run))
    .bind(abouts(about_workspace))
    .execute(connection)
    .await?;
    Ok(())
}

/// The run that an event is about. Whatever it names, it is only looked for, never trusted.
fn about_run(event: &LoggedEvent) -> Option<&str> {
    match event.aggregate_type.as_str() {
        "run" => Some(&event.aggregate_id),
        _ => event.payload.get("run")?.as_str(),
    }
}

/// The workspace that an event names; that of a run is known by its inventory.
fn about_workspace(event: &LoggedEvent) -> Option<&str> {
    match event.aggregate_type.as_str() {
        "workspace" => Some(&event.aggregate_id),
        "fact" => {
            let named = event.payload.get("workspace");
            let named = named.or_else(|| event.payload.pointer("/scope/workspace"));
            named?.as_str()
        }
        _ => None,
    }
}

async fn write_heads(
    connection: &mut PgConnection,
    target: Target,
    heads: &BTreeMap<String, Head>,
) -> Result<(), ProjectionError> {
    let organizations: Vec<&str> = heads.keys().map(String::as_str).collect();
    let numbers: Vec<i64> = heads.values().map(|head| head.number).collect();
    let hashes: Vec<&[u8]> = heads
        .values()
        .map(|head| head.hash.as_bytes().as_slice())
        .collect();
    let written = sqlx::query(&target.sql(
        "insert into {view}.audit_heads as old (organization_id, number, hash) \
         select * from unnest($1::text[], $2::bigint[], $3::bytea[]) \
         on conflict (organization_id) do update set number = excluded.number, hash = excluded.hash \
         where old.number < excluded.number",
    ))
    .bind(organizations)
    .bind(numbers)
    .bind(hashes)
    .execute(connection)
    .await?
    .rows_affected();
    ProjectionError::all_written("audit_heads", heads.len(), written)
}
