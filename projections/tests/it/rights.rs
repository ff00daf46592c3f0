//! What each role may do to the read models.

use sqlx::PgPool;
use stackship_domain::run::RunKind;

use crate::world::{World, pool_as};

/// Insufficient privilege.
const DENIED: &str = "42501";
/// Append-only.
const APPEND_ONLY: &str = "SS002";

async fn code(pool: &PgPool, statement: &str) -> Option<String> {
    let error = sqlx::query(statement).execute(pool).await.err()?;
    let database = error.as_database_error().expect("a database error");
    Some(database.code().expect("a code").into_owned())
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn read_models_are_written_by_the_projector_and_the_audit_by_nobody_twice(pool: PgPool) {
    let world = World::new(pool);
    let tenant = world.tenant().await;
    let facts = world.facts(&tenant, RunKind::Speculative).await;
    world.create(&tenant, facts).await;
    world.settle().await;
    let both = ["before", "after a rebuild"];
    for when in both {
        check(&world, when).await;
        stackship_projections::rebuild(&world.owner).await.unwrap();
    }
}

async fn check(world: &World, when: &str) {
    let api = pool_as(&world.owner, "stackship_api", 1);
    let auditor = pool_as(&world.owner, "stackship_auditor", 1);
    let projector = pool_as(&world.owner, "stackship_projector", 1);
    for table in [
        "run_review",
        "run_inventory",
        "workspace_status",
        "audit_entries",
        "audit_heads",
        "checkpoints",
    ] {
        let read = format!("select * from view.{table}");
        let delete = format!("delete from view.{table}");
        let truncate = format!("truncate view.{table}");
        for reader in [&api, &auditor, &projector] {
            assert_eq!(code(reader, &read).await, None, "{read} {when}");
            for write in [&delete, &truncate] {
                assert_eq!(
                    code(reader, write).await.as_deref(),
                    Some(DENIED),
                    "{write} {when}"
                );
            }
        }
    }
    for write in [
        "update view.run_review set doc = '{}'",
        "update view.run_inventory set status = 'applied'",
        "update view.audit_heads set number = 9",
        "update view.checkpoints set applied = 0",
        "insert into view.workspace_status (workspace_id, organization_id, fence, queue, last_sequence) \
         values ('ws', 'org', 0, '[]', 1)",
    ] {
        for reader in [&api, &auditor] {
            assert_eq!(
                code(reader, write).await.as_deref(),
                Some(DENIED),
                "{write} {when}"
            );
        }
    }
    let rewrite = "update view.audit_entries set actor = 'system'";
    assert_eq!(code(&projector, rewrite).await.as_deref(), Some(DENIED));
    for change in [
        rewrite,
        "delete from view.audit_entries",
        "truncate view.audit_entries",
    ] {
        let refused = code(&world.owner, change).await;
        assert_eq!(refused.as_deref(), Some(APPEND_ONLY), "{change} {when}");
    }
}
