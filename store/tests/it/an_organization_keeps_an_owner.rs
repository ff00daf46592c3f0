//! Whatever owners do to each other, and at whichever moment, one of them is left.

use futures::future::join3;
use sqlx::PgPool;
use stackship_domain::Role;
use stackship_domain::ids::UserId;
use stackship_store::records::grants::{Grant, Scope, grant, revoke};
use stackship_store::records::users;
use stackship_store::{StoreError, Violation};

use crate::support::{World, person};

const SCOPE: Scope = Scope::Organization;

async fn make(world: &World, user: UserId, role: Role) -> Result<(), StoreError> {
    let new = Grant {
        scope: SCOPE,
        user,
        role,
    };
    grant(&world.store, &world.context(), new).await
}

async fn take(world: &World, user: UserId) -> Result<(), StoreError> {
    let taken = revoke(&world.store, &world.context(), SCOPE, user).await?;
    assert!(taken, "there was a role to take");
    Ok(())
}

async fn owners(world: &World) -> i64 {
    let owners = "select count(*) from record.role_grants where role = 'owner'";
    sqlx::query_scalar(owners)
        .fetch_one(&world.owner)
        .await
        .unwrap()
}

fn is_last_owner(result: &Result<(), StoreError>) -> bool {
    matches!(result, Err(StoreError::Refused(Violation::LastOwner)))
}

/// Lets two changes go on only when both have begun: nothing is written before both wait.
async fn at_once(
    world: &World,
    one: impl Future<Output = Result<(), StoreError>>,
    other: impl Future<Output = Result<(), StoreError>>,
) {
    let mut gate = world.owner.begin().await.unwrap();
    sqlx::raw_sql("lock table record.role_grants in share mode")
        .execute(&mut *gate)
        .await
        .unwrap();
    let open = async {
        let waiting = "select count(*) from pg_locks where not granted and database = \
            (select oid from pg_database where datname = current_database())";
        while sqlx::query_scalar::<_, i64>(waiting)
            .fetch_one(&world.owner)
            .await
            .unwrap()
            < 2
        {}
        gate.rollback().await.unwrap();
    };
    let (one, other, ()) = join3(one, other, open).await;
    let refused = [&one, &other].map(is_last_owner);
    assert!(refused[0] != refused[1], "{one:?}, {other:?}");
    assert!(one.is_ok() || other.is_ok(), "{one:?}, {other:?}");
    assert_eq!(owners(world).await, 1);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn two_owners_who_take_each_others_role_at_once_leave_one(pool: PgPool) {
    let world = World::new(pool).await;
    let ada = world.user;
    let grace = users::create(&world.store, None, &person("grace"))
        .await
        .unwrap();
    make(&world, grace, Role::Owner).await.unwrap();
    at_once(&world, take(&world, ada), take(&world, grace)).await;
    for owner in [ada, grace] {
        make(&world, owner, Role::Owner).await.unwrap();
    }
    let (lower_one, lower_other) = (
        make(&world, ada, Role::Reader),
        make(&world, grace, Role::Operator),
    );
    at_once(&world, lower_one, lower_other).await;
    for owner in [ada, grace] {
        make(&world, owner, Role::Owner).await.unwrap();
    }
    at_once(&world, make(&world, ada, Role::Reader), take(&world, grace)).await;
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn the_last_owner_stays_and_nothing_is_told(pool: PgPool) {
    let world = World::new(pool).await;
    let told = world.event_count().await;
    assert!(is_last_owner(&take(&world, world.user).await));
    assert!(is_last_owner(
        &make(&world, world.user, Role::Operator).await
    ));
    assert_eq!(world.event_count().await, told);
    // A role below the organization makes nobody its owner, and one who is disabled is none.
    let grace = users::create(&world.store, None, &person("grace"))
        .await
        .unwrap();
    let scope = Scope::Workspace {
        workspace: world.workspace,
    };
    let role = Role::Owner;
    let below = Grant {
        scope,
        user: grace,
        role,
    };
    grant(&world.store, &world.context(), below).await.unwrap();
    assert!(is_last_owner(&take(&world, world.user).await));
    make(&world, grace, Role::Owner).await.unwrap();
    sqlx::query("update record.users set disabled_at = now() where user_id = $1")
        .bind(grace.to_string())
        .execute(&world.owner)
        .await
        .unwrap();
    assert!(is_last_owner(&take(&world, world.user).await));
}
