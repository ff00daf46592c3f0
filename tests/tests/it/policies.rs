//! Policies judge every plan before anybody is asked: real bundles, the real limited process, and the
//! real `tofu` in a terminal.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Client, NO_FORBIDDEN, Workspace, World, eventually};

const FORBIDDEN: &str = r#"
resource "terraform_data" "forbidden" {
  input = "first"
}
"#;
const FOUND: &str = "terraform_data.forbidden may not be created";
const OVERRIDE: &str = "Do you want to override the soft failed policy check?";
const APPROVE: &str = "Do you want to perform these actions in workspace";

fn start(owner: &Client, workspace: &Workspace, kind: &str) -> String {
    owner.start(workspace, kind, &[("main.tf", FORBIDDEN)])
}

/// The run once it has ended.
fn ended(owner: &Client, run: &str) -> Value {
    eventually(&format!("{run} has ended"), || {
        Some(owner.run(run)).filter(|seen| !seen["ended"].is_null())
    })
}

#[test]
fn a_hard_denial_is_on_the_terminal_and_ends_the_run() {
    let world = World::shared();
    let owner = &world.owner;
    let (workspace, checkout) = world.begin("policy-hard", FORBIDDEN);
    owner.judge(&workspace, "hard_mandatory", NO_FORBIDDEN);
    let text = checkout.tofu(&["apply"]).exits(1);
    assert!(text.contains("Plan: 1 to add"), "{text}");
    assert!(text.contains(FOUND), "{text}");
    assert!(
        text.contains("Organization Policy Check hard failed."),
        "{text}"
    );
    assert!(!text.contains("Enter a value"), "{text}");

    let run = owner.run(&owner.only_run(&workspace));
    assert_eq!(run["ended"]["reason"], "policy_denied", "{run:#}");
    assert_eq!(run["policy"]["outcome"], "hard_failed");
    assert!(run["approval"].is_null(), "{run:#}");
    let id = run["id"].as_str().expect("an id");
    let log = owner.log(id, "policy");
    assert!(
        log.contains("Policy set of-policy-hard, version 1"),
        "{log}"
    );
    assert!(log.contains("names (hard_mandatory): denied 1"), "{log}");
    assert!(log.contains(FOUND), "{log}");
    let body = json!({"result_sha256": run["policy"]["sha256"], "duration_seconds": 60,
        "reason": "because of this test"});
    let path = format!("/v1/runs/{id}/policy-override");
    let (status, refused) = owner.send(Method::POST, &path, Some(&body));
    assert_eq!(
        (status.as_u16(), &refused["error"]["code"]),
        (409, &json!("RUN_STATUS_CONFLICT")),
        "{refused}"
    );
}

#[test]
fn a_soft_denial_is_overridden_at_the_prompt_then_approved_and_applied() {
    let world = World::shared();
    let owner = &world.owner;
    let (workspace, checkout) = world.begin("policy-soft", FORBIDDEN);
    owner.judge(&workspace, "soft_mandatory", NO_FORBIDDEN);
    let mut terminal = checkout.tofu(&["apply"]);
    terminal.expect(FOUND);
    terminal.expect(OVERRIDE);
    let run = owner.only_run(&workspace);
    assert_eq!(owner.run(&run)["status"], "override_required");
    terminal.type_line("override");
    terminal.expect(APPROVE);
    terminal.type_line("yes");
    let text = terminal.exits(0);
    assert!(
        text.contains("Apply complete! Resources: 1 added"),
        "{text}"
    );

    let applied = owner.run(&run);
    assert_eq!(applied["status"], "applied", "{applied:#}");
    let given = &applied["policy"]["overrides"][0];
    assert_eq!(given["by"], applied["created_by"]);
    assert_eq!(given["result_sha256"], applied["policy"]["sha256"]);
    evidence_agrees(owner, &applied);
}

/// What was approved, what was recorded and what was stored name the same things.
fn evidence_agrees(owner: &Client, run: &Value) {
    let evidence = &run["approval"]["evidence"];
    let result = owner.policy_result(run["id"].as_str().expect("an id"));
    assert_eq!(result["schema"], "stackship.policy-result/v2");
    for (one, other) in [
        (&evidence["policy_result"], &run["policy"]["sha256"]),
        (&evidence["plan"], &result["plan_digest"]),
        (&run["policy"]["policies_sha256"], &result["bundle_digest"]),
        (
            &run["policy"]["policies_sha256"],
            &run["pins"]["policies"]["sha256"],
        ),
        (
            &run["pins"]["policies"]["sets"][0]["bundle_sha256"],
            &result["bundles"][0],
        ),
        (&run["policy"]["outcome"], &result["outcome"]),
        (&run["id"], &result["run_id"]),
    ] {
        assert!(
            one.is_string() && one == other,
            "{one} {other}\n{run:#}\n{result:#}"
        );
    }
    assert!(result["redacted_plan_digest"].is_string(), "{result:#}");
    assert_eq!(result["findings"][0]["rule_id"], "no-forbidden");
}

#[test]
fn a_soft_denial_that_nobody_overrides_is_discarded_and_never_overridden_unasked() {
    let world = World::shared();
    let owner = &world.owner;
    let (workspace, checkout) = world.begin("policy-soft-no", FORBIDDEN);
    owner.judge(&workspace, "soft_mandatory", NO_FORBIDDEN);
    let text = checkout.tofu(&["apply", "-auto-approve"]).exits(1);
    assert!(text.contains("Automatic apply is not supported."), "{text}");
    assert!(owner.runs(&workspace).is_empty());

    let mut terminal = checkout.tofu(&["apply"]);
    terminal.expect(OVERRIDE);
    terminal.type_line("yes");
    let text = terminal.exits(1);
    assert!(
        text.contains("Failed to override: Apply discarded."),
        "{text}"
    );
    let run = owner.run(&owner.only_run(&workspace));
    assert_eq!(run["status"], "discarded");
    assert_eq!(run["policy"]["overrides"], json!([]));

    let text = checkout.tofu(&["plan"]).exits(1);
    assert!(text.contains(FOUND), "{text}");
    assert!(
        text.contains("Organization Policy Check soft failed."),
        "{text}"
    );
    let planned = owner.run(&owner.runs(&workspace)[1]);
    assert_eq!(planned["status"], "speculative_finished", "{planned:#}");
    assert_eq!(planned["policy"]["outcome"], "soft_failed");
}

#[test]
fn an_advisory_denial_is_shown_and_stops_nothing() {
    let world = World::shared();
    let owner = &world.owner;
    let (workspace, checkout) = world.begin("policy-advisory", FORBIDDEN);
    owner.judge(&workspace, "advisory", NO_FORBIDDEN);
    let text = checkout.tofu(&["plan"]).exits(0);
    assert!(text.contains(FOUND), "{text}");
    let mut terminal = checkout.tofu(&["apply"]);
    terminal.expect(FOUND);
    terminal.expect(APPROVE);
    terminal.type_line("yes");
    terminal.exits(0);
    let run = owner.run(&owner.runs(&workspace)[1]);
    assert_eq!(run["status"], "applied");
    assert_eq!(run["policy"]["outcome"], "pass");
    assert_eq!(run["policy"]["denials"], 1);
    evidence_agrees(owner, &run);
}

#[test]
fn hostile_policies_end_their_run_and_nothing_else() {
    let world = World::shared();
    let owner = &world.owner;
    let endless = "deny contains \"x\" if { input.plan.resource_changes != []; some a in numbers.range(1, 100000); \
                   some b in numbers.range(1, 100000); a + b == 0 }";
    let recursion =
        "f(x) := f(x + 1)\ndeny contains \"x\" if { input.plan.resource_changes != []; f(1) == 0 }";
    let runs = [
        ("policy-endless", endless, "policy_timeout"),
        ("policy-recursion", recursion, "policy_crashed"),
    ]
    .map(|(name, rules, code)| {
        let workspace = owner.workspace(name);
        // Only advisory: what fails to say anything does not pass all the same.
        owner.judge(&workspace, "advisory", rules);
        (start(owner, &workspace, "plan_and_apply"), code)
    });
    for (run, code) in runs {
        let ended = ended(owner, &run);
        assert_eq!(ended["ended"]["reason"], "policy_error", "{ended:#}");
        assert_eq!(ended["policy"]["error_code"], code, "{ended:#}");
        let result = owner.policy_result(&run);
        assert_eq!(result["findings"][0]["policy_id"], "names", "{result:#}");
        let log = owner.log(&run, "policy");
        assert!(log.contains("It cannot be overridden"), "{log}");
    }
    assert!(owner.ready(), "{}", world.server.log());
    let unharmed = owner.workspace("policy-unharmed");
    let run = start(owner, &unharmed, "plan_and_apply");
    owner.wait_status(&run, "awaiting_approval");
    owner.cancel(&run);
}

#[test]
fn what_changes_after_a_run_was_created_judges_only_the_next_one() {
    let world = World::shared();
    let owner = &world.owner;
    let workspace = owner.workspace("policy-pinned");
    let set = owner.judge(&workspace, "advisory", NO_FORBIDDEN);
    let path = format!("/v1/workspaces/{}", workspace.id);
    owner.post(&format!("{path}/lock"), &json!({"reason": "the run waits"}));
    let first = start(owner, &workspace, "plan_and_apply");
    owner.publish(&set, "hard_mandatory", NO_FORBIDDEN);
    owner.post(&format!("{path}/unlock"), &json!({}));
    let asked = owner.wait_status(&first, "awaiting_approval");
    assert_eq!(asked["pins"]["policies"]["sets"][0]["version"], 1);
    assert_eq!(asked["policy"]["outcome"], "pass", "{asked:#}");
    owner.cancel(&first);

    let second = start(owner, &workspace, "speculative");
    let denied = ended(owner, &second);
    assert_eq!(denied["pins"]["policies"]["sets"][0]["version"], 2);
    assert_eq!(denied["ended"]["reason"], "policy_denied", "{denied:#}");
}
