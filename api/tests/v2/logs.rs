//! Following a log as the client does.

use std::time::{Duration, Instant};

use sqlx::PgPool;
use stackship_domain::run::Status;

use crate::edge::create_run;
use crate::http::get;
use crate::world::World;

async fn log_url(world: &World, run: &str, phase: &str, kind: &str) -> String {
    let url = format!(
        "{}/api/v2/{kind}/{}",
        world.url,
        run.replacen("run-", phase, 1)
    );
    let read = get(&url, &world.reader.token).await.json();
    read["data"]["attributes"]["log-read-url"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Reads until the end, as the client does: again at once after text.
async fn follow(url: &str) -> Vec<u8> {
    let mut log = Vec::new();
    while log.last() != Some(&3) {
        let part = get(&format!("{url}?limit=65536&offset={}", log.len()), "").await;
        assert_eq!(part.status, 200);
        log.extend(part.body);
    }
    log
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_log_is_followed_to_its_end_without_a_gap_or_a_doubling(pool: PgPool) {
    let world = World::new(pool).await;
    let run = create_run(&world, true).await;
    let url = log_url(&world, &run, "plan-", "plans").await;
    let leased = world.lease().await;
    let writing = async {
        for sequence in 0..20 {
            world
                .log(&leased.attempt, sequence, &format!("line {sequence}\n"))
                .await;
        }
        world
            .report(&leased.attempt, &world.planned(b"plan", 1).await)
            .await;
    };
    let (log, ()) = tokio::join!(follow(&url), writing);
    let expected = (0..20).fold(String::new(), |text, line| {
        text + &format!(
            "line {line}
"
        )
    });
    assert_eq!(
        String::from_utf8(log).unwrap(),
        format!("\u{2}{expected}\u{3}")
    );
    let plan = format!(
        "{}/api/v2/plans/{}",
        world.url,
        run.replacen("run-", "plan-", 1)
    );
    let plan = get(&plan, &world.reader.token).await.json();
    assert_eq!(
        plan["data"]["attributes"]["status"], "finished",
        "for whoever asks after the end"
    );
    let beyond = get(&format!("{url}?limit=65536&offset=100000"), "").await;
    assert_eq!((beyond.status.as_u16(), beyond.body.len()), (200, 0));
    let foreign = get(&format!("{url}x"), "").await;
    assert_eq!(foreign.status, 404);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_read_without_anything_to_say_is_held_and_then_answered(pool: PgPool) {
    let world = World::new(pool).await;
    let run = create_run(&world, true).await;
    let url = log_url(&world, &run, "plan-", "plans").await;
    let began = Instant::now();
    let first = get(&format!("{url}?limit=65536&offset=0"), "").await;
    assert_eq!(first.body, [2], "the mark alone");
    assert!(began.elapsed() >= Duration::from_secs(1), "it was not held");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn the_logs_of_a_run_that_never_started_say_why_and_end(pool: PgPool) {
    let world = World::new(pool).await;
    let run = create_run(&world, false).await;
    let plan = log_url(&world, &run, "plan-", "plans").await;
    let apply = log_url(&world, &run, "apply-", "applies").await;
    let cancel = format!("{}/api/v2/runs/{run}/actions/cancel", world.url);
    crate::http::send("POST", &cancel, &world.operator.token, "{}").await;
    world.until(run.parse().unwrap(), Status::Canceled).await;
    let log = String::from_utf8(follow(&plan).await).unwrap();
    assert!(log.contains("canceled"), "{log:?}");
    let log = String::from_utf8(follow(&apply).await).unwrap();
    assert_eq!(
        log.lines().count(),
        4,
        "three lines to drop and the end: {log:?}"
    );
}
