//! Policies on their way in, tried by the server's own program.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Client, Upload, World, packed, text};

/// Far more than an upload may have, and than any buffer on the way holds.
const TOO_MUCH: usize = 40 * 1024 * 1024;

fn bundle(rules: &str) -> Vec<u8> {
    let policy =
        json!({"id": "tried", "file": "tried.rego", "level": "hard_mandatory", "enabled": true});
    let manifest = json!({"version": "1", "policies": [policy]}).to_string();
    let rules = format!("package stackship.tried\n{rules}\n");
    packed(&[("manifest.json", &manifest), ("tried.rego", &rules)])
}

fn upload(owner: &Client, set: &str, archive: Vec<u8>) -> (StatusCode, Value) {
    let url = format!("{}/v1/policy-sets/{set}/versions", owner.url());
    owner.send_bytes(Method::POST, &url, Upload::from(archive))
}

#[test]
fn policies_are_tried_by_the_program_that_serves_and_cannot_take_it_down() {
    let owner = &World::shared().owner;
    let sets = format!("/v1/organizations/{}/policy-sets", owner.organization());
    let set = owner.post(&sets, &json!({"name": "tried-at-upload"}));
    let set = text(&set["id"]);
    for rules in [
        "f(x) := f(x + 1)\ndeny contains \"x\" if f(1) == 0",
        "deny contains \"x\" if count(numbers.range(1, 1000000000)) == 0",
    ] {
        let (status, refused) = upload(owner, &set, bundle(rules));
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{refused}");
        assert_eq!(refused["error"]["code"], "POLICY_BUNDLE_TOO_COSTLY");
    }
    // Whoever sends too much is told so, and does not only see a broken connection.
    let (status, refused) = upload(owner, &set, vec![0x1f; TOO_MUCH]);
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{refused}");
    assert_eq!(refused["error"]["code"], "POLICY_BUNDLE_TOO_LARGE");
    let (status, made) = upload(owner, &set, bundle("deny contains \"x\" if false"));
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let workspace = owner.workspace("judged");
    let scope = json!({"kind": "workspace", "workspace": workspace.id});
    let place = json!({"scope": scope, "reason": "tried on the whole system"});
    owner.post(&format!("/v1/policy-sets/{set}/attachments"), &place);
    let applying = owner.get(&format!("/v1/workspaces/{}/policy-sets", workspace.id));
    assert_eq!(applying[0]["bundle"], made["data"]["bundle"], "{applying}");
}
