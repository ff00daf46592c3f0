//! A role holds in its scope and everything below it; the strongest one counts.

use sqlx::PgPool;
use stackship_domain::Role;
use stackship_domain::ids::UserId;
use stackship_store::records::grants::{Grant, Scope, grant, list, revoke, role_for};
use stackship_store::records::{Page, projects, users, workspaces};
use stackship_store::{Violation, clock};

use crate::support::{World, name, new_workspace, origin, person, violation};

async fn reader(world: &World) -> UserId {
    users::create(&world.store, Some(&world.context()), &person("grace"))
        .await
        .unwrap()
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn the_strongest_role_that_holds_here_counts(pool: PgPool) {
    let world = World::new(pool).await;
    let user = reader(&world).await;
    let context = world.context();
    let quiet = projects::create(&world.store, &context, &name("quiet"))
        .await
        .unwrap();
    let elsewhere = workspaces::create(&world.store, &context, &new_workspace(quiet, "elsewhere"))
        .await
        .unwrap();
    let role = async |project, workspace| {
        role_for(
            &world.store.pool,
            world.organization,
            user,
            project,
            workspace,
        )
        .await
        .unwrap()
    };
    let give = async |scope, role| {
        grant(&world.store, &context, Grant { scope, user, role })
            .await
            .unwrap();
    };

    assert_eq!(role(None, Some(world.workspace)).await, None);
    give(Scope::Organization, Role::Reader).await;
    assert_eq!(role(None, None).await, Some(Role::Reader));
    give(
        Scope::Project {
            project: world.project,
        },
        Role::Planner,
    )
    .await;
    assert_eq!(
        role(None, Some(world.workspace)).await,
        Some(Role::Planner),
        "a workspace tells its project"
    );
    assert_eq!(role(Some(world.project), None).await, Some(Role::Planner));
    assert_eq!(role(None, None).await, Some(Role::Reader));
    give(
        Scope::Workspace {
            workspace: world.workspace,
        },
        Role::Operator,
    )
    .await;
    assert_eq!(
        role(None, Some(world.workspace)).await,
        Some(Role::Operator)
    );
    assert_eq!(
        role(Some(world.project), None).await,
        Some(Role::Planner),
        "a workspace's role does not climb"
    );
    assert_eq!(role(None, Some(elsewhere)).await, Some(Role::Reader));
    // Naming a project in which one is stronger does not help in a workspace of another one.
    assert_eq!(
        role(Some(world.project), Some(elsewhere)).await,
        Some(Role::Reader)
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_new_role_takes_the_place_of_the_earlier_one(pool: PgPool) {
    let world = World::new(pool).await;
    let user = reader(&world).await;
    let scope = Scope::Workspace {
        workspace: world.workspace,
    };
    for role in [Role::Operator, Role::Reader] {
        grant(&world.store, &world.context(), Grant { scope, user, role })
            .await
            .unwrap();
    }
    let here = role_for(
        &world.store.pool,
        world.organization,
        user,
        None,
        Some(world.workspace),
    )
    .await
    .unwrap();
    assert_eq!(here, Some(Role::Reader));
    let grants = list(&world.store.pool, world.organization, &Page::first())
        .await
        .unwrap();
    assert_eq!(grants.len(), 2, "the owner's and this one");
    assert_eq!(
        grants[1].grant,
        Grant {
            scope,
            user,
            role: Role::Reader
        }
    );
    let after = Page::new(Some(grants[0].number.to_string()), 10);
    assert_eq!(
        list(&world.store.pool, world.organization, &after)
            .await
            .unwrap(),
        grants[1..]
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_revoked_role_is_gone(pool: PgPool) {
    let world = World::new(pool).await;
    let user = reader(&world).await;
    let scope = Scope::Project {
        project: world.project,
    };
    grant(
        &world.store,
        &world.context(),
        Grant {
            scope,
            user,
            role: Role::Planner,
        },
    )
    .await
    .unwrap();
    assert!(
        !revoke(&world.store, &world.context(), Scope::Organization, user)
            .await
            .unwrap()
    );
    assert!(
        revoke(&world.store, &world.context(), scope, user)
            .await
            .unwrap()
    );
    assert!(
        !revoke(&world.store, &world.context(), scope, user)
            .await
            .unwrap()
    );
    let here = role_for(
        &world.store.pool,
        world.organization,
        user,
        Some(world.project),
        None,
    )
    .await
    .unwrap();
    assert_eq!(here, None);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_role_cannot_be_granted_in_another_organizations_scope(pool: PgPool) {
    let world = World::new(pool).await;
    let user = reader(&world).await;
    let (other, project, workspace) = world.other_tenant().await;
    let before = world.event_count().await;
    for scope in [
        Scope::Project { project },
        Scope::Workspace { workspace },
        Scope::Project {
            project: clock::fresh(),
        },
    ] {
        let outcome = grant(
            &world.store,
            &world.context(),
            Grant {
                scope,
                user,
                role: Role::Owner,
            },
        )
        .await;
        assert_eq!(violation(outcome), Violation::NotNow);
    }
    assert_eq!(world.event_count().await, before);
    let there = role_for(&world.store.pool, other, user, None, Some(workspace))
        .await
        .unwrap();
    assert_eq!(there, None);
    let context = origin(world.user).within(other);
    let owner_here = Scope::Organization;
    assert!(
        !revoke(&world.store, &context, owner_here, user)
            .await
            .unwrap()
    );
}
