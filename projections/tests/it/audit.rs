//! The audit's chain and its pages.

use serde_json::{Value, json};
use sqlx::PgPool;
use stackship_domain::Sha256Digest;
use stackship_domain::run::samples;
use stackship_projections::audit::{AuditFilter, CHAIN_START, audit_on_disk, link};
use stackship_projections::{BATCH_EVENTS_LIVE, PAGE_ROWS_MAX};
use stackship_store::log::{FeedPosition, LoggedEvent, UnknownVersion, feed_read_as};

use crate::world::{World, pool_as};

fn event() -> LoggedEvent {
    LoggedEvent {
        at: FeedPosition {
            epoch: 1,
            transaction: 2,
            position: 3,
        },
        aggregate_type: "run".to_owned(),
        aggregate_id: "run-1".to_owned(),
        sequence: 4,
        event_type: "run_queued".to_owned(),
        event_version: "1.0".to_owned(),
        payload: json!({"of": "no importance to the chain"}),
        stored_payload: json!({
            "zeta": [null, true, false, 0, -7, 18_446_744_073_709_551_615_u64, 0.25],
            "é": "text\n\"",
            "a": {},
        }),
        organization_id: "org-1".to_owned(),
        actor: "system".to_owned(),
        request_id: "request".to_owned(),
        command_id: "command".to_owned(),
        recorded_at: samples::at(5),
    }
}

/// Computed apart from this program, from the description of the layout.
#[test]
fn the_bytes_are_the_published_ones() {
    let first = link(CHAIN_START, 1, &event());
    let second = link(first, 2, &event());
    assert_eq!(
        first.to_string(),
        "83f1198cefbe7ad6ef742273718c2a856a105e330fc534b846929567ba4ba125"
    );
    assert_eq!(
        second.to_string(),
        "b9a00adff2a0018250e7af2319d22a69ae894315cdfeb2a76768e369e5993850"
    );
}

#[test]
fn every_part_changes_the_hash() {
    let base = || (CHAIN_START, 1, event());
    let hash = |(previous, number, event): (Sha256Digest, i64, LoggedEvent)| {
        link(previous, number, &event)
    };
    let changed = |change: fn(&mut LoggedEvent)| {
        let (previous, number, mut event) = base();
        change(&mut event);
        hash((previous, number, event))
    };
    let mut hashes = vec![
        hash(base()),
        hash((Sha256Digest::of(b"other"), 1, event())),
        hash((CHAIN_START, 2, event())),
        changed(|event| event.organization_id.push('x')),
        changed(|event| event.aggregate_type.push('x')),
        changed(|event| event.aggregate_id.push('x')),
        changed(|event| event.sequence += 1),
        changed(|event| event.event_type.push('x')),
        changed(|event| event.event_version.push('1')),
        changed(|event| event.actor.push('x')),
        changed(|event| event.request_id.push('x')),
        changed(|event| event.command_id.push('x')),
        changed(|event| event.recorded_at = samples::at(6)),
        changed(|event| event.stored_payload["a"] = json!([])),
        changed(|event| event.stored_payload["a"] = json!(null)),
        changed(|event| event.stored_payload["a"] = json!({"a": {}})),
        changed(|event| event.stored_payload["b"] = json!({})),
        // What one column loses the next one gains.
        changed(|event| {
            event.request_id = "requestc".to_owned();
            event.command_id = "ommand".to_owned();
        }),
    ];
    let count = hashes.len();
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), count);
}

#[test]
fn neither_the_place_in_the_feed_nor_todays_shape_changes_the_hash() {
    let seen_otherwise = LoggedEvent {
        at: FeedPosition::default(),
        payload: json!({"in": "another shape"}),
        ..event()
    };
    assert_eq!(
        link(CHAIN_START, 1, &seen_otherwise),
        link(CHAIN_START, 1, &event())
    );
}

/// What a later release may do with every event that is there today.
#[expect(
    clippy::unnecessary_wraps,
    reason = "the type of every upcast, of which this one refuses nothing"
)]
fn later_upcast(
    _: &str,
    event_type: &str,
    version: &str,
    mut payload: Value,
) -> Result<Value, UnknownVersion> {
    payload["shape"] = json!(format!("{event_type} {version}, brought to 2.0"));
    Ok(payload)
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_release_that_reads_events_in_a_new_shape_finds_the_same_chain(pool: PgPool) {
    let world = World::new(pool);
    let tenant = world.tenant().await;
    world.applied_run(&tenant).await;
    world.fact(&tenant).await;
    world.settle().await;
    let page = world
        .views
        .audit_page(
            tenant.organization,
            &AuditFilter::default(),
            None,
            PAGE_ROWS_MAX,
        )
        .await
        .unwrap();
    assert!(page.next_cursor.is_none(), "the test reads one page only");
    let entries = page.entries.iter().rev();

    let mut connection = world.owner.acquire().await.unwrap();
    let events = feed_read_as(
        &mut connection,
        FeedPosition::default(),
        i64::from(BATCH_EVENTS_LIVE),
        later_upcast,
    )
    .await
    .unwrap();
    assert!(
        events
            .iter()
            .all(|event| event.payload["shape"].is_string())
    );
    let mut head = CHAIN_START;
    let chain = (1..).zip(&events).map(|(number, event)| {
        head = link(head, number, event);
        head
    });
    assert_eq!(
        chain.collect::<Vec<_>>(),
        entries.map(|entry| entry.hash).collect::<Vec<_>>()
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_organizations_audit_is_dense_and_read_newest_first(pool: PgPool) {
    let world = World::new(pool);
    let tenant = world.tenant().await;
    let stranger = world.tenant().await;
    world.applied_run(&tenant).await;
    world.speculative_run(&stranger).await;
    world.fact(&tenant).await;
    world.settle().await;

    let mut numbers = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let page = world
            .views
            .audit_page(
                tenant.organization,
                &AuditFilter::default(),
                cursor.as_deref(),
                4,
            )
            .await
            .unwrap();
        assert!(
            page.entries
                .iter()
                .all(|entry| entry.organization == tenant.organization)
        );
        numbers.extend(page.entries.iter().map(|entry| entry.number));
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    let mine: i64 =
        sqlx::query_scalar("select count(*) from log.events where organization_id = $1")
            .bind(tenant.organization.to_string())
            .fetch_one(&world.owner)
            .await
            .unwrap();
    assert_eq!(numbers, (1..=mine).rev().collect::<Vec<_>>());
}

/// What the log has written and what is on disk of it are told by the database itself.
#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn what_a_head_is_signed_for_is_on_disk_by_then(pool: PgPool) {
    let server = pool_as(&pool, "stackship_api", 1);
    sqlx::query("select set_config('synchronous_commit', 'off', true), pg_logical_emit_message(true, 'test', 'projected')")
        .execute(&pool)
        .await
        .unwrap();
    let written: String = sqlx::query_scalar("select pg_current_wal_insert_lsn()::text")
        .fetch_one(&pool)
        .await
        .unwrap();
    audit_on_disk(&server).await.unwrap();
    let is_on_disk: bool = sqlx::query_scalar("select pg_current_wal_flush_lsn() >= $1::pg_lsn")
        .bind(written)
        .fetch_one(&pool)
        .await
        .unwrap();
    assert!(is_on_disk);
}
