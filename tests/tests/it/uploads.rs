//! Configurations that are too large to be taken.

use std::fs;
use std::path::Path;

use reqwest::{Body, Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Client, Upload, Workspace, World, text};

const MIB: u64 = 1 << 20;
/// What a packed configuration may have.
const LIMIT: u64 = 100 * MIB;
/// By so much it is more: more than any buffer on the way holds.
const EXCESS: u64 = 40 * MIB;
/// What the server may take for uploads on top, however large they are.
const GROWTH_MAX: u64 = 48 * MIB;

/// What begins like a packed configuration and does not end; made while it is sent.
fn endless(says_length: bool) -> Upload {
    const CHUNK: u64 = 256 * 1024;
    static ZEROS: [u8; 256 * 1024] = [0; 256 * 1024];
    let all = LIMIT + EXCESS;
    let beginning = std::iter::once(&[0x1f, 0x8b][..]);
    let rest = (0..all / CHUNK).map(|_| &ZEROS[..]);
    let chunks = beginning.chain(rest).map(Ok::<_, std::io::Error>);
    Upload {
        body: Body::wrap_stream(futures::stream::iter(chunks)),
        length: says_length.then_some(all + 2),
    }
}

fn v1_address(owner: &Client, workspace: &Workspace) -> (String, String) {
    let id = owner.configuration(workspace);
    let url = format!("{}/v1/configuration-versions/{id}/content", owner.url());
    (id, url)
}

fn v2_address(owner: &Client, workspace: &Workspace) -> (String, String) {
    let path = format!("/api/v2/workspaces/{}/configuration-versions", workspace.id);
    let body = json!({"data": {"type": "configuration-versions",
        "attributes": {"auto-queue-runs": false, "speculative": true}}});
    let (status, made) = owner.send(Method::POST, &path, Some(&body));
    assert!(status.is_success(), "{status} {made}");
    let data = &made["data"];
    (text(&data["id"]), text(&data["attributes"]["upload-url"]))
}

#[test]
fn a_configuration_over_the_limit_is_refused_with_the_limit_and_nothing_of_it_stays() {
    let world = World::own(&[("STACKSHIP_RUNNER__ENABLED", "false")]);
    let owner = &world.owner;
    let workspace = owner.workspace("too-large");
    let before = (
        world.server.peak_memory(),
        bytes_below(&world.server.data()),
    );
    for says_length in [true, false] {
        // Beside each other, as several people would.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let answer = refusal(owner, &v1_address(owner, &workspace), says_length);
                assert_eq!(answer["error"]["code"], "BODY_TOO_LARGE", "{answer}");
                assert_names_limit(&answer["error"]["message"]);
            });
            scope.spawn(|| {
                let answer = refusal(owner, &v2_address(owner, &workspace), says_length);
                assert_names_limit(&answer["errors"][0]["detail"]);
            });
        });
    }
    let after = bytes_below(&world.server.data());
    assert!(
        after < before.1 + MIB,
        "{after} bytes are kept, {} were",
        before.1
    );
    let growth = world.server.peak_memory().saturating_sub(before.0);
    assert!(growth < GROWTH_MAX, "the server took {growth} bytes more");
}

/// Uploads too much, and says how that was refused.
#[track_caller]
fn refusal(owner: &Client, (id, url): &(String, String), says_length: bool) -> Value {
    let (status, answer) = owner.upload(url, endless(says_length));
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{answer}");
    let version = owner.get(&format!("/v1/configuration-versions/{id}"));
    assert!(version["content"].is_null(), "{version:#}");
    answer
}

#[track_caller]
fn assert_names_limit(sentence: &Value) {
    assert!(text(sentence).contains(&LIMIT.to_string()), "{sentence}");
}

fn bytes_below(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(kind) if kind.is_dir() => bytes_below(&entry.path()),
        Ok(kind) => kind.len(),
        Err(_) => 0,
    });
    bytes.sum()
}
