//! Tampering with an audit is found, and said where: in an export, and in the database.

use std::io::{Cursor, Empty};

use serde_json::value::RawValue;
use serde_json::{Value, json};
use sqlx::PgPool;
use stackship_domain::{Sha256Digest, Timestamp};
use stackship_projections::audit::{
    CHAIN_START, ChainHead, Columns, EntryLine, ExportWriter, Fault, HeadKey, HeadLog, SignedHead,
    Verified, VerifyError, audit_heads_after, verify_export, verify_stored,
};

use crate::world::{Tenant, World};

type Lines = Vec<Vec<u8>>;
type Outcome = Result<Verified, Fault>;

fn fault(outcome: Result<Verified, VerifyError>) -> Outcome {
    outcome.map_err(|error| match error {
        VerifyError::Fault(fault) => fault,
        VerifyError::Read(error) => panic!("{error}"),
    })
}

fn check(lines: &[Vec<u8>]) -> Outcome {
    let export = Cursor::new(lines.concat());
    fault(verify_export(export, None::<&mut HeadLog<Empty>>))
}

fn check_with(lines: &[Vec<u8>], heads: &[u8], key: &HeadKey) -> Outcome {
    let mut heads = HeadLog::new(Cursor::new(heads), key.public());
    fault(verify_export(Cursor::new(lines.concat()), Some(&mut heads)))
}

fn key() -> HeadKey {
    HeadKey::from_seed(&[3; 32])
}

/// What an organization that did a few things exports: twelve entries and the head.
fn sample(reason: &str) -> Lines {
    let mut export = ExportWriter::new("org-1");
    let mut lines: Lines = (1..=12)
        .map(|number| sample_entry(&mut export, number, reason))
        .collect();
    lines.push(export.head(Timestamp::UNIX_EPOCH).unwrap());
    lines
}

fn sample_entry(export: &mut ExportWriter, number: i64, reason: &str) -> Vec<u8> {
    let payload =
        json!({"type": "note", "reason": reason, "of": [number, 0.25, null, {"é": "\n"}]});
    let payload = serde_json::value::to_raw_value(&payload).unwrap();
    let columns = Columns {
        organization: "org-1",
        aggregate_type: "fact",
        aggregate_id: "fact-1",
        sequence: number,
        event_type: "noted",
        event_version: "1.0",
        actor: "system",
        request_id: "request",
        command_id: "command",
        recorded_at: Timestamp::from_second(number).unwrap(),
    };
    export.entry(&columns, &payload).unwrap()
}

/// Heads of these positions of an export, as a file.
fn signed(lines: &[Vec<u8>], positions: &[usize]) -> Vec<u8> {
    let (mut file, mut last) = (String::new(), None::<SignedHead>);
    for position in positions {
        let entry: EntryLine<'_> = serde_json::from_slice(&lines[position - 1]).unwrap();
        let head = (
            entry.organization.clone().into_owned(),
            entry.position,
            entry.hash,
        );
        let head = key().sign(head, Timestamp::UNIX_EPOCH, last.as_ref());
        file.push_str(&head.line().unwrap());
        last = Some(head);
    }
    file.into_bytes()
}

#[test]
fn an_untouched_export_verifies_with_and_without_heads() {
    let lines = sample("because");
    let plain = check(&lines).unwrap();
    assert_eq!((plain.entries, plain.heads), (12, 0));
    let heads = signed(&lines, &[1, 5, 12]);
    let witnessed = check_with(&lines, &heads, &key()).unwrap();
    assert_eq!((witnessed.entries, witnessed.heads), (12, 3));
    let empty = [ExportWriter::new("org-1")
        .head(Timestamp::UNIX_EPOCH)
        .unwrap()];
    assert_eq!(check(&empty).unwrap().hash, CHAIN_START);
}

#[test]
fn every_changed_byte_is_found() {
    let lines = sample("because");
    for line in [0, 6, 12] {
        for at in 0..lines[line].len() {
            let mut changed = lines.clone();
            changed[line][at] ^= 1;
            assert!(check(&changed).is_err(), "byte {at} of line {line}");
        }
    }
}

#[test]
fn a_change_of_any_field_names_the_entry() {
    let lines = sample("because");
    let entry: Value = serde_json::from_slice(&lines[4]).unwrap();
    for (field, value) in entry.as_object().unwrap() {
        let mut other = entry.clone();
        other[field] = match value {
            Value::Number(number) => json!(number.as_i64().unwrap() + 100),
            Value::Object(_) => json!({"type": "note"}),
            _ if field == "recorded_at" => json!("2026-01-01T00:00:00Z"),
            _ if field.ends_with("hash") => json!(Sha256Digest::of(b"other")),
            _ => json!("other"),
        };
        let mut changed = lines.clone();
        changed[4] = other.to_string().into_bytes();
        changed[4].push(b'\n');
        let (number, found) = (5, check(&changed).unwrap_err());
        let expected = match field.as_str() {
            "position" => Fault::Missing {
                after: 4,
                found: 105,
            },
            "organization" => Fault::Foreign {
                number,
                found: "other".to_owned(),
                organization: "org-1".to_owned(),
            },
            "previous_hash" => Fault::NotChained { number },
            _ => Fault::Changed { number },
        };
        assert_eq!(found, expected, "{field}");
        assert!(found.to_string().contains('5'), "{found}");
    }
}

#[test]
fn a_payload_that_two_readers_could_read_differently_is_refused() {
    let mut lines = sample("because");
    let line = String::from_utf8(lines[2].clone()).unwrap();
    let doubled = line.replacen("\"reason\":", "\"reason\":\"other\",\"reason\":", 1);
    assert_ne!(line, doubled);
    lines[2] = doubled.into_bytes();
    assert_eq!(check(&lines).unwrap_err(), Fault::Changed { number: 3 });
}

#[test]
fn removed_added_and_reordered_entries_are_found() {
    let lines = sample("because");
    let with = |change: &dyn Fn(&mut Lines)| {
        let mut lines = lines.clone();
        change(&mut lines);
        check(&lines).unwrap_err()
    };
    let missing = |after, found| Fault::Missing { after, found };
    let out_of_place = |after, found| Fault::OutOfPlace { after, found };
    assert_eq!(with(&|lines| drop(lines.remove(0))), missing(0, 2));
    assert_eq!(with(&|lines| drop(lines.remove(6))), missing(6, 8));
    assert_eq!(with(&|lines| lines.swap(3, 4)), missing(3, 5));
    let repeat = |lines: &mut Lines| lines.insert(7, lines[3].clone());
    assert_eq!(with(&repeat), out_of_place(7, 4));
    // One that is made well: it chains to the one before, and what follows it does not.
    let made = sample("another");
    assert_eq!(
        with(&|lines| lines[6].clone_from(&made[6])),
        Fault::NotChained { number: 7 }
    );
    let head = 12;
    assert_eq!(
        with(&|lines| drop(lines.remove(11))),
        Fault::HeadDiffers {
            said: 12,
            number: 11,
            what: "the end was cut off"
        }
    );
    assert_eq!(
        with(&|lines| lines.truncate(head)),
        Fault::Cut { number: 12 }
    );
    assert_eq!(with(&|lines| lines.truncate(3)), Fault::Cut { number: 3 });
    assert_eq!(
        with(&|lines| lines.push(lines[0].clone())),
        Fault::AfterHead { line: 14 }
    );
    let torn = |lines: &mut Lines| {
        lines.truncate(4);
        lines[3].truncate(20);
    };
    assert!(matches!(with(&torn), Fault::Unreadable { line: 4, .. }));
}

#[test]
fn a_chain_that_was_written_anew_is_found_by_heads_alone() {
    let (before, after) = (sample("because"), sample("because of nothing"));
    assert!(check(&after).is_ok(), "nothing in it shows what it was");
    let heads = signed(&before, &[3, 12]);
    let time = Timestamp::UNIX_EPOCH;
    assert_eq!(
        check_with(&after, &heads, &key()).unwrap_err(),
        Fault::Rewritten { number: 3, time }
    );
}

#[test]
fn a_cut_tail_is_found_by_heads_alone() {
    let whole = sample("because");
    let mut export = ExportWriter::new("org-1");
    let mut cut: Lines = (1..=9)
        .map(|number| sample_entry(&mut export, number, "because"))
        .collect();
    cut.push(export.head(Timestamp::UNIX_EPOCH).unwrap());
    assert!(check(&cut).is_ok(), "nothing in it shows the cut");
    let time = Timestamp::UNIX_EPOCH;
    for (positions, known) in [(vec![10], 10), (vec![3, 10, 12], 12)] {
        let behind = Fault::Behind {
            number: 9,
            known,
            time,
        };
        let heads = signed(&whole, &positions);
        assert_eq!(check_with(&cut, &heads, &key()).unwrap_err(), behind);
    }
    let empty = [ExportWriter::new("org-1").head(time).unwrap()];
    let found = check_with(&empty, &signed(&whole, &[12]), &key());
    assert!(matches!(
        found,
        Err(Fault::Behind {
            number: 0,
            known: 12,
            ..
        })
    ));
}

#[test]
fn heads_that_were_tampered_with_are_found() {
    let lines = sample("because");
    let heads = signed(&lines, &[1, 5, 12]);
    let wrong = check_with(&lines, &heads, &HeadKey::from_seed(&[4; 32]));
    assert_eq!(wrong.unwrap_err(), Fault::HeadUnsigned { line: 1 });
    let split: Vec<&[u8]> = heads.split_inclusive(|byte| *byte == b'\n').collect();
    for (order, line) in [(vec![1, 2], 1), (vec![0, 2], 2), (vec![1, 0, 2], 1)] {
        let file: Vec<u8> = order
            .iter()
            .flat_map(|at: &usize| split[*at])
            .copied()
            .collect();
        let found = check_with(&lines, &file, &key()).unwrap_err();
        assert_eq!(found, Fault::HeadsBroken { line }, "{order:?}");
    }
    // Every byte of the head in the middle: what makes it unreadable is missed by the one behind it.
    for at in 0..split[1].len() - 1 {
        let mut file = heads.clone();
        file[split[0].len() + at] ^= 1;
        assert!(check_with(&lines, &file, &key()).is_err(), "byte {at}");
    }
}

#[test]
fn a_torn_last_head_counts_as_none() {
    let lines = sample("because");
    let heads = signed(&lines, &[1, 5]);
    let whole = heads.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for length in whole..heads.len() - 1 {
        let verified = check_with(&lines, &heads[..length], &key()).unwrap();
        assert_eq!(verified.heads, 1, "{length} bytes");
    }
}

/// The whole export of a tenant, part by part as a client would get it.
async fn export(world: &World, tenant: &Tenant) -> Lines {
    let now = Timestamp::UNIX_EPOCH;
    let mut export = world
        .views
        .audit_export(tenant.organization, now)
        .await
        .unwrap();
    let mut bytes = Vec::new();
    while let Some(part) = export.next_part().await.unwrap() {
        bytes.extend(part);
    }
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    lines.map(<[u8]>::to_vec).collect()
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn what_is_exported_verifies_however_much_is_appended_meanwhile(pool: PgPool) {
    let world = World::new(pool);
    let tenant = world.tenant().await;
    world.applied_run(&tenant).await;
    world.fact(&tenant).await;
    world.settle().await;
    let now = Timestamp::UNIX_EPOCH;
    let before = export(&world, &tenant).await;
    let mut running = world
        .views
        .audit_export(tenant.organization, now)
        .await
        .unwrap();
    world.speculative_run(&tenant).await;
    world.settle().await;
    let mut bytes = Vec::new();
    while let Some(part) = running.next_part().await.unwrap() {
        bytes.extend(part);
        world.fact(&tenant).await;
        world.settle().await;
    }
    assert_eq!(bytes, before.concat(), "it is what was there when it began");
    assert!(check(&before).is_ok());
    let after = export(&world, &tenant).await;
    let verified = check(&after).unwrap();
    assert!(verified.entries > check(&before).unwrap().entries);
    let number = i64::try_from(after.len() - 1).unwrap();
    assert_eq!(
        (verified.entries, verified.organization),
        (number, tenant.organization.to_string())
    );
    // An older head is met, a newer one is missed.
    let heads = signed(&after, &[2, after.len() - 1]);
    assert_eq!(check_with(&after, &heads, &key()).unwrap().heads, 2);
    assert!(matches!(
        check_with(&before, &heads, &key()),
        Err(Fault::Behind { .. })
    ));
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_export_that_meets_a_hole_fails_and_does_not_end(pool: PgPool) {
    let world = World::new(pool);
    let tenant = world.tenant().await;
    world.applied_run(&tenant).await;
    world.settle().await;
    tamper(&world, "delete from view.audit_entries where number = 7").await;
    let now = Timestamp::UNIX_EPOCH;
    let mut export = world
        .views
        .audit_export(tenant.organization, now)
        .await
        .unwrap();
    let mut handed_out = Vec::new();
    let ended = loop {
        match export.next_part().await {
            Ok(Some(part)) => handed_out.extend(part),
            other => break other,
        }
    };
    assert!(ended.is_err());
    assert!(
        export.next_part().await.unwrap().is_none(),
        "it goes on behind the hole"
    );
    let found = fault(verify_export(
        Cursor::new(handed_out),
        None::<&mut HeadLog<Empty>>,
    ));
    assert!(matches!(found, Err(Fault::Cut { .. })));
}

/// What somebody with the rights of the owner can do.
async fn tamper(world: &World, statement: &str) {
    use sqlx::Executor as _;
    let mut transaction = world.owner.begin().await.unwrap();
    let statement = format!("set local session_replication_role = replica; {statement}");
    transaction.execute(statement.as_str()).await.unwrap();
    transaction.commit().await.unwrap();
}

async fn check_stored(world: &World, tenant: &Tenant, heads: Option<&[u8]>) -> Outcome {
    let auditor = crate::world::pool_as(&world.owner, "stackship_auditor", 1);
    let mut log = heads.map(|heads| HeadLog::new(Cursor::new(heads), key().public()));
    let organization = tenant.organization.to_string();
    fault(verify_stored(&auditor, &organization, log.as_mut()).await)
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn tampering_with_the_database_is_found_and_named(pool: PgPool) {
    let world = World::new(pool);
    let tenant = world.tenant().await;
    let stranger = world.tenant().await;
    world.applied_run(&tenant).await;
    world.fact(&tenant).await;
    world.fact(&stranger).await;
    world.settle().await;
    let number = check_stored(&world, &tenant, None).await.unwrap().entries;
    let (of, at) = (
        format!("organization_id = '{}'", tenant.organization),
        "(aggregate_type, aggregate_id, sequence) = (select aggregate_type, aggregate_id, sequence \
         from view.audit_entries where number = 5 and",
    );
    for (change, back, expected) in [
        (
            format!("update log.events set payload = payload || '{{\"x\": 1}}' where {at} {of})"),
            format!("update log.events set payload = payload - 'x' where {at} {of})"),
            Fault::Changed { number: 5 },
        ),
        (
            format!(
                "update log.events set recorded_at = recorded_at + interval '1 us' where {at} {of})"
            ),
            format!(
                "update log.events set recorded_at = recorded_at - interval '1 us' where {at} {of})"
            ),
            Fault::Changed { number: 5 },
        ),
        (
            format!(
                "update log.events set metadata = metadata || '{{\"actor\": \"operator\"}}' where {at} {of})"
            ),
            format!(
                "update log.events set metadata = metadata || '{{\"actor\": \"{}\"}}' where {at} {of})",
                tenant.person
            ),
            Fault::Changed { number: 5 },
        ),
        (
            format!("update view.audit_entries set actor = 'operator' where number = 5 and {of}"),
            format!(
                "update view.audit_entries set actor = '{}' where number = 5 and {of}",
                tenant.person
            ),
            Fault::Changed { number: 5 },
        ),
        (
            format!(
                "update view.audit_entries set number = number + 1000 where number = 5 and {of}"
            ),
            format!(
                "update view.audit_entries set number = number - 1000 where number > 1000 and {of}"
            ),
            Fault::Missing { after: 4, found: 6 },
        ),
        (
            format!("update view.audit_heads set number = number - 1 where {of}"),
            format!("update view.audit_heads set number = number + 1 where {of}"),
            Fault::HeadDiffers {
                said: number - 1,
                number: number - 1,
                what: "the end was cut off, or its head was changed",
            },
        ),
    ] {
        tamper(&world, &change).await;
        let found = check_stored(&world, &tenant, None).await;
        assert_eq!(found.unwrap_err(), expected, "{change}");
        assert!(check_stored(&world, &stranger, None).await.is_ok());
        tamper(&world, &back).await;
        assert!(check_stored(&world, &tenant, None).await.is_ok(), "{back}");
    }
    tamper(&world, &format!("delete from log.events where {at} {of})")).await;
    let found = check_stored(&world, &tenant, None).await;
    assert_eq!(found.unwrap_err(), Fault::EventMissing { number: 5 });
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_cut_in_the_database_is_found_by_what_is_left(pool: PgPool) {
    let world = World::new(pool);
    let tenant = world.tenant().await;
    world.applied_run(&tenant).await;
    world.settle().await;
    let lines = export(&world, &tenant).await;
    let last = lines.len() - 1;
    let heads = signed(&lines, &[2, last]);
    assert_eq!(
        check_stored(&world, &tenant, Some(&heads))
            .await
            .unwrap()
            .heads,
        2
    );
    let cut = format!(
        "with gone as (delete from view.audit_entries where number = {last} returning *), \
              less as (update view.audit_heads set number = {last} - 1, hash = \
                  (select hash from view.audit_entries where number = {last} - 1)) \
         select 1 from gone"
    );
    tamper(&world, &cut).await;
    let found = check_stored(&world, &tenant, None).await.unwrap_err();
    assert!(matches!(found, Fault::EntryMissing { .. }), "{found}");
    // With the event the last witness inside of the database is gone.
    let event: (String, String, i64) = sqlx::query_as(
        "select aggregate_type, aggregate_id, sequence from log.events \
         order by epoch desc, transaction_id desc, global_position desc limit 1",
    )
    .fetch_one(&world.owner)
    .await
    .unwrap();
    let delete = format!(
        "delete from log.events where aggregate_type = '{}' and aggregate_id = '{}' and sequence = {}",
        event.0, event.1, event.2
    );
    tamper(&world, &delete).await;
    assert!(check_stored(&world, &tenant, None).await.is_ok());
    let found = check_stored(&world, &tenant, Some(&heads))
        .await
        .unwrap_err();
    assert!(matches!(found, Fault::Behind { .. }), "{found}");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn heads_are_listed_by_the_part(pool: PgPool) {
    let world = World::new(pool);
    let mut expected = Vec::new();
    for _ in 0..3 {
        let tenant = world.tenant().await;
        world.fact(&tenant).await;
        expected.push(tenant.organization.to_string());
    }
    world.settle().await;
    expected.sort();
    let (mut found, mut after) = (Vec::new(), String::new());
    loop {
        let part: Vec<ChainHead> = audit_heads_after(&world.owner, &after, 2).await.unwrap();
        let Some(last) = part.last() else { break };
        after.clone_from(&last.organization);
        found.extend(part.into_iter().map(|head| head.organization));
    }
    assert_eq!(found, expected);
}

/// Numbers are hashed as they were read; an export must not lose a bit of them on the way.
#[test]
fn numbers_keep_their_bits_on_the_way() {
    let mut export = ExportWriter::new("org-1");
    let text = r#"{"a": 0.1000000000000000055511151231257827, "b": 1e23, "c": 9007199254740993, "d": 5e-324}"#;
    let payload = RawValue::from_string(text.to_owned()).unwrap();
    let columns = Columns {
        organization: "org-1",
        aggregate_type: "fact",
        aggregate_id: "fact-1",
        sequence: 1,
        event_type: "noted",
        event_version: "1.0",
        actor: "system",
        request_id: "request",
        command_id: "command",
        recorded_at: Timestamp::UNIX_EPOCH,
    };
    let mut lines = vec![export.entry(&columns, &payload).unwrap()];
    assert!(
        String::from_utf8_lossy(&lines[0]).contains(text),
        "the text is kept"
    );
    lines.push(export.head(Timestamp::UNIX_EPOCH).unwrap());
    assert!(check(&lines).is_ok());
}
