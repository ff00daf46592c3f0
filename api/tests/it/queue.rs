//! The queue of a workspace: who is before whom, who takes whose place, and what the next run must
//! know. No workflow runs beside these tests; they look at a run when it is due.

use serde_json::{Value, json};
use sqlx::PgPool;
use stackship_domain::ids::RunId;
use stackship_domain::run::{ApplyReport, Command, Phase, Run, RunKind, Standing, Status, samples};
use stackship_domain::{Fence, Sha256Digest, workspace};
use stackship_runner_protocol::{PhaseResult, PlanEnd};
use stackship_store::attempts::{self, AttemptRow, HeartbeatOutcome, ResultOutcome};
use stackship_store::clock;
use stackship_store::records::runners;
use stackship_workflow::advance::advance;
use stackship_workflow::{decisions, leasing};

use crate::http::Call;
use crate::world::{World, origin, until};

const LEASE_SECONDS: u32 = 600;

async fn look(world: &World, run: RunId) {
    advance(&world.store, run).await.unwrap();
}

async fn status(world: &World, run: RunId) -> Status {
    world
        .store
        .runs
        .load(run)
        .await
        .unwrap()
        .0
        .status()
        .unwrap()
}

/// A run through the API, made from this ref.
async fn run_of(world: &World, kind: &str, git_ref: Option<&str>) -> RunId {
    let path = format!("/v1/workspaces/{}/runs", world.acme.workspace);
    let configuration = world.configuration(kind == "speculative").await;
    let body = json!({
        "configuration_version": configuration, "message": "Grow", "kind": kind, "git_ref": git_ref,
    });
    let run = world.send("POST", &path, &body).await.data(201);
    assert_eq!(run["source"]["git_ref"], json!(git_ref));
    run["id"].as_str().unwrap().parse().unwrap()
}

/// Leases what is offered next.
async fn leased(world: &World) -> AttemptRow {
    let (runner, _) = runners::create(&world.store, &clock::fresh_text())
        .await
        .unwrap();
    let leased = leasing::lease(&world.store, runner, "local", "linux_amd64", LEASE_SECONDS);
    leased.await.unwrap().unwrap().attempt
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_newer_speculative_run_of_a_ref_takes_the_place_of_one_that_is_queued_or_planning(
    pool: PgPool,
) {
    let world = World::new(pool).await;
    let speculative = async |git_ref| run_of(&world, "speculative", git_ref).await;
    let planning = speculative(Some("refs/pull/7/head")).await;
    look(&world, planning).await;
    let attempt = leased(&world).await;
    assert_eq!(attempt.offer.run, planning);
    let queued = speculative(Some("refs/pull/7/head")).await;
    let others = [
        speculative(Some("refs/pull/8/head")).await,
        speculative(None).await,
        run_of(&world, "plan_and_apply", Some("refs/pull/7/head")).await,
    ];
    let newest = speculative(Some("refs/pull/7/head")).await;
    let newer_still = speculative(Some("refs/pull/9/head")).await;

    look(&world, newest).await;
    for run in [planning, queued] {
        let ended = world.seen_run(run).await["ended"].clone();
        assert_eq!(ended["reason"], "superseded", "{ended:#}");
        assert_eq!(ended["superseded_by"], json!(newest));
    }
    for run in others.into_iter().chain([newest, newer_still]) {
        assert_eq!(status(&world, run).await, Status::Queued, "{run}");
    }
    assert_eq!(leased(&world).await.offer.run, newest);
    assert_stops(&world, planning, &attempt).await;
}

/// The runner of a superseded plan is asked to stop, and what it says then is taken and means nothing.
async fn assert_stops(world: &World, run: RunId, attempt: &AttemptRow) {
    let beat = async || {
        attempts::heartbeat(&world.store, attempt.id, false, LEASE_SECONDS)
            .await
            .unwrap()
    };
    assert!(matches!(
        beat().await,
        HeartbeatOutcome::Alive { cancel: false, .. }
    ));
    for _ in 0..2 {
        look(world, run).await;
        assert!(matches!(
            beat().await,
            HeartbeatOutcome::Alive { cancel: true, .. }
        ));
    }
    let stopped = PhaseResult::Plan {
        end: PlanEnd::Stopped,
    };
    let stopped = serde_json::to_value(stopped).unwrap();
    let reported = attempts::record_result(&world.store, attempt.id, &stopped).await;
    assert_eq!(reported.unwrap(), ResultOutcome::Recorded);
    look(world, run).await;
    assert_eq!(status(world, run).await, Status::Canceled);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_speculative_run_that_has_its_plan_is_not_superseded(pool: PgPool) {
    let world = World::new(pool).await;
    let planned = run_of(&world, "speculative", Some("main")).await;
    look(&world, planned).await;
    let attempt = samples::attempt(1);
    let id = attempt.id;
    let plan = Box::new(samples::plan());
    for command in [
        Command::StartPlan { attempt },
        Command::RecordPlan { attempt: id, plan },
    ] {
        world.run_command(planned, command).await;
    }
    let newer = run_of(&world, "speculative", Some("main")).await;
    look(&world, newer).await;
    assert_eq!(status(&world, planned).await, Status::Planned);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_ref_is_a_short_plain_text(pool: PgPool) {
    let world = World::new(pool).await;
    let path = format!("/v1/workspaces/{}/runs", world.acme.workspace);
    let configuration = world.configuration(true).await;
    for git_ref in ["", " main", "main\n", "a\u{7}b", &"x".repeat(256)] {
        let body = json!({
            "configuration_version": configuration, "message": "Grow", "kind": "speculative", "git_ref": git_ref,
        });
        let answer = world.send("POST", &path, &body).await;
        assert_eq!(answer.status, 422, "{git_ref:?}");
        assert_eq!(answer.code(), "RUN_REF_INVALID", "{git_ref:?}");
    }
    assert_eq!(world.count("record.runs").await, 0);
}

/// A run whose apply is under way.
async fn applying(world: &World) -> (RunId, Fence) {
    let (run, fence) = world.run_that_asks().await;
    let context = origin(world.acme.owner.user).within(world.acme.organization);
    decisions::approve_current(&world.store, &context, run)
        .await
        .unwrap();
    let attempt = samples::attempt(1);
    let (binding, at) = (approved(world, run).await, clock::now());
    let start = Command::StartApply {
        attempt,
        fence,
        binding,
        at,
    };
    world.run_command(run, start).await;
    (run, fence)
}

async fn approved(world: &World, run: RunId) -> Sha256Digest {
    let (run, _) = world.store.runs.load(run).await.unwrap();
    let Run::Born { standing, .. } = run else {
        panic!("no run");
    };
    match *standing {
        Standing::Approved { approval, .. } => approval.binding,
        other => panic!("not approved: {other:?}"),
    }
}

/// A run whose apply failed half-way, after it gave the lock back.
async fn failed_half_way(world: &World) -> RunId {
    let (run, fence) = applying(world).await;
    let report = ApplyReport::Failed {
        detail: "tofu apply ended with exit code 1.".to_owned(),
        emergency: Some(samples::staged()),
    };
    let failed = Command::RecordApply {
        attempt: samples::attempt(1).id,
        fence,
        report: Box::new(report),
        at: clock::now(),
    };
    world.run_command(run, failed).await;
    look(world, run).await;
    run
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn the_next_run_is_warned_of_a_state_that_a_failed_apply_left(pool: PgPool) {
    let world = World::new(pool).await;
    let failed = failed_half_way(&world).await;
    let next = world.run(RunKind::PlanAndApply).await;
    let speculative = world.run(RunKind::Speculative).await;
    // Before it has the lock, what the workspace has to say counts.
    until("the read models know what was left", async || {
        world.seen_run(next).await["warnings"][0]["run"] == json!(failed)
    })
    .await;
    assert_warned(&world.seen_run(speculative).await, failed);
    let before = world.seen_run(failed).await;
    assert_eq!(before["warnings"], json!([]), "it had nothing to fear");

    look(&world, next).await;
    assert_warned(&world.seen_run(next).await, failed);
    // What was recorded with the lock stays, whatever the workspace says by then.
    sqlx::query("update view.workspace_status set left_behind = '[]'")
        .execute(&world.owner)
        .await
        .unwrap();
    assert_warned(&world.seen_run(next).await, failed);
    assert_eq!(world.seen_run(speculative).await["warnings"], json!([]));
}

fn assert_warned(seen: &Value, failed: RunId) {
    let warnings = seen["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:#?}");
    let warning = &warnings[0];
    assert_eq!(warning["kind"], "emergency_state_not_adopted");
    assert_eq!(warning["run"], json!(failed));
    assert_eq!(warning["state_version"], json!(samples::staged().version));
    let message = warning["message"].as_str().unwrap();
    let fetch = format!("POST /v1/runs/{failed}/emergency-state");
    assert!(message.contains(&fetch), "{message}");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn who_waits_is_told_for_whom_and_since_when_and_why(pool: PgPool) {
    let world = World::new(pool).await;
    let (holding, _) = world.run_that_asks().await;
    let (first, second) = (
        world.run(RunKind::PlanAndApply).await,
        world.run(RunKind::PlanAndApply).await,
    );
    for run in [first, second] {
        look(&world, run).await;
    }
    let waits = async |run| world.seen_run(run).await["waiting_for"].clone();
    until("both are seen to wait", async || {
        waits(second).await["queue_position"] == 2
    })
    .await;
    for (run, position) in [(first, 1), (second, 2)] {
        let waiting = waits(run).await;
        assert_eq!(waiting["kind"], "run", "{waiting:#}");
        assert_eq!(waiting["id"], json!(holding));
        assert_eq!(waiting["status"], "awaiting_approval");
        assert_eq!(waiting["queue_position"], position);
    }
    let path = format!("/v1/workspaces/{}", world.acme.workspace);
    let detail = async || world.send("GET", &path, &json!({})).await.data(200);
    let lock = detail().await["lock"].clone();
    let holder = json!({"kind": "run", "id": holding, "status": "awaiting_approval"});
    assert_eq!(lock["holder"], holder);
    assert!(lock["since"].is_string());

    let cancel = format!("/v1/runs/{holding}/cancel");
    world.send("POST", &cancel, &json!({})).await;
    look(&world, holding).await;
    let body = json!({"reason": "The network is being moved."});
    world
        .send("POST", &format!("{path}/lock"), &body)
        .await
        .data(200);
    let lock = detail().await["lock"].clone();
    assert_eq!(lock["reason"], body["reason"]);
    assert_eq!(lock["holder"]["kind"], "user");
    assert!(lock["holder"]["name"].is_string(), "{lock:#}");
    let waiting = waits(second).await;
    assert_eq!(waiting["kind"], "person_lock", "{waiting:#}");
    assert_eq!(waiting["reason"], body["reason"]);
    assert_eq!(waiting["since"], lock["since"]);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_run_that_ended_without_leaving_is_in_nobodys_way(pool: PgPool) {
    let world = World::new(pool).await;
    let cancel = || Command::Cancel {
        by: samples::reviewer(),
        reason: None,
        at: clock::now(),
    };
    // The process that ended each of them died before it could give anything back.
    let (holding, _) = world.run_that_asks().await;
    let queued = world.run(RunKind::PlanAndApply).await;
    world
        .workspace_command(workspace::Command::Enqueue { run: queued })
        .await;
    for run in [holding, queued] {
        world.run_command(run, cancel()).await;
    }
    let next = world.run(RunKind::PlanAndApply).await;
    look(&world, next).await;
    let (workspace, _) = world
        .store
        .workspaces
        .load(world.acme.workspace)
        .await
        .unwrap();
    let holder = workspace.lock.unwrap().holder;
    assert_eq!(holder, workspace::Holder::Run { run: next });
    assert!(workspace.queue.is_empty());
    let offered = leased(&world).await.offer;
    assert_eq!((offered.run, offered.phase), (next, Phase::Plan));
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn no_lock_is_broken_while_a_run_has_it_and_a_broken_one_is_on_record(pool: PgPool) {
    let world = World::new(pool).await;
    let path = format!("/v1/workspaces/{}", world.acme.workspace);
    let (force, reason) = (format!("{path}/force-unlock"), "They are on leave.");
    let body = json!({"reason": reason});
    let (run, _) = applying(&world).await;
    let refused = world.send("POST", &force, &body).await;
    assert_eq!(refused.status, 409);
    assert_eq!(refused.code(), "WORKSPACE_LOCK_HELD_BY_RUN");
    assert_eq!(refused.json["error"]["details"]["run"], json!(run));
    let message = refused.json["error"]["message"].as_str().unwrap();
    assert!(message.contains(&run.to_string()), "{message}");
    assert_eq!(status(&world, run).await, Status::Applying);

    let lost = Command::RecordApply {
        attempt: samples::attempt(1).id,
        fence: world
            .store
            .workspaces
            .load(world.acme.workspace)
            .await
            .unwrap()
            .0
            .fence,
        report: Box::new(ApplyReport::NotStarted {
            detail: "Nothing was done.".to_owned(),
            part: None,
        }),
        at: clock::now(),
    };
    world.run_command(run, lost).await;
    look(&world, run).await;
    let operator = &world.acme.operator.token;
    let lock = Call::new("POST", format!("{path}/lock"), operator).json(&json!({}));
    lock.send(&world.router).await.data(200);
    let by_operator = Call::new("POST", &force, operator).json(&body);
    assert_eq!(by_operator.send(&world.router).await.status, 403);
    world.send("POST", &force, &body).await.data(200);

    let found = "select metadata ->> 'actor' as actor, payload -> 'cause' ->> 'reason' as reason from log.events \
         where event_type = 'lock_released' and payload -> 'cause' ->> 'kind' = 'forced'";
    let (actor, said): (String, String) =
        sqlx::query_as(found).fetch_one(&world.owner).await.unwrap();
    assert_eq!(
        (actor, said.as_str()),
        (world.acme.owner.user.to_string(), reason)
    );
}
