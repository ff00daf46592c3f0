//! Lists of runs: every run once, whatever is written meanwhile, and no cursor but our own.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};
use sqlx::PgPool;
use stackship_domain::ids::RunId;
use stackship_domain::run::{Facts, RunKind, Status, samples};
use stackship_projections::{
    CursorKey, InventoryFilter, InventoryPage, PAGE_ROWS_MAX, PageError, Views,
};
use stackship_store::clock;

use crate::world::{Tenant, World};

async fn runs_at(world: &World, tenant: &Tenant, seconds: i64, count: usize) -> Vec<RunId> {
    let mut runs = Vec::new();
    for _ in 0..count {
        let facts = Facts {
            created_at: samples::at(seconds),
            ..world.facts(tenant, RunKind::Speculative).await
        };
        runs.push(world.create(tenant, facts).await);
    }
    runs
}

async fn page(world: &World, tenant: &Tenant, cursor: Option<&str>, limit: u16) -> InventoryPage {
    let filter = InventoryFilter::default();
    world
        .views
        .inventory_page(tenant.organization, filter, cursor, limit)
        .await
        .unwrap()
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_walk_sees_every_run_once_while_others_are_written(pool: PgPool) {
    let world = World::new(pool);
    let tenant = world.tenant().await;
    let stranger = world.tenant().await;
    let mut there: Vec<RunId> = runs_at(&world, &tenant, 100, 20).await;
    there.extend(runs_at(&world, &tenant, 50, 3).await);
    runs_at(&world, &stranger, 100, 2).await;
    world.settle().await;

    let mut seen = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let found = page(&world, &tenant, cursor.as_deref(), 4).await;
        seen.extend(found.rows.iter().map(|row| row.run));
        // Among those of the same time, and newer than all of them.
        runs_at(&world, &tenant, 100, 1).await;
        runs_at(&world, &tenant, 200, 1).await;
        world.settle().await;
        match found.next_cursor {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    let distinct: BTreeSet<RunId> = seen.iter().copied().collect();
    assert_eq!(distinct.len(), seen.len(), "a run was seen twice");
    for run in &there {
        assert!(distinct.contains(run), "{run} was skipped");
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn pages_are_newest_first_and_bounded(pool: PgPool) {
    let world = World::new(pool);
    let tenant = world.tenant().await;
    let old = runs_at(&world, &tenant, 1, 1).await;
    let new = runs_at(&world, &tenant, 2, 2).await;
    world.settle().await;

    let whole = page(&world, &tenant, None, u16::MAX).await;
    let order: Vec<RunId> = whole.rows.iter().map(|row| row.run).collect();
    assert_eq!(order, [new[1], new[0], old[0]]);
    assert_eq!(whole.next_cursor, None);
    let first = page(&world, &tenant, None, 0).await;
    assert_eq!(first.rows.len(), 1);
    let exact = page(&world, &tenant, None, 3).await;
    assert_eq!(
        (exact.rows.len(), exact.next_cursor),
        (3, None),
        "no page follows a page that is exactly full"
    );

    runs_at(&world, &tenant, 3, usize::from(PAGE_ROWS_MAX)).await;
    world.settle().await;
    let bounded = page(&world, &tenant, None, u16::MAX).await;
    assert_eq!(bounded.rows.len(), usize::from(PAGE_ROWS_MAX));
    assert!(bounded.next_cursor.is_some());
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn filters_and_rows_say_what_the_log_says(pool: PgPool) {
    let world = World::new(pool);
    let tenant = world.tenant().await;
    let applied = world.applied_run(&tenant).await;
    let (holding, _) = world.holding_run(&tenant).await;
    let waiting = runs_at(&world, &tenant, 1, 1).await[0];
    world.settle().await;
    let list = async |status: Option<Status>| {
        let filter = InventoryFilter {
            status,
            workspace: Some(tenant.workspace),
        };
        let page = world
            .views
            .inventory_page(tenant.organization, filter, None, 100)
            .await
            .unwrap();
        page.rows
    };

    assert_eq!(list(None).await.len(), 3);
    let queued: Vec<RunId> = list(Some(Status::Queued))
        .await
        .iter()
        .map(|row| row.run)
        .collect();
    assert_eq!(queued, [waiting, holding], "newest first by creation time");
    let ended = list(Some(Status::Applied)).await;
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0].run, applied);
    assert!(
        ended[0]
            .ended_at
            .is_some_and(|at| at == ended[0].updated_at)
    );
    assert_eq!(ended[0].message, samples::facts().message);

    let unfinished = world
        .views
        .unfinished_of_workspace(tenant.organization, tenant.workspace, 10)
        .await
        .unwrap();
    let unfinished: Vec<RunId> = unfinished.iter().map(|row| row.run).collect();
    assert_eq!(unfinished, [waiting, holding]);
    let foreign = world
        .views
        .unfinished_of_workspace(clock::fresh(), tenant.workspace, 10)
        .await
        .unwrap();
    assert_eq!(foreign, []);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_sweep_reaches_every_unfinished_run_of_every_tenant(pool: PgPool) {
    let world = World::new(pool);
    let (one, other) = (world.tenant().await, world.tenant().await);
    let mut unfinished = runs_at(&world, &one, 1, 3).await;
    unfinished.extend(runs_at(&world, &other, 1, 2).await);
    world.speculative_run(&one).await;
    world.settle().await;

    let mut swept = Vec::new();
    loop {
        let after = swept.last().copied();
        let found = world.views.unfinished_runs(after, 2).await.unwrap();
        assert!(found.iter().all(|run| run.status == Status::Queued));
        if found.is_empty() {
            break;
        }
        swept.extend(found.iter().map(|run| run.run));
    }
    unfinished.sort();
    assert_eq!(swept, unfinished);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn only_a_cursor_of_this_list_is_taken(pool: PgPool) {
    let world = World::new(pool);
    let tenant = world.tenant().await;
    let stranger = world.tenant().await;
    runs_at(&world, &tenant, 1, 3).await;
    runs_at(&world, &stranger, 1, 3).await;
    world.settle().await;
    let good = page(&world, &tenant, None, 1).await.next_cursor.unwrap();
    let foreign = page(&world, &stranger, None, 1).await.next_cursor.unwrap();
    let filtered = world
        .views
        .inventory_page(
            tenant.organization,
            InventoryFilter {
                status: Some(Status::Queued),
                workspace: None,
            },
            None,
            1,
        )
        .await
        .unwrap()
        .next_cursor
        .unwrap();
    let other_key = Views::new(world.owner.clone(), CursorKey::new([8; 32]))
        .inventory_page(tenant.organization, InventoryFilter::default(), None, 1)
        .await
        .unwrap()
        .next_cursor
        .unwrap();
    let bytes = URL_SAFE_NO_PAD.decode(&good).unwrap();
    let row = &page(&world, &tenant, None, 1).await.rows[0];

    let mut forgeries: Vec<(String, String)> = vec![
        ("nothing".to_owned(), String::new()),
        ("a bare timestamp".to_owned(), row.created_at.to_string()),
        (
            "a joined key".to_owned(),
            format!("{}|{}", row.created_at, row.run),
        ),
        (
            "an encoded joined key".to_owned(),
            URL_SAFE_NO_PAD.encode(format!("{},{}", row.created_at, row.run)),
        ),
        ("another tenant's".to_owned(), foreign),
        ("another filter's".to_owned(), filtered),
        ("another key's".to_owned(), other_key),
        ("padded".to_owned(), URL_SAFE.encode(&bytes)),
        (
            "in another alphabet".to_owned(),
            format!("+{}", &STANDARD.encode(&bytes)[1..]),
        ),
        (
            "too long".to_owned(),
            URL_SAFE_NO_PAD.encode([bytes.as_slice(), &[0]].concat()),
        ),
        ("a long text".to_owned(), "A".repeat(100_000)),
        ("not ASCII".to_owned(), "é".repeat(40)),
    ];
    for length in 0..bytes.len() {
        forgeries.push((
            format!("cut to {length} bytes"),
            URL_SAFE_NO_PAD.encode(&bytes[..length]),
        ));
        let mut changed = bytes.clone();
        changed[length] ^= 1;
        forgeries.push((
            format!("byte {length} changed"),
            URL_SAFE_NO_PAD.encode(changed),
        ));
    }
    for (what, forgery) in forgeries {
        let answer = world
            .views
            .inventory_page(
                tenant.organization,
                InventoryFilter::default(),
                Some(&forgery),
                1,
            )
            .await;
        assert!(
            matches!(answer, Err(PageError::CursorInvalid)),
            "{what} was taken: {answer:?}"
        );
    }
    let next = page(&world, &tenant, Some(&good), 1).await;
    assert_ne!(next.rows[0].run, row.run);
}
