//! The result document: one form, one digest, and nothing else is read back.

use serde_json::{Value, json};
use stackship_domain::{Sha256Digest, canonical};
use stackship_policy::{Evaluation, RESULT_BYTES_MAX};

use crate::support::{attached, bundle_of, context, evaluate, evaluator, input, policy};

const GOLDEN: &str = include_str!("golden/result.json");
/// SHA-256 of the golden document without its final newline. Approvals and overrides name it, so a
/// change of form is a new schema.
const GOLDEN_DIGEST: &str = "a0cedf9b6d01fd2fa1bf2d1dcc6ae302c0c7b31d3d293ebcd6207a2f5bede282";

async fn golden() -> Evaluation {
    let mut titled = policy("tags", "soft_mandatory");
    titled["title"] = json!("Required tags");
    let mut disabled = policy("later", "hard_mandatory");
    disabled["enabled"] = json!(false);
    let tags = "deny contains sprintf(\"%s has no owner\", [rc.address]) if { some rc in input.plan.resource_changes; not rc.owner }\nwarn contains {\"rule_id\": \"TAG-2\", \"title\": \"Case\\u202e\", \"message\": \"Größe \\\"x\\\"\\n\", \"resource_address\": \"a.b[\\\"c\\\"]\"}";
    let bundle = bundle_of(
        &[(titled, tags), (disabled, "deny contains \"x\"")],
        Some("{\"limit\": 1.5}"),
    );
    let input = input(
        &json!({ "resource_changes": [{"address": "a.one"}, {"address": "a.two", "owner": "x"}] }),
    );
    let evaluation = evaluator()
        .evaluate(&[attached(bundle)], &input, context(&input))
        .await;
    evaluation.unwrap()
}

#[tokio::test]
async fn the_document_and_its_digest_stay_what_they_are() {
    let evaluation = golden().await;
    let text = String::from_utf8(evaluation.to_bytes()).unwrap();
    assert_eq!(text, GOLDEN.trim_end());
    assert_eq!(evaluation.digest().to_string(), GOLDEN_DIGEST);
    assert_eq!(Evaluation::from_bytes(text.as_bytes()).unwrap(), evaluation);
}

/// Canonical bytes of the golden document with another value at `pointer`.
fn changed(pointer: &str, value: &Value) -> Vec<u8> {
    let mut document: Value = serde_json::from_str(GOLDEN).unwrap();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match document.pointer_mut(parent).unwrap() {
        Value::Object(members) => drop(members.insert(key.to_owned(), value.clone())),
        Value::Array(items) => items[key.parse::<usize>().unwrap()] = value.clone(),
        other => panic!("{other}"),
    }
    canonical::to_bytes(&document).unwrap()
}

fn reversed(pointer: &str) -> Value {
    let document: Value = serde_json::from_str(GOLDEN).unwrap();
    let mut items = document
        .pointer(pointer)
        .unwrap()
        .as_array()
        .unwrap()
        .clone();
    items.reverse();
    Value::from(items)
}

#[test]
fn a_document_that_contradicts_itself_is_not_read() {
    assert!(Evaluation::from_bytes(&changed("/truncated", &json!(false))).is_ok());
    for (pointer, value) in [
        ("/schema", json!("stackship.policy-result/v3")),
        ("/more", json!(1)),
        ("/outcome", json!("pass")),
        ("/outcome", json!("error")),
        ("/error_code", json!("policy_error")),
        ("/bundles", json!([])),
        ("/bundle_digest", json!(Sha256Digest::of(b""))),
        ("/findings", json!([])),
        ("/findings", reversed("/findings")),
        ("/policies", reversed("/policies")),
        ("/truncated", json!(true)),
        ("/findings/0/message", json!("a\u{1b}b")),
        ("/findings/0/title", json!("t".repeat(201))),
        ("/findings/0/level", json!("mandatory")),
        ("/findings/0/policy_id", json!("Tags")),
        ("/policies/1/denials", json!(0)),
        ("/policies/1/denials", json!("1")),
        ("/policies/1/denials", json!(-1)),
    ] {
        let read = Evaluation::from_bytes(&changed(pointer, &value));
        assert!(read.is_err(), "{pointer}: {value}");
    }
}

#[test]
fn only_the_canonical_bytes_are_read() {
    let golden = GOLDEN.trim_end();
    for other in [
        format!(" {golden}"),
        format!("{golden}\n"),
        golden.replacen("\":", "\": ", 1),
        golden.replacen("ö", "\\u00f6", 1),
        golden.replacen('{', "{\"truncated\":false,", 1),
    ] {
        assert_ne!(other, golden);
        assert!(Evaluation::from_bytes(other.as_bytes()).is_err(), "{other}");
    }
    assert!(Evaluation::from_bytes(&vec![b' '; RESULT_BYTES_MAX + 1]).is_err());
}

#[tokio::test]
async fn a_new_evaluation_time_is_a_new_digest() {
    let one = evaluate("advisory", "deny contains \"x\"", &json!({})).await;
    let mut other = one.clone();
    other.evaluated_at = "2026-01-02T03:04:06Z".parse().unwrap();
    assert_ne!(one.digest(), other.digest());
}

proptest::proptest! {
    #[test]
    fn arbitrary_bytes_are_never_a_result_and_never_a_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
        proptest::prop_assert!(Evaluation::from_bytes(&bytes).is_err());
    }

    #[test]
    fn a_damaged_document_is_refused_or_reads_back_as_the_bytes_it_came_from(
        at in 0_usize..4_000,
        byte in proptest::prelude::any::<u8>(),
    ) {
        let mut bytes = GOLDEN.trim_end().as_bytes().to_vec();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(read) = Evaluation::from_bytes(&bytes) {
            proptest::prop_assert_eq!(read.to_bytes(), bytes);
        }
    }
}
