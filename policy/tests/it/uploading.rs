//! What an upload is refused for, by the reader and by the engine.

use serde_json::{Value, json};
use stackship_policy::{Bundle, BundleError, CHECKS_AT_ONCE_MAX, CHECKS_WAITING_MAX, Evaluator};

use crate::support::{archive, bundle, bundle_of, evaluator, manifest, policy};

const REGO: &str = "package stackship.tested\ndeny contains \"x\" if false\n";

fn refusal(files: &[(&str, &str)]) -> BundleError {
    Bundle::from_archive(&archive(files)).unwrap_err()
}

#[test]
fn a_manifest_is_refused_with_its_field_and_a_remedy() {
    let tested = policy("tested", "advisory");
    let with = |key: &str, value: Value| {
        let mut entry = tested.clone();
        entry[key] = value;
        json!({ "version": "1", "policies": [entry] })
    };
    let versioned = |version: Value| json!({ "version": version, "policies": [tested] });
    let listing = |policies: Value| json!({ "version": "1", "policies": policies });
    let mut same_file = tested.clone();
    same_file["id"] = json!("also");
    let unlevelled = json!([{ "id": "tested", "file": "tested.rego", "enabled": true }]);
    for (field, document) in [
        ("`version`", versioned(json!(""))),
        ("`version`", versioned(json!("a b"))),
        ("`version`", versioned(json!(1))),
        ("`policies`", listing(json!([]))),
        ("`policies[0]", listing(unlevelled)),
        (
            "`more`",
            json!({ "version": "1", "policies": [tested], "more": true }),
        ),
        ("`policies[0].more`", with("more", json!(true))),
        ("`policies[0].level`", with("level", json!("mandatory"))),
        ("`policies[0].enabled`", with("enabled", json!("yes"))),
        ("`policies[Tested].id`", with("id", json!("Tested"))),
        ("`policies[helpers].id`", with("id", json!("helpers"))),
        ("`policies[a.b].id`", with("id", json!("a.b"))),
        (
            "`policies[tested].file`",
            with("file", json!("../tested.rego")),
        ),
        (
            "`policies[tested].file`",
            with("file", json!("tested.json")),
        ),
        ("`policies[tested].title`", with("title", json!(""))),
        ("`policies[tested].title`", with("title", json!("a\u{7}"))),
        (
            "`policies[tested].description`",
            with("description", json!("d".repeat(2_001))),
        ),
        ("`policies[tested].id`", listing(json!([tested, tested]))),
        (
            "`policies[tested].file`",
            listing(json!([tested, same_file])),
        ),
    ] {
        let refused = refusal(&[
            ("manifest.json", &document.to_string()),
            ("tested.rego", REGO),
        ]);
        assert_eq!(
            refused.code(),
            "POLICY_BUNDLE_MANIFEST_INVALID",
            "{refused}"
        );
        assert!(refused.to_string().contains(field), "{field}: {refused}");
    }
}

#[test]
fn a_key_may_not_stand_twice() {
    let entry = r#"{"id":"tested","file":"tested.rego","level":"hard_mandatory","enabled":true,"level":"advisory"}"#;
    let twice = format!(r#"{{"version":"1","policies":[{entry}]}}"#);
    let refused = refusal(&[("manifest.json", &twice), ("tested.rego", REGO)]);
    assert!(
        refused.to_string().contains("\"level\" stands twice"),
        "{refused}"
    );
    let good = manifest(&[policy("tested", "advisory")]);
    let refused = refusal(&[
        ("manifest.json", &good),
        ("tested.rego", REGO),
        ("data.json", "{\"a\":1,\"a\":2}"),
    ]);
    assert!(refused.to_string().contains("data.json"), "{refused}");
}

#[test]
fn a_file_is_refused_with_its_path() {
    let good = manifest(&[policy("tested", "advisory")]);
    let with = |path: &str, text: &str| {
        refusal(&[
            ("manifest.json", &good),
            ("tested.rego", REGO),
            (path, text),
        ])
        .to_string()
    };
    for (path, text) in [
        ("other.rego", "package stackship.other"),
        ("README.md", "text"),
        (".hidden", ""),
        ("a b.rego", ""),
        ("tested.rego", REGO),
        ("data.json", "[]"),
        ("data.json", "{"),
        ("data.json", "{\"stackship\": {}}"),
        ("manifest.json", "{}"),
    ] {
        let refused = with(path, text);
        assert!(refused.contains(path), "{path}: {refused}");
    }
    for files in [
        &[("tested.rego", REGO)][..],
        &[("manifest.json", good.as_str())],
    ] {
        assert!(refusal(files).to_string().contains("missing"));
    }
    for text in [
        "package stackship.tested # \0[[[[[[[[[",
        "package \u{1b}[2J",
    ] {
        let refused = refusal(&[("manifest.json", &good), ("tested.rego", text)]);
        assert!(
            refused.to_string().contains("control character"),
            "{refused}"
        );
    }
}

async fn engine_refusal(bundle: &Bundle) -> String {
    let refused = evaluator().validate(bundle).await.unwrap_err();
    assert_eq!(refused.code(), "POLICY_BUNDLE_POLICY_INVALID", "{refused}");
    refused.to_string()
}

#[tokio::test]
async fn the_engine_refuses_what_could_not_be_evaluated() {
    for (rules, said) in [
        ("deny contains", "tested.rego:"),
        ("deny[msg] { msg := 1 }", "tested.rego:"),
        ("allow := true", "neither `deny` nor `warn`"),
        ("deny := true", "`deny` is not a set"),
        ("warn := [\"x\"]", "`warn` is not a set"),
        ("deny contains \"x\" if http.send({}).a == 1", "http.send"),
        (
            "deny contains \"x\" if no_such_function(1) == 1",
            "no_such_function",
        ),
        (
            "deny contains \"x\" if rand.intn(\"a\", 2) == 1",
            "does not exist for policies",
        ),
        ("deny contains \"x\" if a\na if b\nb if a", "recursion"),
        ("deny contains x if true", "x"),
    ] {
        let refused = engine_refusal(&bundle("advisory", rules)).await;
        assert!(refused.contains(said), "{rules}: {refused}");
    }
}

#[tokio::test]
async fn the_package_follows_the_policys_id() {
    let good = manifest(&[policy("tested", "advisory")]);
    for package in [
        "stackship.other",
        "stackship.tested.more",
        "main",
        "stackship",
        "stackship.helpers",
    ] {
        let text = format!("package {package}\ndeny contains \"x\" if false");
        let upload = archive(&[("manifest.json", &good), ("tested.rego", &text)]);
        let bundle = Bundle::from_archive(&upload).unwrap();
        let refused = engine_refusal(&bundle).await;
        assert!(
            refused.contains("must declare `stackship.tested`"),
            "{refused}"
        );
    }
}

#[tokio::test]
async fn a_disabled_policy_must_load_too_and_the_refused_file_is_named() {
    let mut disabled = policy("off", "advisory");
    disabled["enabled"] = json!(false);
    let bundle = bundle_of(
        &[
            (policy("a", "advisory"), "deny contains \"x\" if false"),
            (disabled, "deny contains"),
        ],
        None,
    );
    let refused = engine_refusal(&bundle).await;
    assert!(refused.starts_with("file `off.rego`"), "{refused}");
}

#[tokio::test]
async fn a_good_bundle_is_accepted() {
    let rules = "import data.stackship.helpers\ndeny contains \"x\" if { some rc in input.plan.resource_changes; helpers.unknown(rc, [\"a\"]) }\nwarn contains data.name if false";
    let bundle = bundle_of(
        &[(policy("tested", "hard_mandatory"), rules)],
        Some("{\"name\": \"x\"}"),
    );
    evaluator().validate(&bundle).await.unwrap();
}

#[tokio::test]
async fn uploads_wait_in_a_line_that_has_an_end() {
    // It says nothing, so each check that is made ends in a refusal.
    let evaluator = Evaluator::new("/bin/true".into());
    let bundle = bundle("advisory", "deny contains \"x\" if false");
    let room = CHECKS_AT_ONCE_MAX + CHECKS_WAITING_MAX;
    let (sender, mut outcomes) = tokio::sync::mpsc::unbounded_channel();
    // On one thread nothing is checked to its end before everybody has come.
    for _ in 0..room + 2 {
        let (evaluator, bundle, sender) = (evaluator.clone(), bundle.clone(), sender.clone());
        tokio::spawn(async move { sender.send(evaluator.validate(&bundle).await).unwrap() });
    }
    drop(sender);
    let (mut checked, mut turned_away) = (0, 0);
    while let Some(outcome) = outcomes.recv().await {
        match outcome.unwrap_err() {
            BundleError::Policy { .. } => checked += 1,
            BundleError::NotStarted(_) => turned_away += 1,
            other => panic!("{other}"),
        }
    }
    assert_eq!((checked, turned_away), (room, 2));
}
