//! A person who speaks to `/v1`.

use std::sync::OnceLock;

use reqwest::header::CONTENT_LENGTH;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::eventually;

/// A workspace that a test made for itself.
#[derive(Debug, Clone)]
pub struct Workspace {
    pub id: String,
    pub name: String,
}

/// Somebody with a token.
#[derive(Clone)]
pub struct Client {
    url: String,
    token: String,
    organization: String,
}

/// The loop that every test's requests run on.
pub fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime")
    })
}

fn http() -> &'static reqwest::Client {
    static HTTP: OnceLock<reqwest::Client> = OnceLock::new();
    HTTP.get_or_init(|| {
        // Somebody may have been faster.
        drop(rustls::crypto::ring::default_provider().install_default());
        reqwest::Client::new()
    })
}

impl Client {
    pub fn new(url: String, token: &str, organization: &str) -> Self {
        Self {
            url,
            token: token.to_owned(),
            organization: organization.to_owned(),
        }
    }

    pub fn token(&self) -> &str {
        &self.token
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn organization(&self) -> &str {
        &self.organization
    }

    /// Whether the server says that it is ready.
    pub fn ready(&self) -> bool {
        let answer = runtime().block_on(http().get(format!("{}/readyz", self.url)).send());
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    /// Sends one request, whatever the answer is.
    pub fn send(&self, method: Method, path: &str, body: Option<&Value>) -> (StatusCode, Value) {
        let mut request = http().request(method, format!("{}{path}", self.url));
        request = request.bearer_auth(&self.token);
        if let Some(body) = body {
            request = request.json(body);
        }
        answer(request)
    }

    #[track_caller]
    fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Value {
        let (status, mut answer) = self.send(method, path, body);
        assert!(status.is_success(), "{path}: {status} {answer}");
        answer["data"].take()
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Value {
        self.call(Method::GET, path, None)
    }

    #[track_caller]
    pub fn post(&self, path: &str, body: &Value) -> Value {
        self.call(Method::POST, path, Some(body))
    }

    #[track_caller]
    pub fn workspace(&self, name: &str) -> Workspace {
        let path = format!("/v1/organizations/{}/workspaces", self.organization);
        let made = self.post(&path, &json!({"name": name, "project": "default"}));
        Workspace {
            id: text(&made["id"]),
            name: name.to_owned(),
        }
    }

    #[track_caller]
    pub fn variable(&self, workspace: &Workspace, variable: &Value) {
        self.post(
            &format!("/v1/workspaces/{}/variables", workspace.id),
            variable,
        );
    }

    #[track_caller]
    pub fn detail(&self, workspace: &Workspace) -> Value {
        self.get(&format!("/v1/workspaces/{}", workspace.id))
    }

    /// Who holds the workspace's lock, since when and why; not where a run that holds it stands, which
    /// moves on.
    #[track_caller]
    pub fn lock(&self, workspace: &Workspace) -> Value {
        let mut lock = self.detail(workspace)["lock"].clone();
        if let Some(holder) = lock.get_mut("holder").and_then(Value::as_object_mut) {
            holder.remove("status");
        }
        lock
    }

    /// Ids of the workspace's runs, oldest first.
    #[track_caller]
    pub fn runs(&self, workspace: &Workspace) -> Vec<String> {
        let listed = self.get(&format!("/v1/workspaces/{}/runs", workspace.id));
        let mut runs: Vec<_> = rows(&listed).iter().map(|run| text(&run["id"])).collect();
        runs.reverse();
        runs
    }

    /// The workspace's only run.
    #[track_caller]
    pub fn only_run(&self, workspace: &Workspace) -> String {
        let runs = self.runs(workspace);
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs[0].clone()
    }

    #[track_caller]
    pub fn run(&self, run: &str) -> Value {
        self.get(&format!("/v1/runs/{run}"))
    }

    /// Waits until the run stands there, and fails as soon as it ended elsewhere.
    #[track_caller]
    pub fn wait_status(&self, run: &str, status: &str) -> Value {
        eventually(&format!("{run} is {status}"), || {
            let seen = self.run(run);
            if seen["status"] == status {
                return Some(seen);
            }
            assert!(
                seen["ended"].is_null(),
                "{run} ended otherwise than {status}: {seen:#}\n{}",
                self.log(run, "plan")
            );
            None
        })
    }

    /// Waits until the phase's log holds a text.
    #[track_caller]
    pub fn wait_log(&self, run: &str, phase: &str, words: &str) -> String {
        eventually(&format!("`{words}` in the {phase} log of {run}"), || {
            Some(self.log(run, phase)).filter(|log| log.contains(words))
        })
    }

    #[track_caller]
    pub fn log(&self, run: &str, phase: &str) -> String {
        text(&self.get(&format!("/v1/runs/{run}/logs/{phase}"))["text"])
    }

    /// Approves what the run asks about.
    #[track_caller]
    pub fn approve(&self, run: &str) -> Value {
        let asked = self.wait_status(run, "awaiting_approval");
        let binding = &asked["approval"]["binding_digest"];
        self.post(
            &format!("/v1/runs/{run}/approve"),
            &json!({"binding_digest": binding}),
        )
    }

    #[track_caller]
    pub fn cancel(&self, run: &str) {
        self.post(
            &format!("/v1/runs/{run}/cancel"),
            &json!({"reason": "the test says so"}),
        );
    }

    /// Announces a configuration.
    #[track_caller]
    pub fn configuration(&self, workspace: &Workspace) -> String {
        let path = format!("/v1/workspaces/{}/configuration-versions", workspace.id);
        text(&self.post(&path, &json!({}))["id"])
    }

    /// Uploads to an address, whatever the answer is.
    pub fn upload(&self, url: &str, upload: Upload) -> (StatusCode, Value) {
        self.send_bytes(Method::PUT, url, upload)
    }

    /// Sends bytes to an address, whatever the answer is.
    pub fn send_bytes(&self, method: Method, url: &str, upload: Upload) -> (StatusCode, Value) {
        let request = http().request(method, url).bearer_auth(&self.token);
        let mut request = request.body(upload.body);
        if let Some(length) = upload.length {
            request = request.header(CONTENT_LENGTH, length);
        }
        answer(request)
    }

    /// Uploads a configuration of these files and creates a run of it.
    #[track_caller]
    pub fn start(&self, workspace: &Workspace, kind: &str, files: &[(&str, &str)]) -> String {
        self.start_packed(workspace, kind, super::archive::packed(files))
    }

    /// The same for a speculative run that is made from a ref.
    #[track_caller]
    pub fn start_of_ref(
        &self,
        workspace: &Workspace,
        git_ref: &str,
        files: &[(&str, &str)],
    ) -> String {
        let packed = super::archive::packed(files);
        self.create(
            workspace,
            packed,
            json!({"kind": "speculative", "git_ref": git_ref}),
        )
    }

    /// Uploads a packed configuration and creates a run of it.
    #[track_caller]
    pub fn start_packed(&self, workspace: &Workspace, kind: &str, packed: Vec<u8>) -> String {
        self.create(workspace, packed, json!({"kind": kind}))
    }

    #[track_caller]
    fn create(&self, workspace: &Workspace, packed: Vec<u8>, mut body: Value) -> String {
        let configuration = self.configuration(workspace);
        let url = format!(
            "{}/v1/configuration-versions/{configuration}/content",
            self.url
        );
        let (status, answer) = self.upload(&url, Upload::from(packed));
        assert!(status.is_success(), "the upload: {status} {answer}");
        body["configuration_version"] = json!(configuration);
        body["message"] = json!("test");
        text(&self.post(&format!("/v1/workspaces/{}/runs", workspace.id), &body)["id"])
    }
}

/// Bytes on their way up.
pub struct Upload {
    pub body: reqwest::Body,
    /// Said in front when it is known; otherwise the bytes come in chunks.
    pub length: Option<u64>,
}

impl From<Vec<u8>> for Upload {
    fn from(bytes: Vec<u8>) -> Self {
        Self {
            body: bytes.into(),
            length: None,
        }
    }
}

fn answer(request: reqwest::RequestBuilder) -> (StatusCode, Value) {
    runtime().block_on(async {
        let answer = request.send().await.expect("the server answers");
        let (status, text) = (answer.status(), answer.text().await.expect("a text"));
        (
            status,
            serde_json::from_str(&text).unwrap_or(Value::String(text)),
        )
    })
}

/// The string that stands here.
#[track_caller]
pub fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("no text but {value}"))
        .to_owned()
}

#[track_caller]
fn rows(value: &Value) -> &Vec<Value> {
    value
        .as_array()
        .unwrap_or_else(|| panic!("no list but {value}"))
}
