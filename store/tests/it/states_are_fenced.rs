//! State is written by an applying run under the current fence and published by the log alone.

use sqlx::PgPool;
use stackship_domain::run::{Predecessor, RunKind};
use stackship_domain::workspace::{Command, StateHead};
use stackship_store::attempts::{self, RunPrincipal};
use stackship_store::log::CommandError;
use stackship_store::states::{self, Arrival, NewState, PutError, StateStatus, StateVersionRow};
use stackship_store::{StoreError, Violation};

use crate::support::{CHECK, DENIED, NOT_NOW, PINNED, STALE_FENCE, World, refusal, violation};

fn new_state(principal: RunPrincipal, serial: i64) -> NewState {
    NewState {
        principal,
        serial,
        lineage: "lineage".to_owned(),
        md5: "0".repeat(32),
        outputs: None,
    }
}

async fn principal(world: &World) -> RunPrincipal {
    let (run, fence) = world.run_with_lock().await;
    let lease = world.leased_apply(run, fence).await;
    attempts::by_run_token(&world.store, &lease.run_token)
        .await
        .unwrap()
        .unwrap()
}

async fn stage(
    world: &World,
    principal: RunPrincipal,
    row: &StateVersionRow,
) -> Result<StateVersionRow, PutError> {
    states::stage(
        &world.store,
        principal,
        row.id,
        (Arrival::Uploaded, b"{}".as_slice()),
        async |_: &StateVersionRow| Ok(()),
    )
    .await
}

fn publish(principal: RunPrincipal, row: &StateVersionRow) -> Command {
    Command::PublishState {
        run: principal.run,
        fence: principal.fence.unwrap(),
        predecessor: Predecessor::None,
        state: StateHead {
            version: row.id,
            serial: row.serial,
            lineage: row.lineage.clone(),
            digest: row.sha256.unwrap(),
        },
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_staged_state_becomes_current_by_its_event(pool: PgPool) {
    let world = World::new(pool).await;
    let principal = principal(&world).await;
    let begun = states::begin(&world.store, new_state(principal, 1))
        .await
        .unwrap();
    assert_eq!(begun.status, StateStatus::Pending);
    assert_eq!(
        states::begin(&world.store, new_state(principal, 1))
            .await
            .unwrap()
            .id,
        begun.id
    );
    let staged = stage(&world, principal, &begun).await.unwrap();
    assert_eq!(staged.status, StateStatus::Staged);
    assert!(
        states::current(&world.store, world.organization, world.workspace)
            .await
            .unwrap()
            .is_none()
    );
    world.command_workspace(publish(principal, &staged)).await;
    let current = states::current(&world.store, world.organization, world.workspace)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (current.id, current.status),
        (begun.id, StateStatus::Published)
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_stale_fence_begins_stages_and_publishes_nothing(pool: PgPool) {
    let world = World::new(pool).await;
    let principal = principal(&world).await;
    let fence = principal.fence.unwrap();
    let first = states::begin(&world.store, new_state(principal, 1))
        .await
        .unwrap();
    let staged = stage(&world, principal, &first).await.unwrap();
    let pending = states::begin(&world.store, new_state(principal, 2))
        .await
        .unwrap();
    world.release(principal.run, fence).await;
    world.run_with_lock().await;

    let begun = states::begin(&world.store, new_state(principal, 3)).await;
    assert_eq!(violation(begun), Violation::StaleFence);
    let outcome = stage(&world, principal, &pending).await;
    assert!(
        matches!(
            outcome,
            Err(PutError::Store(StoreError::Refused(Violation::StaleFence)))
        ),
        "{outcome:?}"
    );
    let outcome = world
        .store
        .workspaces
        .execute(
            world.workspace,
            publish(principal, &staged),
            &world.context(),
        )
        .await;
    assert!(
        matches!(outcome, Err(CommandError::Refused(_))),
        "{outcome:?}"
    );
    let event = stackship_domain::workspace::Event::StatePublished {
        run: principal.run,
        fence,
        state: StateHead {
            version: staged.id,
            serial: 2,
            lineage: "lineage".to_owned(),
            digest: staged.sha256.unwrap(),
        },
    };
    let place = ("workspace", world.workspace.to_string(), 1000);
    let payload = serde_json::to_value(&event).unwrap();
    let raw = crate::no_apply_without_approval::insert_raw(
        &world,
        &world.store.pool,
        place,
        event.name(),
        payload,
    )
    .await;
    assert_eq!(
        crate::support::code(&raw.unwrap_err()),
        STALE_FENCE,
        "past the rules"
    );
    assert!(
        states::current(&world.store, world.organization, world.workspace)
            .await
            .unwrap()
            .is_none()
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn no_state_is_written_after_the_attempt_is_closed(pool: PgPool) {
    let world = World::new(pool).await;
    let principal = principal(&world).await;
    let pending = states::begin(&world.store, new_state(principal, 1))
        .await
        .unwrap();
    attempts::record_result(&world.store, principal.attempt, &serde_json::json!({}))
        .await
        .unwrap();
    assert_eq!(
        violation(states::begin(&world.store, new_state(principal, 2)).await),
        Violation::StaleFence
    );
    let outcome = stage(&world, principal, &pending).await;
    assert!(
        matches!(
            outcome,
            Err(PutError::Store(StoreError::Refused(Violation::StaleFence)))
        ),
        "{outcome:?}"
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn nobody_but_the_log_publishes_a_state(pool: PgPool) {
    let world = World::new(pool).await;
    let principal = principal(&world).await;
    let begun = states::begin(&world.store, new_state(principal, 1))
        .await
        .unwrap();
    let staged = stage(&world, principal, &begun).await.unwrap();
    let api = &world.store.pool;
    assert_eq!(
        refusal(api, "update record.state_versions set status = 'published'").await,
        NOT_NOW
    );
    let with_time = "update record.state_versions set status = 'published', published_at = now()";
    assert_eq!(refusal(api, with_time).await, DENIED);
    let current = format!(
        "update record.workspaces set current_state_version_id = '{}'",
        staged.id
    );
    assert_eq!(refusal(api, &current).await, DENIED);
    let born_published = format!(
        "insert into record.state_versions (state_version_id, organization_id, workspace_id, run_id, fence, serial, \
             lineage, md5, status, published_at, object_id) \
         select 'sv-x', organization_id, workspace_id, run_id, fence, 9, lineage, md5, 'published', now(), object_id \
         from record.state_versions where state_version_id = '{}'",
        staged.id
    );
    assert_eq!(refusal(api, &born_published).await, NOT_NOW);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_state_that_was_written_stays_as_it_is(pool: PgPool) {
    let world = World::new(pool).await;
    let principal = principal(&world).await;
    let begun = states::begin(&world.store, new_state(principal, 1))
        .await
        .unwrap();
    let staged = stage(&world, principal, &begun).await.unwrap();
    world.command_workspace(publish(principal, &staged)).await;
    for change in [
        "serial = 7",
        "lineage = 'other'",
        "md5 = repeat('1', 32)",
        "fence = fence + 1",
        "object_id = null",
        "status = 'staged', published_at = null",
        "status = 'pending', published_at = null, object_id = null",
    ] {
        let statement = format!("update record.state_versions set {change}");
        assert_eq!(refusal(&world.owner, &statement).await, PINNED, "{change}");
    }
    assert_eq!(
        refusal(
            &world.store.pool,
            "update record.state_versions set serial = 7"
        )
        .await,
        DENIED
    );
    assert_eq!(
        refusal(&world.store.pool, "delete from record.state_versions").await,
        DENIED
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_speculative_run_and_an_attempt_without_a_fence_write_no_state(pool: PgPool) {
    let world = World::new(pool).await;
    let applying = principal(&world).await;
    let speculative = world.run(RunKind::Speculative).await;
    let without = RunPrincipal {
        run: speculative,
        fence: None,
        ..applying
    };
    assert_eq!(
        violation(states::begin(&world.store, new_state(without, 1)).await),
        Violation::StaleFence
    );
    let borrowed = RunPrincipal {
        run: speculative,
        ..applying
    };
    assert_eq!(
        violation(states::begin(&world.store, new_state(borrowed, 1)).await),
        Violation::StaleFence
    );
    let statement = "update record.runs set fence = 1 where kind = 'speculative'";
    assert_eq!(refusal(&world.owner, statement).await, CHECK);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_older_announcement_is_not_staged_behind_a_newer_one(pool: PgPool) {
    let world = World::new(pool).await;
    let principal = principal(&world).await;
    let begin = async |serial| states::begin(&world.store, new_state(principal, serial)).await;
    // Announced before OpenTofu's own, with a higher serial, and sent after it.
    let forged = begin(7).await.unwrap();
    let own = begin(1).await.unwrap();
    let superseded = |outcome: &Result<StateVersionRow, PutError>| {
        assert!(matches!(outcome, Err(PutError::Superseded)), "{outcome:?}");
    };
    superseded(&stage(&world, principal, &forged).await);
    stage(&world, principal, &own).await.unwrap();
    superseded(&stage(&world, principal, &forged).await);
    let newest = states::newest_staged(&world.store, principal.organization, principal.run);
    assert_eq!(newest.await.unwrap().unwrap().id, own.id);
    // Sent again, the same bytes are harmless.
    stage(&world, principal, &own).await.unwrap();

    // What is left behind is not hidden by an announcement that nobody can use any more.
    let left = begin(2).await.unwrap();
    begin(3).await.unwrap();
    superseded(&stage(&world, principal, &left).await);
    let staged = states::stage(
        &world.store,
        principal,
        left.id,
        (Arrival::LeftBehind, b"{}".as_slice()),
        async |_: &StateVersionRow| Ok(()),
    );
    assert_eq!(staged.await.unwrap().status, StateStatus::Staged);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_run_brings_no_states_without_end(pool: PgPool) {
    let world = World::new(pool).await;
    let principal = principal(&world).await;
    let first = states::begin(&world.store, new_state(principal, 1))
        .await
        .unwrap();
    assert!(states::has_room(&world.store, principal).await.unwrap());
    let json =
        async || states::keep_json(&world.store, principal, first.id, b"{}".as_slice()).await;
    json().await.unwrap();
    json().await.unwrap();
    let kept: i64 =
        sqlx::query_scalar("select count(*) from record.objects where kind = 'state_json'")
            .fetch_one(&world.owner)
            .await
            .unwrap();
    assert_eq!(kept, 1, "the same form is kept once");
    sqlx::query("update record.objects set bytes = $1 where kind = 'state_json'")
        .bind(states::STATE_BYTES_OF_RUN_MAX)
        .execute(&world.owner)
        .await
        .unwrap();
    assert!(!states::has_room(&world.store, principal).await.unwrap());
    let outcome = stage(&world, principal, &first).await;
    assert!(matches!(outcome, Err(PutError::NoRoom)), "{outcome:?}");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn the_json_form_of_a_state_is_kept_while_its_apply_is_live(pool: PgPool) {
    let world = World::new(pool).await;
    let principal = principal(&world).await;
    let first = states::begin(&world.store, new_state(principal, 1))
        .await
        .unwrap();
    stage(&world, principal, &first).await.unwrap();
    sqlx::query(
        "update record.attempts set closed_at = clock_timestamp(), close_cause = 'lease_expired'",
    )
    .execute(&world.owner)
    .await
    .unwrap();
    states::keep_json(&world.store, principal, first.id, b"{}".as_slice())
        .await
        .unwrap();
    let kept: i64 =
        sqlx::query_scalar("select count(*) from record.objects where kind = 'state_json'")
            .fetch_one(&world.owner)
            .await
            .unwrap();
    assert_eq!(kept, 0);
}
