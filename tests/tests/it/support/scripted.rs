//! A runner that runs nothing: it leases a plan and hands in what it was given.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::client::{http, text};
use super::remote::register;
use super::{Client, Workspace, World, eventually};

/// Where only such a runner is.
const REGION: &str = "scripted";

/// A registered runner of a region of its own.
pub struct ScriptedRunner {
    url: String,
    token: String,
}

impl ScriptedRunner {
    pub fn new(world: &World, name: &str) -> Self {
        Self {
            url: world.server.url(),
            token: register(&world.server, name),
        }
    }

    /// A workspace whose runs only such a runner is offered.
    #[track_caller]
    pub fn workspace(owner: &Client, name: &str) -> Workspace {
        let path = format!("/v1/organizations/{}/workspaces", owner.organization());
        let new = json!({"name": name, "project": "default", "region": REGION});
        Workspace {
            id: text(&owner.post(&path, &new)["id"]),
            name: name.to_owned(),
        }
    }

    /// Plans a run of this workspace by handing these in; says which run waits for a person then.
    #[track_caller]
    pub fn plan(&self, owner: &Client, workspace: &Workspace, plan: &[u8], json: &[u8]) -> String {
        let detail = owner.detail(workspace);
        let run = owner.start(workspace, "plan_and_apply", &[("main.tf", "")]);
        let request = json!({
            "region": REGION, "platform": detail["platform"], "wait_ms": 1000, "release": "test",
            "isolation": "bubblewrap",
        });
        let lease = eventually("a lease", || {
            let leased = self.post("/runner/v1/leases", &self.token, &request);
            (leased.0 == StatusCode::OK).then_some(leased.1)
        });
        assert_eq!(lease["run"], run.as_str());
        let (attempt, token) = (text(&lease["attempt"]), text(&lease["lease_token"]));
        let put = |kind: &str, bytes: &[u8]| self.put(&attempt, &token, kind, bytes);
        let result = json!({"phase": "plan", "end": {
            "end": "planned", "exit_code": 2, "json": {"errored": false, "doubtful": 0, "counts": {
                "create": 1, "change": 0, "destroy": 0, "replace": 0, "import": 0, "forget": 0, "move": 0,
                "output": 0}},
            "plan": put("plan", plan), "plan_json": put("plan_json", json),
            "plan_diff": put("plan_diff", b"{}"), "policy_input": put("policy_input", b"{}"), "lock_file": null,
            "dependencies": sha256(b"none"), "sandbox": {},
        }});
        let path = format!("/runner/v1/attempts/{attempt}/result");
        let (status, answer) = self.post(&path, &token, &result);
        assert!(status.is_success(), "{status} {answer}");
        owner.wait_status(&run, "awaiting_approval");
        run
    }

    fn post(&self, path: &str, token: &str, body: &Value) -> (StatusCode, Value) {
        let request = http().request(Method::POST, format!("{}{path}", self.url));
        super::client::answer(request.bearer_auth(token).json(body))
    }

    #[track_caller]
    fn put(&self, attempt: &str, token: &str, kind: &str, bytes: &[u8]) -> Value {
        let url = format!("{}/runner/v1/attempts/{attempt}/artifacts/{kind}", self.url);
        let request = http()
            .put(url)
            .bearer_auth(token)
            .header("x-stackship-sha256", sha256(bytes))
            .body(bytes.to_vec());
        let (status, stored) = super::client::answer(request);
        assert!(status.is_success(), "{kind}: {status} {stored}");
        stored
    }
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
