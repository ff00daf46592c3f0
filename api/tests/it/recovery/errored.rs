//! An `errored.tfstate` becomes a staged state while its apply is live.

use md5::{Digest as _, Md5};
use serde_json::json;
use sqlx::PgPool;
use stackship_domain::Sha256Digest;
use stackship_runner_protocol::{ApplyEnd, SHA256_HEADER, StoredArtifact};
use stackship_store::states::{self, StateVersionRow};

use super::world::{Applying, Doubtful, LINEAGE, REASON, state};
use crate::http::{Answer, Call};
use crate::v2::world::Served;

async fn upload(world: &Served, applying: &Applying, bytes: &[u8]) -> Answer {
    let attempt = applying.leased.attempt.id;
    let path = format!("/runner/v1/attempts/{attempt}/artifacts/errored_state");
    let mut call = Call::new("PUT", path, &applying.leased.lease_token)
        .header(SHA256_HEADER, Sha256Digest::of(bytes).to_string());
    call.body = bytes.to_vec();
    call.send(&world.router).await
}

async fn newest(world: &Served, applying: &Applying) -> Option<StateVersionRow> {
    let organization = world.acme.organization;
    let found = states::newest_staged(&world.store, organization, applying.run).await;
    found.unwrap()
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_errored_state_is_staged_and_adopted(pool: PgPool) {
    let world = Served::new(pool).await;
    let applying = Doubtful::applying(&world).await;
    let before = applying.stage(&world, 3, LINEAGE).await;
    let bytes = state(4, LINEAGE);
    let mut stored = None;
    for _ in 0..2 {
        let answer = upload(&world, &applying, &bytes).await;
        assert_eq!(answer.status, 200, "{}", answer.json);
        stored = Some(serde_json::from_value::<StoredArtifact>(answer.json).unwrap());
    }
    assert_eq!(world.count("record.state_versions").await, 2, "once");
    let staged = newest(&world, &applying).await.unwrap();
    assert_ne!(staged.id, before.id);
    assert_eq!((staged.serial, staged.lineage.as_str()), (4, LINEAGE));
    assert_eq!(staged.md5, Some(hex::encode(Md5::digest(&bytes))));
    assert_eq!(staged.sha256, Some(Sha256Digest::of(&bytes)));

    let end = ApplyEnd::Exited {
        exit_code: 1,
        interrupted: false,
        seen: None,
        errored_state: stored,
        sandbox: json!({"driver": "test"}),
    };
    let doubtful = applying.ended(&world, end).await;
    let seen = doubtful.evidence(&world).await;
    assert_eq!(seen["doubt"]["reason"], "state_upload_failed", "{seen:#}");
    assert_eq!(seen["has_errored_state"], true);
    assert_eq!(seen["sandbox"], json!({"driver": "test"}));
    assert_eq!(seen["staged_state"]["version"], staged.id.to_string());
    assert_eq!(doubtful.decide(&world, "adopt", REASON).await.status, 200);
    doubtful.until_unlocked(&world).await;

    let base = format!("/api/v2/workspaces/{}", world.acme.workspace);
    let current = world
        .send(
            "GET",
            &format!("{base}/current-state-version"),
            &json!(null),
        )
        .await;
    assert_eq!(current.json["data"]["id"], staged.id.to_string());
    let path = format!("/api/v2/state-versions/{}/download", staged.id);
    assert_eq!(world.send("GET", &path, &json!(null)).await.bytes, bytes);
    let path = format!("{base}/current-state-version-outputs");
    let outputs = world.send("GET", &path, &json!(null)).await;
    assert_eq!(
        outputs.json["data"][0]["attributes"]["name"], "address",
        "{}",
        outputs.json
    );
    // The output is not marked sensitive, which says nothing of the variables that it was made of.
    let value = &outputs.json["data"][0]["attributes"]["value"];
    let id = outputs.json["data"][0]["id"].as_str().unwrap();
    for path in [path, format!("/api/v2/state-version-outputs/{id}")] {
        let planner = Call::new("GET", &path, &world.acme.planner.token);
        let planner = planner.send(&world.router).await;
        assert_eq!(planner.status, 200, "{path}");
        let reader = Call::new("GET", &path, &world.acme.reader.token);
        let reader = reader.send(&world.router).await;
        assert_eq!(reader.status, 403, "{path}");
        let text = String::from_utf8(reader.bytes.to_vec()).unwrap();
        assert!(text.contains("needs the permission state:read"), "{text}");
        assert!(!text.contains(value.as_str().unwrap()), "{text}");
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn bytes_that_are_no_successor_stay_only_an_artifact(pool: PgPool) {
    let world = Served::new(pool).await;
    let applying = Doubtful::applying(&world).await;
    for bytes in [
        b"not a state".to_vec(),
        Vec::new(),
        state(0, LINEAGE),
        state(4, ""),
        state(4, &"l".repeat(129)),
    ] {
        assert_eq!(upload(&world, &applying, &bytes).await.status, 200);
        assert!(newest(&world, &applying).await.is_none());
    }
    let staged = applying.stage(&world, 3, LINEAGE).await;
    for bytes in [state(9, "another"), state(2, LINEAGE), state(3, LINEAGE)] {
        assert_eq!(upload(&world, &applying, &bytes).await.status, 200);
        assert_eq!(newest(&world, &applying).await.unwrap().id, staged.id);
    }
    assert_eq!(world.count("record.state_versions").await, 1);
    let leased = applying.leased.clone();
    let doubtful = applying.killed(&world).await;
    let late = Applying {
        run: doubtful.run,
        leased,
    };
    assert_eq!(upload(&world, &late, &state(7, LINEAGE)).await.status, 410);
    assert_eq!(newest(&world, &late).await.unwrap().id, staged.id);
}
