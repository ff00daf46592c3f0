//! The walk through policy sets.

use serde_json::json;

use super::{Walk, fill, id};
use crate::http::Call;
use crate::world::policies::harmless;

const SET: &str = "/v1/policy-sets/{policy_set}";

pub(super) async fn policies(walk: &mut Walk<'_>) {
    const SETS: &str = "/v1/organizations/{organization}/policy-sets";
    let new = json!({"name": "baseline"});
    let set = walk.step("POST", SETS, &["acme"], new).await;
    let ids = [id(&set)];
    let versions = format!("{SET}/versions");
    // A new version, then the same again.
    for number in [1, 1] {
        let token = &walk.world.acme.owner.token;
        let mut upload = Call::new("POST", fill(&versions, &ids), token);
        upload.body = harmless("1");
        let version = walk.check("POST", &versions, upload).await;
        assert_eq!(version["number"], number);
    }
    walk.step("GET", SETS, &["acme"], json!({})).await;
    walk.step("GET", SET, &ids, json!({})).await;
    walk.step("GET", &versions, &ids, json!({})).await;
    for rest in ["", "/files"] {
        let version = format!("{versions}/{{version}}{rest}");
        walk.step("GET", &version, &[ids[0], "1"], json!({})).await;
    }
    places(walk, ids[0]).await;
    let reason = json!({"reason": "nobody needs it"});
    let archive = format!("{SET}/archive");
    walk.step("POST", &archive, &ids, reason).await;
}

async fn places(walk: &mut Walk<'_>, set: &str) {
    let workspace = walk.world.acme.workspace.to_string();
    let place = json!({"scope": {"kind": "workspace", "workspace": workspace}, "reason": "it guards production"});
    let attachments = format!("{SET}/attachments");
    for _ in ["new", "there already"] {
        walk.step("POST", &attachments, &[set], place.clone()).await;
    }
    walk.step("GET", &attachments, &[set], json!({})).await;
    let applying = "/v1/workspaces/{workspace}/policy-sets";
    let applying = walk.step("GET", applying, &[&workspace], json!({})).await;
    assert_eq!(applying[0]["policy_set"], set);
    let detach = format!("{SET}/detach");
    walk.step("POST", &detach, &[set], place).await;
}
