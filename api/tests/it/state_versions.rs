//! The states of a workspace: described to whoever sees it, given out for a reason, and brought back as
//! new ones, which whatever rests on the one before does not survive.

use serde_json::{Value, json};
use sqlx::PgPool;
use stackship_domain::ids::{RunId, StateVersionId};
use stackship_domain::run::{Evidence, EvidencePart, Run, Standing, Status};
use stackship_domain::workspace::Command;
use stackship_runner_protocol::{ApplyEnd, PhaseResult, SeenState};
use stackship_store::attempts;
use stackship_store::objects::ObjectKind;
use stackship_store::records::passwords::{self, Password};
use stackship_store::states::{self, Author, StateVersionRow};
use stackship_workflow::decisions;

use crate::http::{Answer, Call};
use crate::recovery::world::{Doubtful, LINEAGE};
use crate::v2::world::Served;
use crate::world::runs::LEASE_SECONDS;
use crate::world::states::content;
use crate::world::{World, new_workspace, origin, until};

const REASON: &str = "The upgrade broke the gateway.";

fn path(world: &World, rest: &str) -> String {
    let workspace = world.acme.workspace;
    format!("/v1/workspaces/{workspace}/state-versions{rest}")
}

async fn roll_back(
    world: &World,
    token: &str,
    to: StateVersionId,
    current: StateVersionId,
) -> Answer {
    let body = json!({"current": current, "reason": REASON});
    Call::new("POST", path(world, &format!("/{to}/rollback")), token)
        .json(&body)
        .send(&world.router)
        .await
}

fn refusal(answer: &Answer) -> (u16, &str) {
    (answer.status.as_u16(), answer.code())
}

async fn current(world: &World) -> StateVersionRow {
    let (organization, workspace) = (world.acme.organization, world.acme.workspace);
    let current = states::current(&world.store, organization, workspace).await;
    current.unwrap().unwrap()
}

async fn lock(world: &World) -> Option<stackship_domain::workspace::Lock> {
    let workspace = world.acme.workspace;
    world.store.workspaces.load(workspace).await.unwrap().0.lock
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn the_history_of_a_workspace_is_listed_newest_first(pool: PgPool) {
    let world = World::new(pool).await;
    let mut published = Vec::new();
    for serial in [1, 4, 9] {
        published.push(world.published_state(serial, "secret").await);
    }
    let reader = &world.acme.reader.token;
    let get = async |rest: &str| {
        let call = Call::new("GET", path(&world, rest), reader);
        call.send(&world.router).await
    };
    let serials = |answer: &Answer| {
        let rows = answer.json["data"].as_array().unwrap();
        rows.iter()
            .map(|row| row["serial"].as_i64().unwrap())
            .collect::<Vec<_>>()
    };
    let first = get("?limit=2").await;
    assert_eq!(serials(&first), [9, 4]);
    let cursor = first.json["meta"]["page"]["next_cursor"].as_str().unwrap();
    let rest = get(&format!("?limit=2&cursor={cursor}")).await;
    assert_eq!(serials(&rest), [1]);
    assert!(rest.json["meta"]["page"]["next_cursor"].is_null());
    assert_eq!(
        refusal(&get("?cursor=x").await),
        (400, "LIST_CURSOR_INVALID")
    );

    let row = &published[1];
    let read = get(&format!("/{}", row.id)).await.data(200);
    let expected = json!({
        "id": row.id, "serial": 4, "lineage": row.lineage, "sha256": row.sha256, "bytes": row.bytes,
        "run": row.author.run(), "rollback": null, "published_at": row.published_at, "is_current": false,
    });
    assert_eq!(read, expected);
    assert_eq!(first.json["data"][0]["is_current"], true);
    assert!(!first.bytes.windows(6).any(|bytes| bytes == b"secret"));
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_state_is_found_in_its_own_workspace_alone(pool: PgPool) {
    let world = World::new(pool).await;
    let state = world.published_state(1, "secret").await.id;
    let context = origin(world.acme.owner.user).within(world.acme.organization);
    let new = new_workspace(world.acme.project, "other");
    let other = stackship_store::records::workspaces::create(&world.store, &context, &new).await;
    let other = format!("/v1/workspaces/{}/state-versions/{state}", other.unwrap());
    let own = path(&world, &format!("/{state}"));
    let (owner, foreign) = (&world.acme.owner.token, &world.umbrella.owner.token);
    let none = path(&world, "/sv-0");
    for (path, token) in [(&other, owner), (&own, foreign), (&none, owner)] {
        let answer = Call::new("GET", path, token).send(&world.router).await;
        assert_eq!(refusal(&answer), (404, "NOT_FOUND"), "{path}");
    }
    assert_eq!(world.send("GET", &own, &json!({})).await.status, 200);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_state_is_downloaded_for_a_reason_that_is_told_first(pool: PgPool) {
    let world = World::new(pool).await;
    let state = world.published_state(3, "in clear").await;
    let planner = &world.acme.planner;
    let context = origin(planner.user).within(world.acme.organization);
    let password = Password::new("correct horse battery".to_owned()).unwrap();
    passwords::set(&world.store, &context, planner.user, password)
        .await
        .unwrap();
    let download = async |query: &str, body: Value| {
        let path = path(&world, &format!("/{}/download{query}", state.id));
        let call = Call::new("POST", path, &planner.token).json(&body);
        call.send(&world.router).await
    };
    let said = || json!({"reason": REASON});
    assert_eq!(
        refusal(&download("", said()).await),
        (403, "STEP_UP_REQUIRED")
    );
    let proof = json!({"password": "correct horse battery"});
    let proof = Call::new("POST", "/v1/user/step-up", &planner.token).json(&proof);
    proof.send(&world.router).await.data(200);
    assert_eq!(
        refusal(&download("?a", said()).await),
        (400, "QUERY_REFUSED")
    );
    let silent = download("", json!({"reason": "short"})).await;
    assert_eq!(refusal(&silent), (422, "REASON_INVALID"));
    let told = "select payload from log.events where event_type = 'guarded_artifact_released'";
    let told = async || {
        let told = sqlx::query_scalar::<_, Value>(told);
        told.fetch_all(&world.owner).await.unwrap()
    };
    assert!(told().await.is_empty());

    let answer = download("", said()).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.bytes[..]),
        (200, &content(3, "in clear")[..])
    );
    assert_eq!(answer.headers["cache-control"], "private, no-store");
    let expected = json!({
        "run": state.author.run(), "workspace": world.acme.workspace, "artifact": "state_version",
        "object": state.object, "sha256": state.sha256, "bytes": state.bytes, "reason": REASON,
    });
    assert_eq!(told().await, [expected]);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_older_state_comes_back_as_a_new_one(pool: PgPool) {
    let world = World::new(pool).await;
    let older = world.published_state(1, "older").await;
    let newer = world.published_state(7, "newer").await;
    let (owner, operator) = (&world.acme.owner, &world.acme.operator);
    let refused = roll_back(&world, &operator.token, older.id, newer.id).await;
    assert_eq!(refusal(&refused), (403, "PERMISSION_MISSING"));
    let moved = roll_back(&world, &owner.token, older.id, older.id).await;
    assert_eq!(refusal(&moved), (409, "STATE_MOVED"));
    let nothing = roll_back(&world, &owner.token, newer.id, newer.id).await;
    assert_eq!(refusal(&nothing), (409, "STATE_IS_CURRENT"));
    let absent = roll_back(
        &world,
        &owner.token,
        stackship_store::clock::fresh(),
        newer.id,
    )
    .await;
    assert_eq!(refusal(&absent), (404, "NOT_FOUND"));
    assert_eq!(current(&world).await.id, newer.id);

    roll_back(&world, &owner.token, older.id, newer.id)
        .await
        .data(200);
    let now = current(&world).await;
    let author = Author::Person {
        user: owner.user,
        restores: older.id,
    };
    assert_eq!(
        (now.serial, &now.lineage, now.author),
        (8, &newer.lineage, author)
    );
    let object = now.object.unwrap();
    let (organization, kind) = (world.acme.organization, ObjectKind::State);
    let bytes = world
        .store
        .objects
        .read_to_vec(organization, object, kind, 1024);
    assert_eq!(bytes.await.unwrap(), content(8, "older"));
    assert_eq!(lock(&world).await, None);
    let again = roll_back(&world, &owner.token, older.id, newer.id).await;
    assert_eq!(
        refusal(&again),
        (409, "STATE_MOVED"),
        "sent again it does nothing"
    );

    let read = path(&world, &format!("/{}", now.id));
    let read = world.send("GET", &read, &json!({})).await.data(200);
    let rollback = json!({"by": owner.user, "restores": older.id});
    assert_eq!((&read["rollback"], &read["run"]), (&rollback, &Value::Null));
    let v2 = format!(
        "/api/v2/workspaces/{}/current-state-version",
        world.acme.workspace
    );
    let seen = world.send("GET", &v2, &json!({})).await.json;
    assert_eq!(seen["data"]["attributes"]["serial"], 8);
    assert!(
        seen["data"]["relationships"]["run"]["data"].is_null(),
        "{seen}"
    );
    let told = "select payload -> 'rollback' ->> 'reason' from log.events where event_type = 'state_rolled_back'";
    let told: String = sqlx::query_scalar(told)
        .fetch_one(&world.owner)
        .await
        .unwrap();
    assert_eq!(told, REASON);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_rollback_needs_a_free_workspace_or_ones_own_lock(pool: PgPool) {
    let world = World::new(pool).await;
    let older = world.published_state(1, "older").await;
    let newer = world.published_state(2, "newer").await;
    let (owner, operator) = (&world.acme.owner, &world.acme.operator);
    let by_hand = |by| Command::LockByPerson { by, reason: None };
    world.workspace_command(by_hand(operator.user)).await;
    let refused = roll_back(&world, &owner.token, older.id, newer.id).await;
    assert_eq!(refusal(&refused), (409, "WORKSPACE_LOCKED"));
    let by = operator.user;
    world
        .workspace_command(Command::UnlockByPerson { by })
        .await;

    let (run, fence) = world.holding_run().await;
    let refused = roll_back(&world, &owner.token, older.id, newer.id).await;
    assert_eq!(refusal(&refused), (409, "WORKSPACE_LOCKED"));
    assert_eq!(
        refused.json["error"]["details"]["holder"],
        json!({"kind": "run", "run": run})
    );
    assert_eq!(current(&world).await.id, newer.id);
    world
        .workspace_command(Command::ReleaseByRun {
            run,
            fence,
            left_behind: None,
        })
        .await;

    world.workspace_command(by_hand(owner.user)).await;
    let held = lock(&world).await;
    roll_back(&world, &owner.token, older.id, newer.id)
        .await
        .data(200);
    let now = current(&world).await;
    assert_eq!(now.fence, held.as_ref().unwrap().fence);
    assert_eq!(lock(&world).await, held, "one's own lock stays");
}

/// Applies a run to its end with this state.
async fn applied(world: &Served, serial: i64) -> StateVersionId {
    let applying = Doubtful::applying(world).await;
    let staged = applying.stage(world, serial, LINEAGE).await;
    let seen = SeenState {
        version: staged.id,
        sha256: staged.sha256.unwrap(),
    };
    let end = ApplyEnd::Exited {
        exit_code: 0,
        interrupted: false,
        seen: Some(seen),
        errored_state: None,
        sandbox: json!({}),
    };
    let result = PhaseResult::Apply { end };
    world.report(&applying.leased.attempt, &result).await;
    world.until(applying.run, Status::Applied).await;
    until("the lock is free", async || lock(world).await.is_none()).await;
    staged.id
}

/// A run of the one configuration that waits for a person, and what it asks about.
async fn asking(world: &Served) -> (RunId, Evidence) {
    let run: RunId = crate::v2::edge::create_run(world, false)
        .await
        .parse()
        .unwrap();
    let leased = world.lease().await;
    let planned = world.planned(b"the same plan", 1).await;
    world.report(&leased.attempt, &planned).await;
    world.until(run, Status::AwaitingApproval).await;
    let (found, _) = world.store.runs.load(run).await.unwrap();
    let Run::Born { standing, .. } = found else {
        panic!("{run} is not there");
    };
    match *standing {
        Standing::AwaitingApproval { evidence, .. } => (run, evidence),
        other => panic!("{run} is {}", other.status()),
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_approval_of_what_was_planned_before_a_rollback_is_refused_after_it(pool: PgPool) {
    let world = Served::new(pool).await;
    let older = applied(&world, 1).await;
    let newer = applied(&world, 2).await;
    let owner = &world.acme.owner.token;
    let (before, reviewed) = asking(&world).await;
    let refused = roll_back(&world, owner, older, newer).await;
    assert_eq!(
        refusal(&refused),
        (409, "WORKSPACE_LOCKED"),
        "a run relies on the state"
    );
    let context = origin(world.acme.owner.user).within(world.acme.organization);
    decisions::discard(&world.store, &context, before, None)
        .await
        .unwrap();
    until("the lock is free", async || lock(&world).await.is_none()).await;
    roll_back(&world, owner, older, newer).await.data(200);

    let (after, evidence) = asking(&world).await;
    // A policy result names its run; everything else of the two is compared.
    let reviewed_by_the_same = Evidence {
        policy: evidence.policy,
        ..reviewed.clone()
    };
    let part = reviewed_by_the_same.first_difference(&evidence);
    assert_eq!(part, Some(EvidencePart::Predecessor));
    let but_for_that = Evidence {
        predecessor: evidence.predecessor.clone(),
        ..reviewed_by_the_same.clone()
    };
    assert_eq!(but_for_that, evidence, "nothing else differs");
    let approve = async |binding| {
        let path = format!("/v1/runs/{after}/approve");
        world
            .send("POST", &path, &json!({"binding_digest": binding}))
            .await
    };
    for stale in [reviewed, reviewed_by_the_same] {
        let stale = approve(stale.binding()).await;
        assert_eq!(refusal(&stale), (409, "RUN_EVIDENCE_STALE"));
    }
    approve(evidence.binding()).await.data(200);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_approved_run_whose_lock_was_lost_to_a_rollback_is_applied_by_nobody(pool: PgPool) {
    let world = Served::new(pool).await;
    let older = applied(&world, 1).await;
    let newer = applied(&world, 2).await;
    let (run, evidence) = asking(&world).await;
    let context = origin(world.acme.owner.user).within(world.acme.organization);
    decisions::approve(&world.store, &context, run, evidence.binding())
        .await
        .unwrap();
    until("the apply is offered", async || {
        let rows = attempts::of_run(&world.store.pool, run).await.unwrap();
        rows.len() == 2
    })
    .await;
    // What no rule allows: the run's lock is gone before its end.
    let fence = lock(&world).await.unwrap().fence;
    world
        .workspace_command(Command::ReleaseByRun {
            run,
            fence,
            left_behind: None,
        })
        .await;
    roll_back(&world, &world.acme.owner.token, older, newer)
        .await
        .data(200);
    let leased = attempts::lease_next(
        &world.store,
        world.runner,
        "local",
        "linux_amd64",
        LEASE_SECONDS,
    );
    assert!(
        leased.await.unwrap().is_none(),
        "the fence of the approved apply has passed"
    );
    assert_eq!(current(&world).await.serial, 3);
}
