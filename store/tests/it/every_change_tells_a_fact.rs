//! A change and the fact of it are in the log together or not at all.

use sqlx::PgPool;
use stackship_domain::run::SourceKind;
use stackship_domain::variable::VariableCategory;
use stackship_domain::{Actor, Role, Sha256Digest};
use stackship_store::log::{FeedPosition, LoggedEvent, feed_read};
use stackship_store::objects::ObjectKind;
use stackship_store::records::configuration_versions::{self, NewConfigurationVersion};
use stackship_store::records::grants::{self, Grant, Scope};
use stackship_store::records::policy_sets::{self, NewVersion};
use stackship_store::records::tokens::{self, Descent, NewToken};
use stackship_store::records::variables::{self, NewVariable, VariableChange};
use stackship_store::records::workspaces::{self, WorkspaceChange};
use stackship_store::records::{projects, users};

use crate::support::{World, name, new_workspace, person};

async fn facts(world: &World) -> Vec<LoggedEvent> {
    let mut connection = world.owner.acquire().await.unwrap();
    let rows: Vec<String> = sqlx::query_scalar(
        "select aggregate_id from log.events order by transaction_id, global_position",
    )
    .fetch_all(&mut *connection)
    .await
    .unwrap();
    // Writers of other databases hold the feed back for a while.
    loop {
        let events = feed_read(&mut connection, FeedPosition::default(), 1000)
            .await
            .unwrap();
        if events.len() == rows.len() {
            assert!(
                events.iter().map(|event| &event.aggregate_id).eq(&rows),
                "the feed has another order"
            );
            return events;
        }
        tokio::task::yield_now().await;
    }
}

async fn policies(world: &World) {
    let (store, context, scope) = (&world.store, world.context(), Scope::Organization);
    let set = policy_sets::create(store, &context, &name("baseline"))
        .await
        .unwrap();
    let new = NewVersion {
        bundle: Sha256Digest::of(b"one"),
        label: "1.0",
        policies: 1,
        content: b"one",
    };
    policy_sets::publish(store, &context, set.id, new)
        .await
        .unwrap();
    let reason = "because of this test";
    policy_sets::attach(store, &context, set.id, scope, reason)
        .await
        .unwrap();
    policy_sets::detach(store, &context, set.id, scope, reason)
        .await
        .unwrap();
    policy_sets::archive(store, &context, set.id, reason)
        .await
        .unwrap();
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn every_administrative_change_is_told_in_order(pool: PgPool) {
    let world = World::new(pool).await;
    let (store, context) = (&world.store, world.context());
    let user = users::create(store, Some(&context), &person("grace"))
        .await
        .unwrap();
    let scope = Scope::Organization;
    grants::grant(
        store,
        &context,
        Grant {
            scope,
            user,
            role: Role::Reader,
        },
    )
    .await
    .unwrap();
    grants::revoke(store, &context, scope, user).await.unwrap();
    let new = NewToken {
        user,
        description: "CI".to_owned(),
        expires_at: None,
        descent: Descent::Machine,
    };
    let (token, _) = tokens::create(store, &context, &new).await.unwrap();
    tokens::revoke(store, &context, token).await.unwrap();
    let change = WorkspaceChange {
        name: Some(name("renamed")),
        ..WorkspaceChange::default()
    };
    workspaces::update(store, &context, world.workspace, &change)
        .await
        .unwrap()
        .unwrap();
    let new = NewVariable {
        key: "A".to_owned(),
        value: "the value itself".to_owned(),
        category: VariableCategory::Env,
        hcl: false,
        sensitive: false,
        description: String::new(),
    };
    let variable = variables::set(store, &context, world.workspace, &new)
        .await
        .unwrap();
    variables::update(
        store,
        &context,
        world.workspace,
        variable.id,
        &VariableChange::default(),
    )
    .await
    .unwrap();
    variables::delete(store, &context, world.workspace, variable.id)
        .await
        .unwrap();
    let new = NewConfigurationVersion {
        workspace: world.workspace,
        speculative: false,
        source: SourceKind::Api,
    };
    let version = configuration_versions::create(store, &context, new)
        .await
        .unwrap();
    let object = store
        .objects
        .put_bytes(world.new_object(ObjectKind::Configuration), b"tar")
        .await
        .unwrap();
    configuration_versions::uploaded(store, &context, version.id, object)
        .await
        .unwrap();
    policies(&world).await;

    let events = facts(&world).await;
    let names: Vec<&str> = events
        .iter()
        .map(|event| event.event_type.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "organization_created",
            "role_granted",
            "project_created",
            "workspace_created",
            "user_created",
            "role_granted",
            "role_revoked",
            "token_created",
            "token_revoked",
            "workspace_changed",
            "variable_created",
            "variable_changed",
            "variable_deleted",
            "configuration_version_created",
            "configuration_uploaded",
            "policy_set_created",
            "policy_set_version_uploaded",
            "policy_set_attached",
            "policy_set_detached",
            "policy_set_archived",
        ]
    );
    for event in &events {
        assert_eq!(
            (event.aggregate_type.as_str(), event.sequence),
            ("fact", 1),
            "{event:?}"
        );
        assert_eq!(event.organization_id, world.organization.to_string());
        assert_eq!(event.actor, Actor::User(world.user).to_string());
        let payload = event.payload.to_string();
        assert!(
            !payload.contains("grace") && !payload.contains("the value itself"),
            "{payload}"
        );
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_change_that_fails_tells_nothing(pool: PgPool) {
    let world = World::new(pool).await;
    let before = world.event_count().await;
    let context = world.context();
    projects::create(&world.store, &context, &name("platform"))
        .await
        .unwrap_err();
    workspaces::create(
        &world.store,
        &context,
        &new_workspace(world.project, "network"),
    )
    .await
    .unwrap_err();
    let hasty = workspaces::NewWorkspace {
        approval_seconds: 1,
        ..new_workspace(world.project, "hasty")
    };
    workspaces::create(&world.store, &context, &hasty)
        .await
        .unwrap_err();
    assert_eq!(world.event_count().await, before);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_fact_that_is_refused_takes_the_change_with_it(pool: PgPool) {
    let world = World::new(pool).await;
    let nameless = stackship_store::log::Context {
        request_id: String::new(),
        ..world.context()
    };
    let outcome = projects::create(&world.store, &nameless, &name("unaudited")).await;
    assert!(
        matches!(outcome, Err(stackship_store::StoreError::Database(_))),
        "{outcome:?}"
    );
    let found = projects::by_name(&world.store.pool, world.organization, &name("unaudited"))
        .await
        .unwrap();
    assert_eq!(found, None);
}
