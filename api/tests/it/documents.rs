//! The OpenAPI document is held against what the server answers: a walk through every operation.

mod names;
mod policies;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sqlx::PgPool;
use stackship_domain::Fence;
use stackship_domain::ids::RunId;
use stackship_domain::run::{ApplyReport, Command, RunKind, samples};
use stackship_domain::workspace::{self, Holder};
use stackship_store::clock;
use stackship_store::records::passwords::{self, Password};

use crate::http::{Answer, Call};
use crate::schema::differences;
use crate::world::{World, in_an_hour, origin};

/// Calls and compares each answer with the document.
struct Walk<'a> {
    world: &'a World,
    document: Value,
    seen: BTreeSet<String>,
}

impl Walk<'_> {
    async fn step(&mut self, method: &str, template: &str, ids: &[&str], body: Value) -> Value {
        let call = Call::new(method, fill(template, ids), &self.world.acme.owner.token).json(&body);
        self.check(method, template, call).await
    }

    async fn check(&mut self, method: &str, template: &str, call: Call<'_>) -> Value {
        let answer = call.send(&self.world.router).await;
        let path = template.split('?').next().unwrap();
        let operation = &self.document["paths"][path][method.to_lowercase()];
        let status = answer.status.as_u16().to_string();
        assert!(
            answer.status.is_success(),
            "{method} {template}: {status} {}",
            answer.json
        );
        let response = &operation["responses"][&status];
        assert!(
            response.is_object(),
            "{method} {path} does not document {status}"
        );
        if answer.status != 204 {
            let schema = &response["content"]["application/json"]["schema"];
            let found = differences(&self.document, schema, &answer.json);
            assert!(found.is_empty(), "{method} {path}:\n{}", found.join("\n"));
        }
        self.seen.insert(format!("{method} {path}"));
        answer.json["data"].clone()
    }
}

/// What needs a workflow at work; the tests of the doubt and of policies hold each answer against the
/// document.
const WALKED_ELSEWHERE: [&str; 5] = [
    "GET /v1/runs/{run}/policy-result",
    "POST /v1/runs/{run}/policy-override",
    "GET /v1/runs/{run}/recovery",
    "POST /v1/runs/{run}/recovery/adopt",
    "POST /v1/runs/{run}/recovery/no-change",
];

/// Holds one success against the document.
pub fn assert_described(method: &str, template: &str, answer: &Answer) {
    let document: Value = serde_json::from_str(&stackship_api::openapi_json()).unwrap();
    let operation = &document["paths"][template][method.to_lowercase()];
    let response = &operation["responses"][answer.status.as_u16().to_string()];
    let schema = &response["content"]["application/json"]["schema"];
    assert!(schema.is_object(), "{method} {template}: {}", answer.status);
    let found = differences(&document, schema, &answer.json);
    assert!(
        found.is_empty(),
        "{method} {template}:\n{}",
        found.join("\n")
    );
}

fn fill(template: &str, ids: &[&str]) -> String {
    let mut path = template.to_owned();
    for id in ids {
        let (start, end) = (path.find('{').unwrap(), path.find('}').unwrap());
        path.replace_range(start..=end, id);
    }
    path
}

fn id(thing: &Value) -> &str {
    thing["id"].as_str().unwrap()
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn every_operation_answers_as_the_document_says(pool: PgPool) {
    let world = World::new(pool).await;
    let mut walk = Walk {
        world: &world,
        document: serde_json::from_str(&stackship_api::openapi_json()).unwrap(),
        seen: BTreeSet::new(),
    };
    administration(&mut walk).await;
    settings(&mut walk).await;
    policies::policies(&mut walk).await;
    sources(&mut walk).await;
    decisions(&mut walk).await;
    ends(&mut walk).await;
    proofs(&mut walk).await;
    history(&mut walk).await;
    // Last: what was planned before is of a workspace without a state.
    free_the_workspace(&world).await;
    states(&mut walk).await;
    walk.seen
        .extend(WALKED_ELSEWHERE.iter().map(|route| (*route).to_owned()));
    let mut all = BTreeSet::new();
    for (path, methods) in walk.document["paths"].as_object().unwrap() {
        all.extend(
            methods
                .as_object()
                .unwrap()
                .keys()
                .map(|method| format!("{} {path}", method.to_uppercase())),
        );
    }
    let left: Vec<_> = all.difference(&walk.seen).collect();
    assert!(left.is_empty(), "the walk does not reach {left:?}");
}

async fn proofs(walk: &mut Walk<'_>) {
    let (acme, first) = (&walk.world.acme, "correct horse battery");
    let context = origin(acme.owner.user).within(acme.organization);
    let password = Password::new(first.to_owned()).unwrap();
    passwords::set(&walk.world.store, &context, acme.owner.user, password)
        .await
        .unwrap();
    let proof = json!({"password": first});
    walk.step("POST", "/v1/user/step-up", &[], proof).await;
    let change = json!({"current": first, "new": "another horse battery"});
    walk.step("PUT", "/v1/user/password", &[], change).await;
    // Bytes, which no schema describes; that they come is among the promises of what is guarded.
    for path in [
        "/v1/runs/{run}/raw-plan",
        "/v1/runs/{run}/emergency-state",
        "/v1/workspaces/{workspace}/state-versions/{state}/download",
    ] {
        let answers = &walk.document["paths"][path]["post"]["responses"]["200"]["content"];
        assert!(answers["application/octet-stream"].is_object(), "{answers}");
        walk.seen.insert(format!("POST {path}"));
    }
}

async fn history(walk: &mut Walk<'_>) {
    const EVENTS: &str = "/v1/organizations/{organization}/audit-events";
    let entries = walk.step("GET", EVENTS, &["acme"], json!({})).await;
    assert!(!entries.as_array().unwrap().is_empty());
    // Lines, which no schema describes.
    let export = format!("{EVENTS}/export");
    let path = fill(&export, &["acme"]);
    let answer = walk.world.send("GET", &path, &json!({})).await;
    let described = &walk.document["paths"][&export]["get"]["responses"]["200"]["content"];
    let content_type = answer.headers["content-type"].to_str().unwrap();
    assert_eq!(answer.status, 200);
    assert!(described[content_type].is_object(), "{described}");
    walk.seen.insert(format!("GET {export}"));
}

async fn administration(walk: &mut Walk<'_>) {
    const IN: &str = "/v1/organizations/{organization}";
    walk.step("GET", "/v1/organizations", &[], json!({})).await;
    walk.step("GET", IN, &["acme"], json!({})).await;
    let user = json!({"login": "ci", "display_name": "The pipeline"});
    let user = walk
        .step("POST", &format!("{IN}/users"), &["acme"], user)
        .await;
    walk.step("GET", &format!("{IN}/users"), &["acme"], json!({}))
        .await;
    let scope = json!({"kind": "workspace", "workspace": walk.world.acme.workspace});
    for scope in [
        scope,
        json!({"kind": "organization"}),
        json!({"kind": "project", "project": walk.world.acme.project}),
    ] {
        let grant = json!({"user": id(&user), "role": "planner", "scope": scope});
        walk.step("POST", &format!("{IN}/grants"), &["acme"], grant)
            .await;
    }
    walk.step("GET", &format!("{IN}/grants"), &["acme"], json!({}))
        .await;
    walk.step(
        "DELETE",
        &format!("{IN}/grants/{{user}}"),
        &["acme", id(&user)],
        json!({}),
    )
    .await;
    let token = json!({"description": "ci", "expires_at": in_an_hour(), "user": id(&user)});
    let token = walk
        .step("POST", &format!("{IN}/tokens"), &["acme"], token)
        .await;
    walk.step("GET", &format!("{IN}/tokens"), &["acme"], json!({}))
        .await;
    walk.step(
        "DELETE",
        &format!("{IN}/tokens/{{token}}"),
        &["acme", id(&token)],
        json!({}),
    )
    .await;
}

async fn settings(walk: &mut Walk<'_>) {
    const IN: &str = "/v1/organizations/{organization}";
    const WORKSPACE: &str = "/v1/workspaces/{workspace}";
    let project = walk
        .step(
            "POST",
            &format!("{IN}/projects"),
            &["acme"],
            json!({"name": "data"}),
        )
        .await;
    walk.step("GET", &format!("{IN}/projects"), &["acme"], json!({}))
        .await;
    walk.step("GET", "/v1/projects/{project}", &[id(&project)], json!({}))
        .await;
    let new = json!({"name": "staging", "project": "data", "approval_seconds": 60, "platform": "linux_arm64"});
    let workspace = walk
        .step("POST", &format!("{IN}/workspaces"), &["acme"], new)
        .await;
    let ids = [id(&workspace)];
    walk.step("GET", &format!("{IN}/workspaces"), &["acme"], json!({}))
        .await;
    walk.step("GET", WORKSPACE, &ids, json!({})).await;
    let changed = walk
        .step("PATCH", WORKSPACE, &ids, json!({"region": "north"}))
        .await;
    assert_eq!(
        (&changed["region"], &changed["approval_seconds"]),
        (&json!("north"), &json!(60))
    );
    for verb in ["lock", "unlock", "lock"] {
        walk.step("POST", &format!("{WORKSPACE}/{verb}"), &ids, json!({}))
            .await;
    }
    walk.step(
        "POST",
        &format!("{WORKSPACE}/force-unlock"),
        &ids,
        json!({"reason": "gone"}),
    )
    .await;
    for sensitive in [true, false] {
        let new = json!({"key": format!("k{sensitive}"), "value": "v", "category": "terraform", "sensitive": sensitive});
        let variable = walk
            .step("POST", &format!("{WORKSPACE}/variables"), &ids, new)
            .await;
        assert_eq!(variable["value"].is_null(), sensitive);
        let ids = [ids[0], id(&variable)];
        let one = format!("{WORKSPACE}/variables/{{variable}}");
        let changed = walk
            .step("PATCH", &one, &ids, json!({"description": "d"}))
            .await;
        assert_eq!(changed["value"].is_null(), sensitive);
        walk.step(
            "GET",
            &format!("{WORKSPACE}/variables"),
            &ids[..1],
            json!({}),
        )
        .await;
        walk.step("DELETE", &one, &ids, json!({})).await;
    }
}

async fn states(walk: &mut Walk<'_>) {
    const LIST: &str = "/v1/workspaces/{workspace}/state-versions";
    let first = walk.world.published_state(1, "a").await.id.to_string();
    let second = walk.world.published_state(2, "b").await.id.to_string();
    let workspace = walk.world.acme.workspace.to_string();
    let body = json!({"current": second, "reason": "The upgrade broke it."});
    let roll_back = format!("{LIST}/{{state}}/rollback");
    walk.step("POST", &roll_back, &[&workspace, &first], body)
        .await;
    let listed = walk.step("GET", LIST, &[&workspace], json!({})).await;
    assert_eq!(listed.as_array().map(Vec::len), Some(3));
    for state in listed.as_array().unwrap() {
        let ids = [&workspace, id(state)];
        walk.step("GET", &format!("{LIST}/{{state}}"), &ids, json!({}))
            .await;
    }
}

async fn sources(walk: &mut Walk<'_>) {
    let workspace = walk.world.acme.workspace.to_string();
    let create = "/v1/workspaces/{workspace}/configuration-versions";
    let configuration = walk
        .step("POST", create, &[&workspace], json!({"speculative": true}))
        .await;
    let content = "/v1/configuration-versions/{configuration}/content";
    let mut upload = Call::new(
        "PUT",
        fill(content, &[id(&configuration)]),
        &walk.world.acme.owner.token,
    );
    upload.body = vec![0x1f, 0x8b, 8, 0];
    walk.check("PUT", content, upload).await;
    let read = "/v1/configuration-versions/{configuration}";
    walk.step("GET", read, &[id(&configuration)], json!({}))
        .await;
    let run = json!({"configuration_version": id(&configuration), "message": "Look", "kind": "speculative"});
    // Another database of the cluster can hold the read models back for longer than a request waits.
    let path = fill("/v1/workspaces/{workspace}/runs", &[&workspace]);
    let first = Call::new("POST", &path, &walk.world.acme.owner.token)
        .json(&run)
        .send(&walk.world.router)
        .await;
    let first = [
        &first.json["data"]["id"],
        &first.json["error"]["details"]["run"],
    ];
    let first: RunId = first
        .iter()
        .find_map(|id| id.as_str())
        .unwrap()
        .parse()
        .unwrap();
    walk.world.seen_run(first).await;
    let again = walk
        .step(
            "POST",
            "/v1/workspaces/{workspace}/runs",
            &[&workspace],
            run,
        )
        .await;
    assert_eq!(
        id(&again),
        first.to_string(),
        "one run is made of a configuration version"
    );
    assert_eq!(again["waiting_for"]["kind"], "runner");
}

async fn decisions(walk: &mut Walk<'_>) {
    let (run, fence) = walk.world.run_that_asks().await;
    let seen = walk.world.seen_run(run).await;
    assert_eq!(seen["waiting_for"]["kind"], "approval");
    let waiting = walk.world.run(RunKind::PlanAndApply).await;
    let enqueue = workspace::Command::Enqueue { run: waiting };
    walk.world.workspace_command(enqueue).await;
    walk.world.seen_run(waiting).await;
    let binding = json!({"binding_digest": seen["approval"]["binding_digest"]});
    decide(walk, run, "approve", binding).await;
    let approved = walk
        .step("GET", "/v1/runs/{run}", &[&run.to_string()], json!({}))
        .await;
    assert_eq!(approved["approval"]["decision"]["kind"], "approved");
    let review = walk
        .step(
            "GET",
            "/v1/runs/{run}/review",
            &[&run.to_string()],
            json!({}),
        )
        .await;
    assert_eq!(review["stages"]["approval"]["state"], "approved");
    walk.step(
        "GET",
        "/v1/runs/{run}/logs/{phase}",
        &[&run.to_string(), "plan"],
        json!({}),
    )
    .await;
    walk.step(
        "GET",
        "/v1/runs/{run}/plan-changes",
        &[&run.to_string()],
        json!({}),
    )
    .await;
    decide(walk, waiting, "cancel", json!({"reason": "not needed"})).await;
    // No workflow runs here that would take the canceled run out of the queue.
    let dequeue = workspace::Command::Dequeue { run: waiting };
    walk.world.workspace_command(dequeue).await;
    applied(walk, run, fence).await;
}

/// Carries a decision out; a second time, once it can be seen for sure, to look at the answer.
async fn decide(walk: &mut Walk<'_>, run: RunId, verb: &str, body: Value) {
    let (template, key) = (format!("/v1/runs/{{run}}/{verb}"), clock::fresh_text());
    let path = fill(&template, &[&run.to_string()]);
    for is_first in [true, false] {
        let call = Call::new("POST", &path, &walk.world.acme.owner.token).json(&body);
        let call = call.header("idempotency-key", &key);
        if is_first {
            call.send(&walk.world.router).await;
            walk.world.seen_run(run).await;
        } else {
            walk.check("POST", &template, call).await;
        }
    }
}

async fn applied(walk: &mut Walk<'_>, run: RunId, fence: Fence) {
    let (attempt, binding) = (samples::attempt(1), {
        let seen = walk.world.seen_run(run).await;
        seen["approval"]["binding_digest"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap()
    });
    let at = clock::now();
    let report = ApplyReport::Published {
        publication: samples::publication(),
    };
    for command in [
        Command::StartApply {
            attempt: attempt.clone(),
            fence,
            binding,
            at,
        },
        Command::RecordApply {
            attempt: attempt.id,
            fence,
            report: Box::new(report),
            at,
        },
    ] {
        walk.world.run_command(run, command).await;
    }
    let seen = walk.world.seen_run(run).await;
    assert_eq!(seen["ended"]["reason"], "applied");
    let done = walk
        .step("GET", "/v1/runs/{run}", &[&run.to_string()], json!({}))
        .await;
    assert_eq!(
        done["apply"]["published"]["version"],
        json!(samples::publication().version)
    );
    let review = walk
        .step(
            "GET",
            "/v1/runs/{run}/review",
            &[&run.to_string()],
            json!({}),
        )
        .await;
    assert_eq!(review["ended"]["reason"], "applied");
}

/// Gives the workspace back, whoever's run holds it.
async fn free_the_workspace(world: &World) {
    let loaded = world.store.workspaces.load(world.acme.workspace).await;
    let lock = loaded.unwrap().0.lock.unwrap();
    if let Holder::Run { run } = lock.holder {
        let release = workspace::Command::ReleaseByRun {
            run,
            fence: lock.fence,
            left_behind: None,
        };
        world.workspace_command(release).await;
    }
}

async fn ends(walk: &mut Walk<'_>) {
    free_the_workspace(walk.world).await;
    let (run, _) = walk.world.run_that_asks().await;
    walk.world.seen_run(run).await;
    decide(walk, run, "discard", json!({"reason": "not today"})).await;
    let acme = &walk.world.acme;
    for template in [
        "/v1/organizations/{organization}/runs",
        "/v1/workspaces/{workspace}/runs",
    ] {
        let first = if template.contains("organization") {
            acme.name.to_owned()
        } else {
            acme.workspace.to_string()
        };
        let runs = walk.step("GET", template, &[&first], json!({})).await;
        assert_eq!(runs.as_array().map(Vec::len), Some(4));
    }
}
