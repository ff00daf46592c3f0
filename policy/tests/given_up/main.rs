//! An evaluation that nobody waits for any more leaves no process behind.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../it/support.rs"]
#[expect(dead_code, reason = "the other test program uses the rest")]
mod support;

use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use serde_json::json;
use stackship_policy::Evaluator;

use support::{AMPLE, attached, bundle, context, input, program};

const ENDLESS: &str = "deny contains \"x\" if { some a in numbers.range(1, 100000); some b in numbers.range(1, 100000); a + b == 0 }";

/// How many processes this one has started and not yet buried.
fn children() -> usize {
    let own = std::process::id().to_string();
    let is_child = |stat: &String| {
        // The name, in parentheses, may hold spaces; the parent is the second field after it.
        let after = stat.rsplit(')').next().unwrap();
        after.split_whitespace().nth(1) == Some(&own)
    };
    let processes = std::fs::read_dir("/proc").unwrap();
    let stats = processes.filter_map(|entry| {
        let stat = entry.unwrap().path().join("stat");
        std::fs::read_to_string(stat).ok()
    });
    stats.filter(is_child).count()
}

async fn until(wanted: usize) {
    while children() != wanted {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn the_process_of_an_evaluation_that_is_given_up_is_killed() {
    let input = input(&json!({}));
    let bundles = [attached(bundle("advisory", ENDLESS))];
    let evaluator = Evaluator::with_limits(program(), AMPLE);
    tokio::select! {
        ended = evaluator.evaluate(&bundles, &input, context(&input)) => panic!("{ended:?}"),
        () = until(1) => {}
    }
    until(0).await;
    // Its own limit would have ended it too, but only after all of its processor time.
    let used = getrusage(UsageWho::RUSAGE_CHILDREN)
        .unwrap()
        .user_time()
        .tv_sec();
    assert!(used < 10, "{used} seconds");
}
