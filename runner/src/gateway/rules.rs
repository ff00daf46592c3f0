//! What one run may ask in one phase.

use std::collections::HashMap;

use http::Method;
use serde_json::Value;
use stackship_domain::ids::StateVersionId;
use stackship_domain::run::Phase;
use stackship_runner_protocol::{Lease, STATE_BYTES_MAX};
use stackship_sandbox::spec::GATEWAY_ADDRESS;

/// The largest document that a client may send.
const DOCUMENT_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// The most URLs that are remembered of one run: two uploads a snapshot, for hours.
const TRANSFERS_MAX: usize = 20_000;

/// What a request is, once it is recognized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allowed {
    /// A document whose answer may name URLs for transfers.
    Document,
    /// A download.
    Download,
    /// An upload of a state's own bytes.
    StateUpload { version: StateVersionId },
    /// An upload of what describes a state.
    OtherUpload,
}

impl Allowed {
    /// The most bytes of a request's body.
    pub(super) const fn body_bytes_max(self) -> u64 {
        match self {
            Self::Download => 0,
            Self::Document => DOCUMENT_BYTES_MAX,
            Self::StateUpload { .. } | Self::OtherUpload => STATE_BYTES_MAX,
        }
    }
}

/// The requests of one run in one phase.
#[derive(Debug)]
pub(super) struct Rules {
    phase: Phase,
    organization: String,
    workspace_name: String,
    workspace: String,
    /// Paths with their queries, as the control plane named them.
    transfers: HashMap<String, Allowed>,
}

impl Rules {
    pub(super) fn of(lease: &Lease) -> Self {
        Self {
            phase: lease.phase,
            organization: lease.organization_name.to_string(),
            workspace_name: lease.workspace_name.to_string(),
            workspace: lease.workspace.to_string(),
            transfers: HashMap::new(),
        }
    }

    /// What this request is; `None` when it is none that the phase needs.
    pub(super) fn allowed(&self, method: &Method, path_and_query: &str) -> Option<Allowed> {
        if let Some(transfer) = self.transfers.get(path_and_query) {
            let is_download = *transfer == Allowed::Download;
            return (*method
                == if is_download {
                    Method::GET
                } else {
                    Method::PUT
                })
            .then_some(*transfer);
        }
        let path = path_and_query.split('?').next()?;
        // A path that could mean another one to whoever reads it next is none that OpenTofu sends.
        if path.contains(['%', '\\', ';']) || path.contains("//") || path.contains("/.") {
            return None;
        }
        let parts: Vec<&str> = path.strip_prefix("/api/v2/")?.split('/').collect();
        self.is_known(method, &parts).then_some(Allowed::Document)
    }

    fn is_known(&self, method: &Method, parts: &[&str]) -> bool {
        let is_ours = |organization: &str| organization == self.organization;
        match (method.as_str(), parts) {
            ("GET", ["ping"]) => true,
            ("GET", ["organizations", organization, "entitlement-set"]) => is_ours(organization),
            ("GET", ["organizations", organization, "workspaces", name]) => {
                is_ours(organization) && *name == self.workspace_name
            }
            // A lock of the workspace is a harmless no-op for the run that holds it anyway.
            ("GET", ["workspaces", id, "current-state-version"])
            | ("POST", ["workspaces", id, "actions", "lock" | "unlock"]) => *id == self.workspace,
            ("POST", ["workspaces", id, "state-versions"]) => {
                self.phase == Phase::Apply && *id == self.workspace
            }
            // Which state versions a run's token opens is the control plane's to say.
            ("GET", ["state-versions", id]) => {
                self.phase == Phase::Apply && id.parse::<StateVersionId>().is_ok()
            }
            _ => false,
        }
    }

    /// Remembers the URLs that an answer names.
    pub(super) fn learn(&mut self, answer: &Value) {
        let data = &answer["data"];
        let Some(version) = data["id"].as_str().and_then(|id| id.parse().ok()) else {
            return;
        };
        let uploads = self.phase == Phase::Apply;
        for (name, transfer) in [
            ("hosted-state-download-url", Some(Allowed::Download)),
            (
                "hosted-state-upload-url",
                uploads.then_some(Allowed::StateUpload { version }),
            ),
            (
                "hosted-json-state-upload-url",
                uploads.then_some(Allowed::OtherUpload),
            ),
        ] {
            let path = data["attributes"][name].as_str().and_then(own_path);
            if let (Some(path), Some(transfer)) = (path, transfer)
                && self.transfers.len() < TRANSFERS_MAX
            {
                self.transfers.insert(path.to_owned(), transfer);
            }
        }
    }
}

/// The path of a URL that leads through the gateway; another one a sandbox cannot reach anyway.
fn own_path(url: &str) -> Option<&str> {
    let path = url.strip_prefix("http://")?.strip_prefix(GATEWAY_ADDRESS)?;
    path.starts_with('/').then_some(path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use stackship_domain::run::samples;

    use super::*;

    fn rules(phase: Phase) -> Rules {
        Rules {
            phase,
            organization: "acme".to_owned(),
            workspace_name: "net".to_owned(),
            workspace: "ws-own".to_owned(),
            transfers: HashMap::new(),
        }
    }

    #[test]
    fn a_phase_may_ask_what_it_needs_and_nothing_else() {
        let state = format!(
            "/api/v2/state-versions/{}",
            samples::id::<StateVersionId>(1)
        );
        for (method, path, in_plan, in_apply) in [
            (Method::GET, "/api/v2/ping", true, true),
            (
                Method::GET,
                "/api/v2/organizations/acme/entitlement-set",
                true,
                true,
            ),
            (
                Method::GET,
                "/api/v2/organizations/acme/workspaces/net?include=x",
                true,
                true,
            ),
            (
                Method::GET,
                "/api/v2/workspaces/ws-own/current-state-version",
                true,
                true,
            ),
            (
                Method::POST,
                "/api/v2/workspaces/ws-own/state-versions",
                false,
                true,
            ),
            (Method::GET, state.as_str(), false, true),
            (
                Method::GET,
                "/api/v2/organizations/acme/workspaces/other",
                false,
                false,
            ),
            (
                Method::GET,
                "/api/v2/organizations/globex/workspaces/net",
                false,
                false,
            ),
            (
                Method::GET,
                "/api/v2/workspaces/ws-other/current-state-version",
                false,
                false,
            ),
            (
                Method::POST,
                "/api/v2/workspaces/ws-other/state-versions",
                false,
                false,
            ),
            (
                Method::POST,
                "/api/v2/runs/run-1/actions/apply",
                false,
                false,
            ),
            (Method::POST, "/v1/runs/run-1/approve", false, false),
            (Method::POST, "/runner/v1/leases", false, false),
            (Method::DELETE, "/api/v2/ping", false, false),
            (
                Method::GET,
                "/api/v2/organizations/acme/workspaces/net/../other",
                false,
                false,
            ),
            (
                Method::GET,
                "/api/v2/organizations/acme/workspaces/%6eet",
                false,
                false,
            ),
            (Method::GET, "/api/v2//ping", false, false),
        ] {
            assert_eq!(
                rules(Phase::Plan).allowed(&method, path).is_some(),
                in_plan,
                "plan {method} {path}"
            );
            assert_eq!(
                rules(Phase::Apply).allowed(&method, path).is_some(),
                in_apply,
                "apply {method} {path}"
            );
        }
    }

    #[test]
    fn transfers_are_the_ones_that_the_control_plane_named() {
        let version = samples::id::<StateVersionId>(1);
        let answer = json!({ "data": { "id": version, "attributes": {
            "hosted-state-download-url": "http://127.0.0.1:8080/t/down?s=1",
            "hosted-state-upload-url": "http://127.0.0.1:8080/t/up",
            "hosted-json-state-upload-url": "http://elsewhere.example/t/json" } } });
        let (mut plan, mut apply) = (rules(Phase::Plan), rules(Phase::Apply));
        plan.learn(&answer);
        apply.learn(&answer);
        let upload = Some(Allowed::StateUpload { version });
        assert_eq!(apply.allowed(&Method::PUT, "/t/up"), upload);
        assert_eq!(
            plan.allowed(&Method::PUT, "/t/up"),
            None,
            "a plan uploads nothing"
        );
        for rules in [plan, apply] {
            assert_eq!(
                rules.allowed(&Method::GET, "/t/down?s=1"),
                Some(Allowed::Download)
            );
            assert_eq!(rules.allowed(&Method::GET, "/t/down?s=2"), None);
            assert_eq!(rules.allowed(&Method::PUT, "/t/down?s=1"), None);
            assert_eq!(rules.allowed(&Method::PUT, "/t/json"), None);
        }
    }
}
