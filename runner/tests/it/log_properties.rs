//! The log's stages, whatever the bytes and however they arrive.

use proptest::prelude::*;
use stackship_runner::logs::{MASK, Secrets, StreamLog};

const SECRETS: [&str; 5] = [
    "hunter2!",
    "hunter2!long",
    "päss wörd",
    "line one of it\nline two of it",
    "aaaaab",
];

fn secrets() -> Secrets {
    let mut secrets = Secrets::default();
    for secret in SECRETS {
        secrets.add(secret);
    }
    secrets
}

fn log<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> String {
    let (mut stream, mut out) = (StreamLog::new(&secrets()), String::new());
    for chunk in chunks {
        stream.write(chunk, &mut out);
    }
    stream.finish(&mut out);
    out
}

/// Text with secrets, parts of secrets, control sequences, invalid bytes and states in it.
fn material() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => proptest::sample::select(SECRETS.to_vec()).prop_map(|secret| secret.as_bytes().to_vec()),
        2 => (proptest::sample::select(SECRETS.to_vec()), any::<prop::sample::Index>()).prop_map(|(secret, at)| {
            secret.as_bytes()[..at.index(secret.len())].to_vec()
        }),
        2 => proptest::sample::select(vec![
            "\n", "{", "{\n", "}\n", "  \"version\": 4,\n", "{\"version\":4,\"x\":1}\n", "\u{1b}[31m", "\u{1b}]0;t", "\u{7}",
            "\u{202e}", "é", "plain text ",
        ]).prop_map(|text| text.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..6),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn cut(bytes: &[u8], mut at: Vec<usize>) -> Vec<&[u8]> {
    at.retain(|at| *at <= bytes.len());
    at.sort_unstable();
    let mut from = 0;
    let mut chunks: Vec<&[u8]> = at
        .into_iter()
        .map(|to| {
            let chunk = &bytes[from..to];
            from = to;
            chunk
        })
        .collect();
    chunks.push(&bytes[from..]);
    chunks
}

proptest! {
    #[test]
    fn chunks_never_change_the_result(bytes in material(), at in proptest::collection::vec(0..200_usize, 0..12)) {
        prop_assert_eq!(log(cut(&bytes, at)), log([bytes.as_slice()]));
    }

    #[test]
    fn no_secret_is_in_the_result(bytes in material(), at in proptest::collection::vec(0..200_usize, 0..12)) {
        let out = log(cut(&bytes, at));
        for secret in SECRETS {
            prop_assert!(!out.contains(secret), "{} in {:?}", secret, out);
        }
        prop_assert!(!out.chars().any(|letter| letter.is_control() && letter != '\n' && letter != '\t'), "{:?}", out);
    }
}

#[test]
fn the_longest_secret_wins_and_the_rest_of_a_line_stays() {
    assert_eq!(
        log([&b"a hunter2!long b hunter2! c\n"[..]]),
        format!("a {MASK} b {MASK} c\n")
    );
    assert_eq!(log([&b"aaaaaaaaab"[..]]), format!("aaaa{MASK}\n"));
}

#[test]
fn a_dumped_state_is_left_out_and_what_follows_stays() {
    let left_out = "(a state that OpenTofu printed is left out here)\n";
    let pretty = "before\n{\n  \"version\": 4,\n  \"resources\": [\n    {\"password\": \"x\"}\n  ]\n}\nafter\n";
    assert_eq!(
        log([pretty.as_bytes()]),
        format!("before\n{left_out}after\n")
    );
    let long = format!(
        "{{\"version\":4,\"resources\":\"{}\"}}\nafter\n",
        "x".repeat(100_000)
    );
    assert_eq!(log([long.as_bytes()]), format!("{left_out}after\n"));
    let other = "{\n  \"error\": \"denied\"\n}\n{ not a state\n";
    assert_eq!(
        log([other.as_bytes()]),
        other,
        "a provider's JSON is no state"
    );
}

#[test]
fn long_lines_are_cut_and_not_lost() {
    let out = log([("é".repeat(20_000) + "\n").as_bytes()]);
    assert!(out.lines().all(|line| line.len() <= 16 * 1024));
    assert_eq!(out.replace('\n', ""), "é".repeat(20_000));
}
