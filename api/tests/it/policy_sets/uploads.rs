//! Bundles are tried in the real limited process before anything of them is kept.

use serde_json::{Value, json};
use sqlx::PgPool;

use crate::http::Call;
use crate::world::World;
use crate::world::policies::{archive, bundle, harmless, manifest};

const REGO: &str = "package stackship.tested\ndeny contains \"x\" if false\n";

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_version_is_what_was_uploaded(pool: PgPool) {
    let world = World::new(pool).await;
    let set = world.policy_set("baseline").await;
    let path = format!("/v1/policy-sets/{set}");
    let read = async |path: &str| world.send("GET", path, &json!({})).await.data(200);
    assert!(read(&path).await["newest_version"].is_null());
    let off = json!({"id": "off", "file": "more/off.rego", "level": "hard_mandatory", "enabled": false, "title": "Off"});
    let mut both = manifest("2026-01");
    both["policies"].as_array_mut().unwrap().push(off);
    let (manifest, off) = (both.to_string(), REGO.replace("tested", "off"));
    let files = [
        ("manifest.json", manifest.as_str()),
        ("tested.rego", REGO),
        ("more/off.rego", &off),
        ("data.json", "{\"owners\": [\"ops\"]}"),
    ];
    let made = world.upload(&set, archive(&files)).await.data(201);
    assert_eq!(
        (&made["number"], &made["label"]),
        (&json!(1), &json!("2026-01"))
    );
    assert_eq!(made["policy_count"], 2);
    assert_eq!(made["uploaded_by"], world.acme.owner.user.to_string());
    let policies = made["policies"].as_array().unwrap();
    let said: Vec<_> = policies
        .iter()
        .map(|policy| (&policy["id"], &policy["level"], &policy["enabled"]))
        .collect();
    let off = (&json!("off"), &json!("hard_mandatory"), &json!(false));
    let tested = (&json!("tested"), &json!("soft_mandatory"), &json!(true));
    assert_eq!(said, [off, tested]);
    assert_eq!(read(&path).await["newest_version"], 1);
    let version = format!("{path}/versions/1");
    assert_eq!(read(&version).await, made);
    let shown = read(&format!("{version}/files")).await;
    let mut found = Vec::new();
    for file in shown["files"].as_array().unwrap() {
        found.push((
            file["path"].as_str().unwrap(),
            file["text"].as_str().unwrap(),
        ));
    }
    let again: Value = serde_json::from_str(found[1].1).unwrap();
    assert_eq!(again["policies"][0]["id"], "off");
    let sorted = ["data.json", "manifest.json", "more/off.rego", "tested.rego"];
    assert_eq!(
        found.iter().map(|(path, _)| *path).collect::<Vec<_>>(),
        sorted
    );
    assert_eq!(found[3].1, REGO);
    // What is shown makes the same version again.
    let again = world.upload(&set, archive(&found)).await.data(200);
    assert_eq!(again, made);
    for path in [
        format!("{path}/versions/2"),
        format!("{path}/versions/2/files"),
    ] {
        assert_eq!(world.send("GET", &path, &json!({})).await.status, 404);
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn every_refusal_has_a_code_a_place_and_a_remedy(pool: PgPool) {
    let world = World::new(pool).await;
    let set = world.policy_set("baseline").await;
    let good = manifest("1").to_string();
    let with = |path: &str, text: &str| {
        archive(&[
            ("manifest.json", &good),
            ("tested.rego", REGO),
            (path, text),
        ])
    };
    let rules = |rules: &str| bundle("1", rules);
    let mut leveled = manifest("1");
    leveled["policies"][0]["level"] = json!("mandatory");
    let leveled = leveled.to_string();
    let cases = [
        (vec![1, 2, 3], 422, "ARCHIVE_INVALID", "", "tar -czf"),
        (vec![0; 2 * 1024 * 1024], 413, "TOO_LARGE", "", "split it"),
        (
            with("x.rego", REGO),
            422,
            "FILE_INVALID",
            "x.rego",
            "Leave it out",
        ),
        (
            with("data.json", "[]"),
            422,
            "FILE_INVALID",
            "data.json",
            "one JSON object",
        ),
        (
            archive(&[("tested.rego", REGO)]),
            422,
            "FILE_INVALID",
            "manifest.json",
            "at the top",
        ),
        (
            archive(&[("manifest.json", &leveled), ("tested.rego", REGO)]),
            422,
            "MANIFEST_INVALID",
            "policies[0].level",
            "docs/policies.md",
        ),
        (
            rules("deny contains"),
            422,
            "POLICY_INVALID",
            "tested.rego",
            "Correct the policy",
        ),
        (
            rules("allow := true"),
            422,
            "POLICY_INVALID",
            "tested.rego",
            "Correct the policy",
        ),
        (
            rules("deny contains \"x\" if http.send({}).a == 1"),
            422,
            "POLICY_INVALID",
            "tested.rego",
            "http.send",
        ),
        (
            rules(&format!(
                "deny contains {}1{}",
                "[".repeat(18),
                "]".repeat(18)
            )),
            422,
            "FILE_INVALID",
            "tested.rego",
            "names of their own",
        ),
    ];
    for (body, status, code, field, said) in cases {
        let refused = world.upload(&set, body).await;
        let error = &refused.json["error"];
        let code = format!("POLICY_BUNDLE_{code}");
        assert_eq!(
            (refused.status.as_u16(), refused.code()),
            (status, code.as_str()),
            "{error}"
        );
        assert_eq!(
            error["details"]["field"].as_str().unwrap_or_default(),
            field,
            "{error}"
        );
        assert!(error["message"].as_str().unwrap().contains(said), "{error}");
    }
    nothing_was_kept(&world).await;
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn hostile_policies_take_only_the_limited_process_down(pool: PgPool) {
    let world = World::new(pool).await;
    let set = world.policy_set("baseline").await;
    let nested = format!("x := {}1{}\n", "[".repeat(8), "]".repeat(8)).repeat(10_000);
    for (name, rules) in [
        (
            "exponential nesting",
            format!("{nested}deny contains \"x\" if false"),
        ),
        (
            "recursion",
            "f(x) := f(x + 1)\ndeny contains \"x\" if f(1) == 0".to_owned(),
        ),
        (
            "memory",
            "deny contains \"x\" if count(numbers.range(1, 1000000000)) == 0".to_owned(),
        ),
        (
            "padding",
            "deny contains \"x\" if sprintf(\"%2000000000d\", [1]) == \"\"".to_owned(),
        ),
    ] {
        let refused = world.upload(&set, bundle("1", &rules)).await;
        let error = &refused.json["error"];
        assert_eq!(
            (refused.status.as_u16(), refused.code()),
            (422, "POLICY_BUNDLE_TOO_COSTLY"),
            "{name}: {error}"
        );
        assert_eq!(error["details"]["field"], "tested.rego", "{name}");
        assert!(
            error["message"].as_str().unwrap().contains("Simplify"),
            "{name}"
        );
    }
    nothing_was_kept(&world).await;
    world.upload(&set, harmless("1")).await.data(201);
}

async fn nothing_was_kept(world: &World) {
    assert_eq!(world.count("record.policy_set_versions").await, 0);
    assert_eq!(world.count("record.objects").await, 0);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn uploads_at_the_same_time_get_numbers_of_their_own(pool: PgPool) {
    let world = World::new(pool).await;
    let set = world.policy_set("baseline").await;
    let labels: Vec<_> = (0..4).map(|label| label.to_string()).collect();
    let all = labels
        .iter()
        .map(|label| world.upload(&set, harmless(label)));
    let mut made = Vec::new();
    for answer in futures::future::join_all(all).await {
        let version = answer.data(201);
        made.push((version["number"].as_u64(), version["label"].clone()));
    }
    made.sort_by_key(|(number, _)| *number);
    let numbers: Vec<_> = made.iter().filter_map(|(number, _)| *number).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    let path = format!("/v1/policy-sets/{set}/versions");
    let mut listed = Vec::new();
    let mut next = format!("{path}?limit=3");
    loop {
        let page = world.send("GET", &next, &json!({})).await.json;
        for version in page["data"].as_array().unwrap() {
            listed.push((version["number"].as_u64(), version["label"].clone()));
        }
        match page["meta"]["page"]["next_cursor"].as_str() {
            Some(cursor) => next = format!("{path}?limit=3&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(listed, made);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_named_upload_is_carried_out_once(pool: PgPool) {
    let world = World::new(pool).await;
    let set = world.policy_set("baseline").await;
    let send = async |archive: Vec<u8>| {
        let path = format!("/v1/policy-sets/{set}/versions");
        let mut call =
            Call::new("POST", path, &world.acme.owner.token).header("idempotency-key", "k");
        call.body = archive;
        call.send(&world.router).await
    };
    let first = send(harmless("1")).await.data(201);
    // In the meantime somebody else published; the repetition does not go back to the first.
    world.upload(&set, harmless("2")).await.data(201);
    assert_eq!(send(harmless("1")).await.data(201), first);
    assert_eq!(send(harmless("3")).await.code(), "IDEMPOTENCY_KEY_REUSED");
    assert_eq!(world.count("record.policy_set_versions").await, 2);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_version_that_cannot_be_read_says_so_and_can_be_replaced(pool: PgPool) {
    let world = World::new(pool).await;
    let set = world.policies("baseline").await;
    let path = format!("/v1/policy-sets/{set}/versions");
    // Another installation's key, or a disk that lost a part: the row is there and says nothing.
    sqlx::query("update record.objects set wrapped_key = 'x' where kind = 'policy_bundle'")
        .execute(&world.owner)
        .await
        .unwrap();
    for rest in ["1", "1/files"] {
        let answer = world
            .send("GET", &format!("{path}/{rest}"), &json!({}))
            .await;
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (409, "POLICY_BUNDLE_UNREADABLE"),
            "{}",
            answer.json
        );
    }
    let replaced = world.upload(&set, harmless("1")).await.data(201);
    assert_eq!(replaced["number"], 2);
    let read = world.send("GET", &format!("{path}/2"), &json!({})).await;
    assert_eq!(read.data(200), replaced);
}
