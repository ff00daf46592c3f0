use stackship_sandbox::outcome::LOG_CHUNK_MAX;
use stackship_sandbox::{EndReason, Event};

use crate::support::{Ran, run, shell, spec};

fn log_lengths(ran: &Ran) -> Vec<usize> {
    let length = |event: &Event| match event {
        Event::Log { bytes, .. } => Some(bytes.len()),
        _ => None,
    };
    ran.events.iter().filter_map(length).collect()
}

#[tokio::test]
async fn a_flood_of_log_is_cut_and_ends_the_sandbox() {
    let ran = run(spec(vec![shell("one", "head -c 1G /dev/zero")])).await;
    assert_eq!(ran.outcome.reason, EndReason::LogFlood);
    assert_eq!(log_lengths(&ran).iter().sum::<usize>(), 1 << 20);
    let truncated = ran
        .events
        .iter()
        .filter(|event| matches!(event, Event::LogTruncated));
    assert_eq!(truncated.count(), 1);
}

#[tokio::test]
async fn one_long_line_comes_in_bounded_pieces_and_the_rest_is_only_counted() {
    let ran = run(spec(vec![shell(
        "one",
        "head -c 50M /dev/zero; echo done >&2",
    )]))
    .await;
    assert_eq!(ran.outcome.reason, EndReason::Exited);
    assert_eq!(ran.outcome.log_bytes, (50 << 20) + 5);
    let lengths = log_lengths(&ran);
    assert_eq!(lengths.iter().sum::<usize>(), 1 << 20);
    assert!(
        lengths
            .iter()
            .all(|length| (1..=LOG_CHUNK_MAX).contains(length))
    );
}

#[tokio::test]
async fn raw_bytes_pass_unchanged() {
    let ran = run(spec(vec![shell(
        "one",
        r"printf '\377\376\033[2J\033]0;x\007\000\342\200\256'",
    )]))
    .await;
    let bytes: Vec<u8> = ran
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Log { bytes, .. } => Some(bytes.to_vec()),
            _ => None,
        })
        .flatten()
        .collect();
    assert_eq!(bytes, b"\xff\xfe\x1b[2J\x1b]0;x\x07\0\xe2\x80\xae");
}
