//! A token that was made with another ends with it, unless the person behind it proved who they are.

use serde_json::{Value, json};
use sqlx::PgPool;
use stackship_store::records::passwords::{self, Password};

use crate::http::{Answer, Call};
use crate::world::{World, in_an_hour, origin};

async fn mint(world: &World, with: &str, body: &Value) -> Answer {
    let call = Call::new("POST", world.acme.path("tokens"), with).json(body);
    call.send(&world.router).await
}

/// Makes a token; its id and its secret.
async fn minted(world: &World, with: &str, body: &Value) -> (String, String) {
    let fresh = mint(world, with, body).await.data(201);
    let text = |field: &str| fresh[field].as_str().unwrap().to_owned();
    (text("id"), text("token"))
}

async fn revoke(world: &World, with: &str, id: &str) -> Answer {
    let path = world.acme.path(&format!("tokens/{id}"));
    Call::new("DELETE", path, with).send(&world.router).await
}

async fn status(world: &World, token: &str) -> u16 {
    let call = Call::new("GET", "/v1/organizations", token);
    call.send(&world.router).await.status.as_u16()
}

fn plain() -> Value {
    json!({"description": "d"})
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn what_was_made_with_a_stolen_token_ends_with_it(pool: PgPool) {
    let world = World::new(pool).await;
    let owner = &world.acme.owner.token;
    let robot = json!({"login": "ci", "display_name": "The pipeline"});
    let users = world.acme.path("users");
    let robot = world.send("POST", &users, &robot).await.data(201)["id"].clone();

    let (stolen, first) = minted(&world, owner, &plain()).await;
    let (beside, other) = minted(&world, owner, &plain()).await;
    let (child, second) = minted(&world, &first, &plain()).await;
    let for_robot = json!({"description": "d", "user": robot});
    let (_, third) = minted(&world, &second, &for_robot).await;
    let list = world
        .send("GET", &world.acme.path("tokens"), &json!({}))
        .await
        .data(200);
    let listed = |id: &str| {
        let mut rows = list.as_array().unwrap().iter();
        rows.find(|row| row["id"] == id).unwrap()["minted_by"].clone()
    };
    assert_eq!(
        (listed(&child), listed(&stolen)),
        (json!(stolen), listed(&beside))
    );

    let revoked = revoke(&world, owner, &stolen).await.data(200);
    assert_eq!(revoked, json!({"id": stolen, "descendants": 2}));
    for token in [&first, &second, &third] {
        assert_eq!(status(&world, token).await, 401);
    }
    for token in [owner, &other] {
        assert_eq!(status(&world, token).await, 200);
    }
    assert_eq!(
        revoke(&world, owner, &child).await.status,
        404,
        "it is over"
    );

    let told: Value =
        sqlx::query_scalar("select payload from log.events where event_type = 'token_revoked'")
            .fetch_one(&world.owner)
            .await
            .unwrap();
    assert_eq!(
        (&told["token"], &told["descendants"]),
        (&json!(stolen), &json!(2))
    );
    let descendants = told["descendant_tokens"].as_array().unwrap();
    assert_eq!(descendants.len(), 2);
    assert!(descendants.contains(&json!(child)), "{descendants:?}");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_token_does_not_outlive_the_one_it_was_made_with(pool: PgPool) {
    let world = World::new(pool).await;
    let end = in_an_hour();
    let short = json!({"description": "d", "expires_at": end});
    let (_, short_lived) = minted(&world, &world.acme.owner.token, &short).await;
    let later = end + std::time::Duration::from_secs(1);
    for body in [plain(), json!({"description": "d", "expires_at": later})] {
        let refused = mint(&world, &short_lived, &body).await;
        assert_eq!(
            (refused.status.as_u16(), refused.code()),
            (422, "TOKEN_INVALID")
        );
        let error = &refused.json["error"];
        assert_eq!(error["details"]["field"], "expires_at");
        assert!(
            error["message"]
                .as_str()
                .unwrap()
                .contains(&end.to_string()),
            "{error}"
        );
    }
    minted(&world, &short_lived, &short).await;
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn only_who_proves_who_they_are_makes_a_token_that_stands_by_itself(pool: PgPool) {
    let world = World::new(pool).await;
    let end = json!({"description": "d", "expires_at": in_an_hour()});
    let (old, first) = minted(&world, &world.acme.owner.token, &end).await;
    let apart = json!({"description": "d", "independent": true});
    let refused = mint(&world, &first, &apart).await;
    assert_eq!(
        (refused.status.as_u16(), refused.code()),
        (403, "STEP_UP_REQUIRED")
    );

    let (acme, password) = (&world.acme, "correct horse battery");
    let context = origin(acme.owner.user).within(acme.organization);
    let secret = Password::new(password.to_owned()).unwrap();
    passwords::set(&world.store, &context, acme.owner.user, secret)
        .await
        .unwrap();
    let proof = Call::new("POST", "/v1/user/step-up", &first).json(&json!({"password": password}));
    proof.send(&world.router).await.data(200);
    let (_, second) = minted(&world, &first, &apart).await;
    let revoked = revoke(&world, &second, &old).await.data(200);
    assert_eq!(revoked["descendants"], 0);
    assert_eq!(status(&world, &first).await, 401);
    assert_eq!(status(&world, &second).await, 200);

    let told: Value = sqlx::query_scalar(
        "select payload from log.events where event_type = 'token_created' \
         order by global_position desc limit 1",
    )
    .fetch_one(&world.owner)
    .await
    .unwrap();
    assert_eq!(
        (&told["made_with"], &told["ends_with"]),
        (&json!(old), &Value::Null)
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn however_many_were_made_after_it_its_user_finds_and_revokes_a_token(pool: PgPool) {
    let world = World::new(pool).await;
    let planner = &world.acme.planner.token;
    let (stolen, thief) = minted(&world, planner, &plain()).await;
    // More than a page holds.
    for _ in 0..101 {
        minted(&world, &thief, &plain()).await;
    }
    let (mut found, mut pages, mut query) = (Vec::new(), 0, String::new());
    loop {
        let path = world.acme.path(&format!("tokens{query}"));
        let answer = Call::new("GET", path, planner).send(&world.router).await;
        assert_eq!(answer.status, 200, "{}", answer.json);
        for row in answer.json["data"].as_array().unwrap() {
            found.push(row["id"].as_str().unwrap().to_owned());
        }
        pages += 1;
        match answer.json["meta"]["page"]["next_cursor"].as_str() {
            Some(next) => query = format!("?cursor={next}"),
            None => break,
        }
    }
    assert_eq!((pages, found.len()), (2, 103));
    assert!(found.is_sorted_by(|one, next| one > next), "newest first");
    assert!(found.contains(&stolen));
    let path = world.acme.path("tokens?cursor=x");
    let refused = Call::new("GET", path, planner).send(&world.router).await;
    assert_eq!(refused.code(), "LIST_CURSOR_INVALID");

    let reader = &world.acme.reader.token;
    let refused = revoke(&world, reader, &stolen).await;
    assert_eq!(
        (refused.status.as_u16(), refused.code()),
        (403, "PERMISSION_MISSING")
    );
    let revoked = revoke(&world, planner, &stolen).await.data(200);
    assert_eq!(revoked["descendants"], 101);
    assert_eq!(status(&world, &thief).await, 401);
}
