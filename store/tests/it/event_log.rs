//! Carrying out commands: whoever is slower decides again, nothing is written twice, and what is
//! loaded is what happened.

use std::sync::Arc;

use sqlx::PgPool;
use stackship_domain::ids::RunId;
use stackship_domain::run::{Command as RunCommand, Refusal, RunKind};
use stackship_domain::workspace::{Command, Workspace};
use stackship_domain::{Actor, run};
use stackship_store::log::{CommandError, Committed};
use stackship_store::{StoreError, clock};

use crate::support::World;

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn eight_writers_of_one_aggregate_all_land(pool: PgPool) {
    const WRITERS: usize = 8;
    let world = Arc::new(World::new(pool).await);
    let writer = async |world: Arc<World>| {
        let run: RunId = clock::fresh();
        // Whoever is told that others were faster knows that an other one landed, so as many rounds
        // as there are writers are enough.
        for _ in 0..WRITERS {
            match world
                .store
                .workspaces
                .execute(world.workspace, Command::Enqueue { run }, &world.context())
                .await
            {
                Ok(committed) => return (run, committed),
                Err(CommandError::Contended) => {}
                Err(error) => panic!("{error}"),
            }
        }
        panic!("a writer never landed")
    };
    let outcomes =
        futures::future::join_all((0..WRITERS).map(|_| writer(Arc::clone(&world)))).await;
    let mut sequences: Vec<i64> = outcomes
        .iter()
        .map(|(_, committed)| committed.sequence)
        .collect();
    sequences.sort_unstable();
    assert_eq!(sequences, (1..=8).collect::<Vec<i64>>());
    assert!(outcomes.iter().all(|(_, committed)| committed.appended));
    let (workspace, newest) = world.store.workspaces.load(world.workspace).await.unwrap();
    let mut expected: Vec<RunId> = outcomes.iter().map(|(run, _)| *run).collect();
    let mut queue = workspace.queue;
    expected.sort_unstable();
    queue.sort_unstable();
    assert_eq!((queue, newest), (expected, 8));
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_refused_command_writes_nothing(pool: PgPool) {
    let world = World::new(pool).await;
    let run = world.run(RunKind::PlanAndApply).await;
    let before = world.event_count().await;
    let by = Actor::User(world.user);
    let approve = RunCommand::Approve {
        by,
        binding: run::samples::evidence().binding(),
        at: clock::now(),
    };
    let outcome = world
        .store
        .runs
        .execute(run, approve, &world.context())
        .await;
    assert!(
        matches!(
            outcome,
            Err(CommandError::Refused(Refusal::WrongStatus { .. }))
        ),
        "{outcome:?}"
    );
    assert_eq!(world.event_count().await, before);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn the_same_command_again_does_nothing(pool: PgPool) {
    let world = World::new(pool).await;
    let context = world.context();
    let (first, second): (RunId, RunId) = (clock::fresh(), clock::fresh());
    let execute = async |run| {
        world
            .store
            .workspaces
            .execute(world.workspace, Command::Enqueue { run }, &context)
            .await
            .unwrap()
    };
    assert_eq!(
        execute(first).await,
        Committed {
            sequence: 1,
            appended: true
        }
    );
    assert_eq!(
        execute(first).await,
        Committed {
            sequence: 1,
            appended: false
        }
    );
    // The id is what makes it the same: what it asks for this time does not matter.
    assert_eq!(
        execute(second).await,
        Committed {
            sequence: 1,
            appended: false
        }
    );
    let (workspace, newest) = world.store.workspaces.load(world.workspace).await.unwrap();
    assert_eq!((workspace.queue, newest), (vec![first], 1));
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_command_that_changes_nothing_appends_nothing(pool: PgPool) {
    let world = World::new(pool).await;
    let run = clock::fresh();
    let first = world.command_workspace(Command::Enqueue { run }).await;
    let again = world.command_workspace(Command::Enqueue { run }).await;
    assert_eq!((first.appended, again.appended), (true, false));
    assert_eq!(again.sequence, 1);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn what_is_loaded_is_what_was_decided(pool: PgPool) {
    let world = World::new(pool).await;
    let run = world.run(RunKind::PlanAndApply).await;
    let commands = [
        Command::Enqueue { run },
        Command::Enqueue {
            run: clock::fresh(),
        },
        Command::AcquireForRun { run },
        Command::ReleaseByRun {
            run,
            fence: stackship_domain::Fence::NEVER.next(),
            left_behind: Some(stackship_domain::workspace::samples::head(1)),
        },
        Command::LockByPerson {
            by: world.user,
            reason: Some("migration".to_owned()),
        },
    ];
    let mut live = Workspace::default();
    for command in commands {
        for event in live.decide(command.clone()).unwrap() {
            live.evolve(&event);
        }
        world.command_workspace(command).await;
        let (loaded, _) = world.store.workspaces.load(world.workspace).await.unwrap();
        assert_eq!(loaded, live);
    }
    assert!(live.lock.is_some());
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_event_from_the_future_stops_loading_and_deciding(pool: PgPool) {
    let world = World::new(pool).await;
    world
        .command_workspace(Command::Enqueue {
            run: clock::fresh(),
        })
        .await;
    let newer = "insert into log.events \
             (aggregate_type, aggregate_id, sequence, event_type, event_version, payload, metadata) \
         select aggregate_type, aggregate_id, sequence + 1, event_type, '2.0', payload, metadata \
         from log.events where aggregate_type = 'workspace'";
    sqlx::raw_sql(newer).execute(&world.owner).await.unwrap();
    let before = world.event_count().await;
    let loaded = world.store.workspaces.load(world.workspace).await;
    assert!(
        matches!(loaded, Err(StoreError::Inconsistent { .. })),
        "{loaded:?}"
    );
    let enqueue = Command::Enqueue {
        run: clock::fresh(),
    };
    let outcome = world
        .store
        .workspaces
        .execute(world.workspace, enqueue, &world.context())
        .await;
    assert!(
        matches!(outcome, Err(CommandError::Store(_))),
        "{outcome:?}"
    );
    assert_eq!(world.event_count().await, before);
}
