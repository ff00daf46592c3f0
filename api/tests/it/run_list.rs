//! The list of runs: every run that was there is seen once, whatever happens meanwhile, and nothing but
//! a cursor of this very list opens a page (S-INV-1).

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sqlx::PgPool;
use stackship_domain::Actor;
use stackship_domain::ids::RunId;
use stackship_domain::run::{Command, RunKind};
use stackship_store::clock;
use stackship_store::records::workspaces;

use crate::http::{Answer, Call};
use crate::world::{World, new_workspace, origin};

async fn list(world: &World, query: &str) -> Answer {
    let path = format!("{}?{query}", world.acme.path("runs"));
    Call::new("GET", path, &world.acme.reader.token)
        .send(&world.router)
        .await
}

async fn created(world: &World, count: usize) -> Vec<RunId> {
    let mut runs = Vec::new();
    for _ in 0..count {
        runs.push(world.run(RunKind::Speculative).await);
    }
    for run in &runs {
        world.seen_run(*run).await;
    }
    runs
}

async fn finished(world: &World, run: RunId) {
    let cancel = Command::Cancel {
        by: Actor::User(world.acme.owner.user),
        reason: None,
        at: clock::now(),
    };
    world.run_command(run, cancel).await;
    world.seen_run(run).await;
}

fn next(page: &Value) -> Option<String> {
    let next = page["meta"]["page"]["next_cursor"].as_str();
    next.map(ToOwned::to_owned)
}

/// How often each run was seen on a walk over pages of three; `between` happens after each page.
async fn walk(
    world: &World,
    filter: &str,
    mut between: impl AsyncFnMut(usize),
) -> BTreeMap<RunId, u32> {
    let (mut seen, mut cursor) = (BTreeMap::new(), String::new());
    for number in 0.. {
        let query = format!("limit=3{filter}{cursor}");
        let page = list(world, &query).await;
        assert_eq!(page.status, 200, "{}", page.json);
        for row in page.json["data"].as_array().unwrap() {
            let run: RunId = row["id"].as_str().unwrap().parse().unwrap();
            *seen.entry(run).or_default() += 1;
        }
        between(number).await;
        match next(&page.json) {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    seen
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_walk_sees_every_run_once_while_runs_come_and_end(pool: PgPool) {
    let world = World::new(pool).await;
    let there = created(&world, 11).await;
    let seen = walk(&world, "", async |page| {
        created(&world, 1).await;
        // One that was seen already, and one that comes later.
        finished(&world, there[10 - page]).await;
        if page < 3 {
            finished(&world, there[page]).await;
        }
    })
    .await;
    for run in &there {
        assert_eq!(seen.get(run), Some(&1), "{run}");
    }
    assert!(seen.values().all(|times| *times == 1), "{seen:?}");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_walk_over_one_status_sees_once_whatever_stays_there(pool: PgPool) {
    let world = World::new(pool).await;
    let there = created(&world, 11).await;
    let stays = |index: usize| index.is_multiple_of(2);
    let seen = walk(&world, "&status=queued", async |page| {
        let leaves = there
            .iter()
            .enumerate()
            .filter(|(index, _)| !stays(*index))
            .nth(page);
        if let Some((_, run)) = leaves {
            finished(&world, *run).await;
        }
    })
    .await;
    for (index, run) in there.iter().enumerate() {
        let times = seen.get(run).copied().unwrap_or(0);
        assert!(
            times == 1 || (times == 0 && !stays(index)),
            "{run}: {times}"
        );
    }
    let ended = walk(&world, "&status=canceled", async |_| {}).await;
    let left = list(&world, "status=queued").await.json["data"].clone();
    assert_eq!(ended.len() + left.as_array().unwrap().len(), there.len());
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_list_of_one_workspace_has_its_runs_and_its_name(pool: PgPool) {
    let world = World::new(pool).await;
    created(&world, 2).await;
    let acme = &world.acme;
    let context = origin(acme.owner.user).within(acme.organization);
    let new = new_workspace(acme.project, "db");
    let other = workspaces::create(&world.store, &context, &new)
        .await
        .unwrap();
    let here = list(&world, &format!("workspace={}", acme.workspace)).await;
    let rows = here.data(200);
    assert_eq!(rows.as_array().map(Vec::len), Some(2));
    assert_eq!(rows[0]["workspace_name"], "net");
    let there = list(&world, &format!("workspace={other}")).await;
    assert_eq!(there.data(200), json!([]));
    for query in ["status=done", "workspace=net", "state=queued", "limit=0"] {
        assert_eq!(list(&world, query).await.status, 400, "{query}");
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn nothing_but_a_cursor_of_this_list_opens_a_page(pool: PgPool) {
    let world = World::new(pool).await;
    created(&world, 3).await;
    let first = list(&world, "limit=1").await;
    let cursor = next(&first.json).unwrap();
    let (run, at) = (
        &first.json["data"][0]["id"],
        &first.json["data"][0]["created_at"],
    );
    let (run, at) = (run.as_str().unwrap(), at.as_str().unwrap());
    let of_status = next(&list(&world, "limit=1&status=queued").await.json).unwrap();
    let here = format!("workspace={}", world.acme.workspace);
    let of_workspace = next(&list(&world, &format!("limit=1&{here}")).await.json).unwrap();
    let changed = |index: usize| {
        let mut bytes = cursor.clone().into_bytes();
        bytes[index] = if bytes[index] == b'A' { b'B' } else { b'A' };
        String::from_utf8(bytes).unwrap()
    };
    let mut refused = vec![
        String::new(),
        at.to_owned(),
        format!("{at}|{run}"),
        format!("{at},{run}"),
        format!("{at}_{run}"),
        run.to_owned(),
        of_status.clone(),
        of_workspace.clone(),
        cursor[1..].to_owned(),
        format!("{cursor}A"),
    ];
    refused.extend((0..cursor.len()).step_by(7).map(changed));
    let mut queries: Vec<String> = refused
        .iter()
        .map(|cursor| format!("cursor={}", cursor.replace('+', "%2B")))
        .collect();
    queries.extend([
        format!("status=queued&cursor={cursor}"),
        format!("status=canceled&cursor={of_status}"),
        format!("{here}&cursor={cursor}"),
        format!("{here}&status=queued&cursor={of_workspace}"),
    ]);
    for query in queries {
        let answer = list(&world, &query).await;
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (400, "RUN_LIST_CURSOR_INVALID"),
            "{query}"
        );
    }
    let foreign = format!("{}?cursor={cursor}", world.umbrella.path("runs"));
    let foreign = Call::new("GET", foreign, &world.umbrella.owner.token)
        .send(&world.router)
        .await;
    assert_eq!(foreign.code(), "RUN_LIST_CURSOR_INVALID");
    for query in [
        format!("cursor={cursor}"),
        format!("status=queued&cursor={of_status}"),
        format!("{here}&cursor={of_workspace}"),
    ] {
        assert_eq!(list(&world, &query).await.status, 200, "{query}");
    }
}
