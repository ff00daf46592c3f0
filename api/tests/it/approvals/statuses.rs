//! A cancel in every status that is not the end.

use serde_json::json;
use sqlx::PgPool;
use stackship_domain::Actor;
use stackship_domain::ids::RunId;
use stackship_domain::run::{ApplyReport, Command, LossReason, Run, Standing, Status, samples};
use stackship_store::clock;
use stackship_workflow::advance::advance;

use super::events_of;
use crate::world::World;

/// A run of acme's workspace that stands there, brought there by the rules.
async fn standing_at(world: &World, status: Status) -> RunId {
    let (run, fence) = world.holding_run().await;
    let (plan, apply) = (samples::attempt(1), samples::attempt(2));
    let steps = [
        (
            Status::Planning,
            Command::StartPlan {
                attempt: plan.clone(),
            },
        ),
        (
            Status::Planned,
            Command::RecordPlan {
                attempt: plan.id,
                plan: Box::new(world.plan().await),
            },
        ),
        (Status::PolicyChecking, Command::StartPolicyCheck),
        (
            Status::AwaitingApproval,
            Command::RecordPolicy {
                result: world.policy().await,
                approval_expires_at: crate::world::in_an_hour(),
            },
        ),
    ];
    if status == Status::Queued {
        return run;
    }
    for (reached, command) in steps {
        world.run_command(run, command).await;
        if reached == status {
            return run;
        }
    }
    let binding = binding(world, run).await;
    let approve = Command::Approve {
        by: Actor::User(world.acme.owner.user),
        binding,
        at: clock::now(),
    };
    let start = Command::StartApply {
        attempt: apply.clone(),
        fence,
        binding,
        at: clock::now(),
    };
    let lose = Command::LoseApply {
        attempt: apply.id,
        reason: LossReason::LeaseExpired,
        emergency: None,
    };
    for (reached, command) in [
        (Status::Approved, approve),
        (Status::Applying, start),
        (Status::RecoveryRequired, lose),
    ] {
        world.run_command(run, command).await;
        if reached == status {
            return run;
        }
    }
    panic!("no way to {status}")
}

async fn binding(world: &World, run: RunId) -> stackship_domain::Sha256Digest {
    let (run, _) = world.store.runs.load(run).await.unwrap();
    let Run::Born { standing, .. } = run else {
        panic!("no run");
    };
    let Standing::AwaitingApproval { evidence, .. } = *standing else {
        panic!("it does not ask: {standing:?}");
    };
    evidence.binding()
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_cancel_is_heard_in_every_status_but_doubt(pool: PgPool) {
    let world = World::new(pool).await;
    for status in Status::ALL.iter().copied().filter(|it| !it.is_terminal()) {
        let (answer, stops) = match status {
            Status::Queued
            | Status::Planned
            | Status::PolicyChecking
            | Status::AwaitingApproval
            | Status::Approved => ("canceled", None),
            Status::Planning => {
                let attempt = samples::attempt(1).id;
                let at = clock::now();
                ("canceling", Some(Command::StopPlan { attempt, at }))
            }
            Status::Applying => ("canceling", None),
            // Policies cannot be attached yet, being canceled is met below, and doubt comes last:
            // nothing but a decision about it frees the workspace.
            Status::OverrideRequired | Status::Canceling | Status::RecoveryRequired => continue,
            other => panic!("{other} is an end"),
        };
        let run = standing_at(&world, status).await;
        let path = format!("/v1/runs/{run}/cancel");
        let reason = json!({"reason": format!("not while it is {status}")});
        for _ in 0..2 {
            let canceled = world.send("POST", &path, &reason).await;
            assert_eq!(canceled.data(200)["status"], answer, "{status}");
        }
        if status == Status::Applying {
            stop_apply(&world, run).await;
        }
        if let Some(stop) = stops {
            world.run_command(run, stop).await;
        }
        advance(&world.store, run).await.unwrap();
        let seen = world.seen_run(run).await;
        assert_eq!(seen["status"], "canceled", "{status}: {seen:#}");
        let told = events_of(&world, run, "run_canceled").await;
        assert_eq!(told.len(), 1, "{status}: {told:?}");
        assert_eq!(told[0]["reason"], reason["reason"], "{status}: {told:?}");
    }
    let run = standing_at(&world, Status::RecoveryRequired).await;
    let path = format!("/v1/runs/{run}/cancel");
    let reason = json!({"reason": "not in doubt"});
    let refused = world.send("POST", &path, &reason).await;
    assert_eq!(refused.code(), "RUN_STATUS_CONFLICT");
}

/// What the runner of an apply says that was canceled before `tofu apply` was started.
async fn stop_apply(world: &World, run: RunId) {
    let (current, _) = world.store.runs.load(run).await.unwrap();
    let Run::Born { hold, .. } = current else {
        panic!("no run");
    };
    let stopped = Command::RecordApply {
        attempt: samples::attempt(2).id,
        fence: hold.fence().unwrap(),
        report: Box::new(ApplyReport::NotStarted {
            part: None,
            detail: "It was canceled before it was started.".to_owned(),
        }),
        at: clock::now(),
    };
    world.run_command(run, stopped).await;
}
