//! Text that people read shows as what it is, and no service account looks like a person.

use serde_json::{Value, json};
use sqlx::PgPool;
use stackship_domain::Role;
use stackship_store::records::grants::{self, Grant, Scope};
use stackship_store::records::users::{self, UserKind};

use crate::world::{World, new_user, origin};

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_mark_that_hides_or_turns_is_refused_wherever_people_write(pool: PgPool) {
    let world = World::new(pool).await;
    let configuration = world.configuration(false).await;
    let workspace = format!("/v1/workspaces/{}", world.acme.workspace);
    for mark in [
        "\u{202e}", "\u{200b}", "\u{2028}", "\u{ad}", "\u{2066}", "\u{feff}",
    ] {
        let text = format!("looks fi{mark}ne to me");
        let asked: [(String, Value, &str); 6] = [
            (
                format!("{workspace}/runs"),
                json!({"configuration_version": configuration, "message": text}),
                "message",
            ),
            (
                format!("{workspace}/runs"),
                json!({"configuration_version": configuration, "message": "m", "git_ref": text}),
                "git_ref",
            ),
            (
                format!("{workspace}/lock"),
                json!({"reason": text}),
                "reason",
            ),
            (
                world.acme.path("users"),
                json!({"login": "robot", "display_name": text}),
                "display_name",
            ),
            (
                world.acme.path("users"),
                json!({"login": format!("ro{mark}bot"), "display_name": "Robot"}),
                "login",
            ),
            (
                world.acme.path("tokens"),
                json!({"description": text}),
                "description",
            ),
        ];
        for (path, body, field) in asked {
            let refused = world.send("POST", &path, &body).await;
            assert_eq!(refused.status, 422, "{path} {mark:?}: {}", refused.json);
            let error = &refused.json["error"];
            assert_eq!(error["details"]["field"], field, "{path}: {error}");
            let message = error["message"].as_str().unwrap();
            assert!(message.contains(&format!("`{field}`")), "{message}");
        }
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn no_service_account_has_the_login_of_a_person_beside_it(pool: PgPool) {
    let world = World::new(pool).await;
    let acme = &world.acme;
    for (login, organization) in [
        ("ada", acme.organization),
        ("grace", world.umbrella.organization),
    ] {
        let mut person = new_user(login);
        person.kind = UserKind::Person;
        let user = users::create(&world.store, None, &person).await.unwrap();
        let reads = Grant {
            scope: Scope::Organization,
            user,
            role: Role::Reader,
        };
        let context = origin(user).within(organization);
        grants::grant(&world.store, &context, reads).await.unwrap();
    }
    let create = async |login: &str| {
        let body = json!({"login": login, "display_name": "Robot"});
        world.send("POST", &acme.path("users"), &body).await
    };
    for login in ["ada", "Ada", "ADA"] {
        let refused = create(login).await;
        assert_eq!(
            (refused.status.as_u16(), refused.code()),
            (409, "NAME_TAKEN"),
            "{login}"
        );
        assert_eq!(refused.json["error"]["details"]["field"], "login");
    }
    // Who is in other organizations is nobody's business here.
    for login in ["grace", "ada-robot"] {
        assert_eq!(create(login).await.status, 201, "{login}");
    }
}
