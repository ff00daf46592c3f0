//! Plans that are not what this reader knows: refused whole, or shown without detail.

use std::error::Error as _;

use serde_json::{Value, json};
use stackship_plan_diff::{InspectError, Limits, inspect, run};

use crate::support::{NOTHING, contains, diff, inspected, plan, resource};

fn error(json: &[u8]) -> InspectError {
    let error = inspect(json, NOTHING, &Limits::default()).unwrap_err();
    let told = format!("{error} {error:?} {:?}", error.source());
    assert!(!told.contains("S3CRET"), "{told}");
    error
}

#[test]
fn what_is_no_plan_is_refused_without_quoting_it() {
    type Expected = fn(&InspectError) -> bool;
    let deep = format!("{{\"S3CRET\":{}{}}}", "[".repeat(200), "]".repeat(200));
    let cases: &[(&[u8], Expected)] = &[
        (b"", |error| matches!(error, InspectError::Syntax { .. })),
        (b"{\"S3CRET\": nope", |error| matches!(error, InspectError::Syntax { .. })),
        (b"{} S3CRET", |error| matches!(error, InspectError::Syntax { .. })),
        (b"[\"S3CRET\"]", |error| matches!(error, InspectError::Shape)),
        (b"{\"resource_changes\":{\"S3CRET\":1}}", |error| matches!(error, InspectError::Shape)),
        (b"{\"errored\":\"S3CRET\"}", |error| matches!(error, InspectError::Shape)),
        (b"{\"S3CRET\":\"\xff\"}", |error| matches!(error, InspectError::NotUtf8 { offset: 11 })),
        (b"{\"S3CRET\":1,\"S3CRET\":2}", |error| matches!(error, InspectError::DoubledKey { .. })),
        (b"{}", |error| matches!(error, InspectError::Missing { name: "format_version" })),
        (b"{\"format_version\":\"1.2\",\"resource_changes\":[{\"change\":{\"actions\":[\"S3CRET\"]}}]}", |error| matches!(error, InspectError::Missing { name: "address" })),
        (b"{\"format_version\":\"1.2\",\"resource_changes\":[\"S3CRET\"]}", |error| matches!(error, InspectError::Shape)),
        (b"{\"format_version\":\"1.2\",\"configuration\":\"S3CRET\"}", |error| matches!(error, InspectError::Shape)),
        (deep.as_bytes(), |error| matches!(error, InspectError::TooDeep { .. })),
    ];
    for (json, is_expected) in cases {
        let error = error(json);
        assert!(
            is_expected(&error),
            "{error:?} for {}",
            String::from_utf8_lossy(json)
        );
    }
}

#[test]
fn a_key_that_stands_twice_in_a_mask_is_refused() {
    let change = resource(
        "a",
        &json!({ "after": { "a": "S3CRET" }, "after_sensitive": { "a": true } }),
    );
    let text = plan(&[change]).to_string();
    let doubled = text.replace("{\"a\":true}", "{\"a\":true,\"\\u0061\":false}");
    assert_ne!(text, doubled);
    assert!(matches!(
        error(doubled.as_bytes()),
        InspectError::DoubledKey { .. }
    ));
}

#[test]
fn only_format_version_1_is_read() {
    for version in ["2.0", "0.2", "1", "", "1.x", "10.0", "1.2-S3CRET"] {
        let mut plan = plan(&[]);
        plan["format_version"] = json!(version);
        assert!(
            matches!(
                error(plan.to_string().as_bytes()),
                InspectError::FormatVersion
            ),
            "{version}"
        );
    }
    let mut plan = plan(&[]);
    plan["format_version"] = json!("1.99");
    assert_eq!(diff(&plan)["format_version"], "1.99");
}

#[test]
fn a_plan_that_is_too_long_is_refused_and_one_that_just_fits_is_taken() {
    let json = plan(&[]).to_string();
    let length = json.len() as u64;
    let with = |json_bytes| Limits {
        json_bytes,
        ..Limits::default()
    };
    assert!(inspect(json.as_bytes(), NOTHING, &with(length)).is_ok());
    let error = inspect(json.as_bytes(), NOTHING, &with(length - 1)).unwrap_err();
    assert!(matches!(error, InspectError::TooLong { .. }));
    // A source without an end is not read to its end.
    assert!(inspect(std::io::repeat(b' '), NOTHING, &with(1_000)).is_err());
}

#[test]
fn an_unknown_action_counts_as_a_change_and_a_destruction_and_shows_no_detail() {
    for actions in [
        json!(["S3CRET"]),
        json!(["create", "update"]),
        json!([]),
        json!(["delete", "create", "delete"]),
        json!(["Delete"]),
    ] {
        let change = json!({ "actions": actions, "before": { "a": "b" }, "after": { "a": "c" } });
        let plan = plan(&[resource("a", &change)]);
        let inspection = inspected(&plan);
        let counts = inspection.summary.counts;
        assert_eq!(
            (counts.change, counts.destroy, counts.create, counts.replace),
            (1, 1, 0, 0),
            "{actions}"
        );
        assert_eq!(inspection.summary.doubtful, 1);
        assert!(
            !contains(&inspection.diff, "S3CRET")
                && !contains(&inspection.policy_input.unwrap(), "S3CRET")
        );
        let resource = &diff(&plan)["resources"][0];
        assert_eq!(resource["action"], "other");
        assert_eq!(
            resource["detail"],
            json!({ "status": "withheld", "reason": "unknown_action" })
        );
    }
}

#[test]
fn an_unknown_mode_shows_no_detail_and_is_not_repeated() {
    let mut change = resource(
        "a",
        &json!({ "before": { "a": "b" } , "after": { "a": "c" } }),
    );
    change["mode"] = json!("S3CRET");
    let inspection = inspected(&plan(std::slice::from_ref(&change)));
    assert!(
        !contains(&inspection.diff, "S3CRET")
            && !contains(&inspection.policy_input.unwrap(), "S3CRET")
    );
    let resource = &diff(&plan(&[change]))["resources"][0];
    assert_eq!(
        (&resource["mode"], &resource["detail"]["reason"]),
        (&json!("other"), &json!("unknown_mode"))
    );
}

#[test]
fn a_plan_that_leaves_changes_for_later_shows_no_detail() {
    let change = resource(
        "a",
        &json!({ "before": { "a": "b" }, "after": { "a": "c" } }),
    );
    for (key, value) in [
        ("complete", json!(false)),
        (
            "deferred_changes",
            json!([{ "reason": "x", "resource_change": resource("b", &json!({})) }]),
        ),
    ] {
        let mut plan = plan(std::slice::from_ref(&change));
        plan["output_changes"] = json!({ "o": { "actions": ["create"], "before": null, "after": "x", "before_sensitive": false, "after_sensitive": false, "after_unknown": false } });
        plan[key] = value;
        assert!(!inspected(&plan).summary.complete);
        let diff = diff(&plan);
        assert_eq!(diff["complete"], false);
        for list in ["resources", "outputs"] {
            assert_eq!(
                diff[list][0]["detail"],
                json!({ "status": "withheld", "reason": "plan_incomplete" })
            );
        }
    }
}

#[test]
fn what_only_reads_or_does_nothing_is_not_listed_unless_it_was_moved_or_imported() {
    let same = |action: &str| json!({ "actions": [action], "before": { "a": "b" }, "after": { "a": "b" } });
    let mut moved = resource("new", &same("no-op"));
    moved["previous_address"] = json!("test_thing.old");
    let mut imported = resource("imported", &same("no-op"));
    imported["change"]["importing"] = json!({ "id": "S3CRET", "identity": { "x": "S3CRET" } });
    imported["change"]["generated_config"] = json!("S3CRET");
    imported["change"]["after_identity"] = json!({ "x": "S3CRET" });
    let mut data = resource("data", &same("read"));
    data["mode"] = json!("data");
    let plan = plan(&[resource("a", &same("no-op")), data, moved, imported]);
    let listed: Vec<Value> = diff(&plan)["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|resource| {
            json!([
                resource["name"],
                resource["action"],
                resource["imported"],
                resource["previous_address"]
            ])
        })
        .collect();
    assert_eq!(
        listed,
        [
            json!(["new", "move", false, "test_thing.old"]),
            json!(["imported", "import", true, null])
        ]
    );
    let inspection = inspected(&plan);
    assert!(
        !contains(&inspection.diff, "S3CRET")
            && !contains(&inspection.policy_input.unwrap(), "S3CRET")
    );
}

#[test]
fn an_object_that_was_left_behind_is_told_apart_from_the_one_of_the_same_address() {
    let gone = json!({ "actions": ["delete"], "before": { "a": "b" }, "after": null, "after_sensitive": false, "after_unknown": false });
    let mut deposed = resource("a", &gone);
    deposed["deposed"] = json!("0a1b2c3d");
    deposed["action_reason"] = json!("delete_because_count_index");
    deposed["previous_address"] = deposed["address"].clone();
    let resources = &diff(&plan(&[resource("a", &gone), deposed]))["resources"];
    assert_eq!(resources[0]["address"], resources[1]["address"]);
    assert_eq!(resources[0].get("deposed"), None);
    assert_eq!(
        (&resources[1]["deposed"], &resources[1]["action_reason"]),
        (&json!("0a1b2c3d"), &json!("delete_because_count_index"))
    );
    assert_eq!(
        resources[1].get("previous_address"),
        None,
        "the same address is no move"
    );
}

#[test]
fn what_is_not_known_at_the_top_is_not_copied() {
    let mut plan = plan(&[]);
    for key in [
        "checks",
        "relevant_attributes",
        "timestamp",
        "prior_state_v2",
        "resource_drift_v2",
    ] {
        plan[key] = json!([{ "problems": [{ "message": "S3CRET" }] }]);
    }
    plan["variables"] = json!({ "name": { "value": "S3CRET" } });
    plan["terraform_version"] = json!("1.0 (S3CRET)");
    let inspection = inspected(&plan);
    assert!(
        !contains(&inspection.diff, "S3CRET")
            && !contains(&inspection.policy_input.unwrap(), "S3CRET")
    );
}

#[test]
fn run_writes_both_documents() {
    let json = plan(&[resource(
        "a",
        &json!({ "before": { "a": "b" }, "after": { "a": "caller-knows" } }),
    )])
    .to_string();
    let (mut diff, mut policy_input) = (Vec::new(), Vec::new());
    let summary = run(
        json.as_bytes(),
        &["caller-knows"],
        &mut diff,
        &mut policy_input,
    )
    .unwrap();
    let inspection = inspect(json.as_bytes(), &["caller-knows"], &Limits::default()).unwrap();
    assert_eq!(
        (summary, &diff, Some(&policy_input)),
        (
            inspection.summary,
            &inspection.diff,
            inspection.policy_input.as_ref()
        )
    );
    assert!(!contains(&diff, "caller-knows") && !contains(&policy_input, "caller-knows"));
}
