//! The log only grows: the API's role cannot change it or choose an event's place, and even its
//! owner is refused by trigger.

use sqlx::PgPool;

use crate::support::{APPEND_ONLY, CHECK, DENIED, NOT_NULL, UNIQUE, World, refusal};

/// An INSERT of a fact with these extra columns and this metadata.
fn insert(extra_columns: &str, extra_values: &str, metadata: &str) -> String {
    format!(
        "insert into log.events \
         (aggregate_type, aggregate_id, sequence, event_type, event_version, payload, metadata{extra_columns}) \
         values ('fact', 'fact-1', 1, 'something_happened', '1.0', '{{}}', '{metadata}'{extra_values})"
    )
}

const METADATA: &str = r#"{"organization_id": "org-1", "actor": "system", "request_id": "request", "command_id": "command"}"#;

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn nobody_changes_what_was_written(pool: PgPool) {
    let world = World::new(pool).await;
    let before = world.event_count().await;
    assert!(before > 0);
    for statement in [
        "update log.events set payload = '{}'",
        "update log.events set transaction_id = '3'",
        "delete from log.events",
        "truncate log.events",
        "truncate log.events cascade",
    ] {
        assert_eq!(
            refusal(&world.store.pool, statement).await,
            DENIED,
            "{statement}"
        );
        assert_eq!(
            refusal(&world.owner, statement).await,
            APPEND_ONLY,
            "{statement}"
        );
    }
    assert_eq!(world.event_count().await, before);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn no_role_of_the_server_can_switch_the_trigger_off(pool: PgPool) {
    let world = World::new(pool).await;
    for statement in [
        "alter table log.events disable trigger events_append_only",
        "drop trigger events_append_only on log.events",
        "drop table log.events cascade",
        "create or replace function log.refuse_change() returns trigger language plpgsql as 'begin return old; end'",
        "update log.store_epoch set epoch = 2",
        "set session_replication_role = replica",
    ] {
        assert_eq!(
            refusal(&world.store.pool, statement).await,
            DENIED,
            "{statement}"
        );
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn the_api_chooses_no_place_and_no_time_for_an_event(pool: PgPool) {
    let world = World::new(pool).await;
    for (columns, values) in [
        (", transaction_id", ", '3'"),
        (", recorded_at", ", '2020-01-01'"),
        (", epoch", ", 2"),
        (", global_position", ", 1"),
        (", organization_id", ", 'org-2'"),
        (", command_id", ", 'other'"),
    ] {
        let statement = insert(columns, values, METADATA);
        // A generated column is refused for being generated, whoever asks.
        let code = refusal(&world.store.pool, &statement).await;
        assert!(code == DENIED || code == "428C9", "{columns}: {code}");
    }
    sqlx::raw_sql(&insert("", "", METADATA))
        .execute(&world.store.pool)
        .await
        .unwrap();
    assert_eq!(
        refusal(&world.store.pool, &insert("", "", METADATA)).await,
        UNIQUE,
        "the place was taken"
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_event_says_who_for_whom_and_why(pool: PgPool) {
    let world = World::new(pool).await;
    let before = world.event_count().await;
    for metadata in [
        "{}",
        r#"{"actor": "system", "request_id": "request", "command_id": "command"}"#,
        r#"{"organization_id": "acme", "actor": "system", "request_id": "request", "command_id": "command"}"#,
        r#"{"organization_id": "org-1", "request_id": "request", "command_id": "command"}"#,
        r#"{"organization_id": "org-1", "actor": "", "request_id": "request", "command_id": "command"}"#,
        r#"{"organization_id": "org-1", "actor": "system", "command_id": "command"}"#,
        r#"{"organization_id": "org-1", "actor": "system", "request_id": "request"}"#,
        r#"{"organization_id": "org-1", "actor": "system", "request_id": "", "command_id": "command"}"#,
        "[]",
        "null",
    ] {
        for pool in [&world.store.pool, &world.owner] {
            let code = refusal(pool, &insert("", "", metadata)).await;
            assert!(code == CHECK || code == NOT_NULL, "{metadata}: {code}");
        }
    }
    assert_eq!(world.event_count().await, before);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn projectors_and_auditors_write_nothing_here(pool: PgPool) {
    let world = World::new(pool).await;
    for role in ["stackship_projector", "stackship_auditor"] {
        let insert = insert("", "", METADATA);
        for statement in [
            insert.as_str(),
            "delete from log.events",
            "update record.users set login = 'x'",
        ] {
            let as_role = format!("set local role {role}; {statement}");
            assert_eq!(refusal(&world.owner, &as_role).await, DENIED, "{as_role}");
        }
    }
}
