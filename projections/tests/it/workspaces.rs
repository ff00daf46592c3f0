//! Who holds a workspace's lock, who waits, and for whom.

use sqlx::PgPool;
use stackship_domain::run::RunKind;
use stackship_domain::workspace::{Command, Event, Holder, StateHead, UnlockCause, Workspace};
use stackship_domain::{Actor, Fence, Sha256Digest, run::samples};
use stackship_projections::audit::AuditFilter;
use stackship_projections::{InventoryFilter, QueuePlace, Recorded, WorkspaceStatus};
use stackship_store::clock;

use crate::world::World;

#[test]
fn the_status_follows_the_workspace() {
    let holder = Holder::Run {
        run: samples::id(1),
    };
    let state = StateHead {
        version: samples::id(13),
        serial: 4,
        lineage: "lineage".to_owned(),
        digest: Sha256Digest::of(b"state"),
    };
    let left = StateHead {
        serial: 5,
        ..state.clone()
    };
    let fence = Fence::NEVER.next();
    let person = Holder::User {
        user: samples::id(7),
    };
    let events = [
        Event::RunEnqueued {
            run: samples::id(1),
        },
        Event::RunEnqueued {
            run: samples::id(2),
        },
        Event::RunEnqueued {
            run: samples::id(3),
        },
        Event::LockAcquired {
            holder,
            fence,
            reason: None,
        },
        Event::RunDequeued {
            run: samples::id(2),
        },
        Event::StatePublished {
            run: samples::id(1),
            fence,
            state,
        },
        Event::LockReleased {
            holder,
            fence,
            cause: UnlockCause::RunEnded,
            left_behind: Some(left.clone()),
        },
        Event::LockAcquired {
            holder: person,
            fence: fence.next(),
            reason: Some("Maintenance.".to_owned()),
        },
    ];
    let mut status = WorkspaceStatus::new(samples::id(3), samples::id(1));
    let mut workspace = Workspace::default();
    for (sequence, event) in (1..).zip(events) {
        workspace.evolve(&event);
        status.take(&Recorded {
            event,
            sequence,
            recorded_at: samples::at(sequence),
            actor: Actor::System,
        });
        assert_eq!(status.queue, workspace.queue);
        assert_eq!(status.fence, workspace.fence);
        assert_eq!(status.head, workspace.head);
        assert_eq!(status.left_behind, workspace.left_behind);
        let held = status.lock.as_ref().map(|lock| lock.holder);
        let expected = workspace.lock.as_ref().map(|lock| lock.holder);
        assert_eq!(held, expected);
        assert_eq!(status.last_sequence, sequence);
    }
    assert_eq!(status.left_behind[0].state, left);
    let lock = status.lock.clone().unwrap();
    assert_eq!(lock.holder, person);
    assert_eq!(lock.since, samples::at(8));
    assert_eq!(lock.reason.as_deref(), Some("Maintenance."));
    assert_eq!(status.queue, [samples::id(3)]);
    assert_eq!(
        status.place_of(samples::id(3)),
        Some(QueuePlace {
            position: 1,
            blocked_by: Some(person)
        })
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_waiting_run_says_what_it_waits_for(pool: PgPool) {
    let world = World::new(pool);
    let tenant = world.tenant().await;
    let (holding, fence) = world.holding_run(&tenant).await;
    let mut waiting = Vec::new();
    for _ in 0..2 {
        let facts = world.facts(&tenant, RunKind::PlanAndApply).await;
        let run = world.create(&tenant, facts).await;
        world.ask(&tenant, Command::Enqueue { run }).await;
        waiting.push(run);
    }
    world.settle().await;
    let place = async |run| {
        world
            .views
            .queue_position(tenant.organization, run)
            .await
            .unwrap()
    };
    let by = |run| Some(Holder::Run { run });

    assert_eq!(place(holding).await, None);
    for (index, run) in waiting.iter().enumerate() {
        let expected = QueuePlace {
            position: index + 1,
            blocked_by: by(holding),
        };
        assert_eq!(place(*run).await, Some(expected));
    }

    let release = Command::ReleaseByRun {
        run: holding,
        fence,
        left_behind: None,
    };
    world.ask(&tenant, release).await;
    world.settle().await;
    let first = QueuePlace {
        position: 1,
        blocked_by: None,
    };
    assert_eq!(place(waiting[0]).await, Some(first));
    let second = QueuePlace {
        position: 2,
        blocked_by: by(waiting[0]),
    };
    assert_eq!(place(waiting[1]).await, Some(second));

    let lock = Command::LockByPerson {
        by: tenant.person,
        reason: Some("Maintenance.".to_owned()),
    };
    world.ask(&tenant, lock).await;
    world.settle().await;
    let blocked = place(waiting[0]).await.unwrap().blocked_by;
    assert_eq!(
        blocked,
        Some(Holder::User {
            user: tenant.person
        })
    );
    let status = world
        .views
        .workspace_status(tenant.organization, tenant.workspace)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(status.queue, waiting);
    assert_eq!(status.fence, fence.next());
    assert_eq!(status.lock.unwrap().reason.as_deref(), Some("Maintenance."));
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn nothing_of_another_tenant_is_answered(pool: PgPool) {
    let world = World::new(pool);
    let tenant = world.tenant().await;
    let stranger = world.tenant().await;
    let run = world.applied_run(&tenant).await;
    let facts = world.facts(&tenant, RunKind::PlanAndApply).await;
    let waiting = world.create(&tenant, facts).await;
    let enqueue = Command::Enqueue { run: waiting };
    world.ask(&tenant, enqueue).await;
    world.settle().await;
    let views = &world.views;

    for (organization, visible) in [
        (tenant.organization, true),
        (stranger.organization, false),
        (clock::fresh(), false),
    ] {
        let review = views.review(organization, run).await.unwrap();
        assert_eq!(review.is_some(), visible);
        let status = views
            .workspace_status(organization, tenant.workspace)
            .await
            .unwrap();
        assert_eq!(status.is_some(), visible);
        let place = views.queue_position(organization, waiting).await.unwrap();
        assert_eq!(place.is_some(), visible);
        let page = views
            .inventory_page(organization, InventoryFilter::default(), None, 10)
            .await
            .unwrap();
        assert_eq!(!page.rows.is_empty(), visible);
        let every = AuditFilter::default();
        let audit = views.audit_page(organization, &every, None, 10);
        let audit = audit.await.unwrap();
        assert_eq!(!audit.entries.is_empty(), visible);
    }
}
