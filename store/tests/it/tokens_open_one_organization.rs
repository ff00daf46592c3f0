//! A token speaks for its user in its organization, until it is revoked or over.

use std::time::Duration;

use sqlx::PgPool;
use stackship_domain::Timestamp;
use stackship_store::clock;
use stackship_store::records::Page;
use stackship_store::records::runners;
use stackship_store::records::tokens::{
    Descent, NewToken, Principal, Revoked, authenticate, create, list, revoke,
};

use crate::support::World;

fn new(world: &World, expires_at: Option<Timestamp>) -> NewToken {
    NewToken {
        user: world.user,
        description: "CI".to_owned(),
        expires_at,
        descent: Descent::Machine,
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_token_speaks_for_its_user_until_it_is_revoked(pool: PgPool) {
    let world = World::new(pool).await;
    let (token, secret) = create(&world.store, &world.context(), &new(&world, None))
        .await
        .unwrap();
    let principal = Principal {
        user: world.user,
        organization: world.organization,
        token,
    };
    assert_eq!(
        authenticate(&world.store, secret.expose()).await.unwrap(),
        Some(principal)
    );

    let (other, ..) = world.other_tenant().await;
    let elsewhere = crate::support::origin(world.user).within(other);
    let foreign = revoke(&world.store, &elsewhere, token).await.unwrap();
    assert_eq!(foreign, None, "another organization revoked it");
    assert_eq!(
        authenticate(&world.store, secret.expose()).await.unwrap(),
        Some(principal)
    );

    let alone = Some(Revoked { descendants: 0 });
    for expected in [alone, None] {
        let revoked = revoke(&world.store, &world.context(), token).await;
        assert_eq!(revoked.unwrap(), expected);
    }
    assert_eq!(
        authenticate(&world.store, secret.expose()).await.unwrap(),
        None
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_token_that_is_over_opens_nothing(pool: PgPool) {
    let world = World::new(pool).await;
    let (hour, now) = (Duration::from_hours(1), clock::now());
    let (_, over) = create(
        &world.store,
        &world.context(),
        &new(&world, Some(now - hour)),
    )
    .await
    .unwrap();
    let (_, live) = create(
        &world.store,
        &world.context(),
        &new(&world, Some(now + hour)),
    )
    .await
    .unwrap();
    assert_eq!(
        authenticate(&world.store, over.expose()).await.unwrap(),
        None
    );
    assert!(
        authenticate(&world.store, live.expose())
            .await
            .unwrap()
            .is_some()
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_disabled_user_has_no_tokens_that_open(pool: PgPool) {
    let world = World::new(pool).await;
    let (_, secret) = create(&world.store, &world.context(), &new(&world, None))
        .await
        .unwrap();
    sqlx::raw_sql("update record.users set disabled_at = now()")
        .execute(&world.owner)
        .await
        .unwrap();
    assert_eq!(
        authenticate(&world.store, secret.expose()).await.unwrap(),
        None
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn what_is_no_token_opens_nothing(pool: PgPool) {
    let world = World::new(pool).await;
    let (_, secret) = create(&world.store, &world.context(), &new(&world, None))
        .await
        .unwrap();
    let (_, runner) = runners::create(&world.store, "local").await.unwrap();
    let longer = format!("{}x", secret.expose());
    let shorter = &secret.expose()[..secret.expose().len() - 1];
    for presented in [
        "",
        "ss_",
        "ss_%",
        &longer,
        shorter,
        &secret.expose().to_uppercase(),
        runner.expose(),
    ] {
        assert_eq!(authenticate(&world.store, presented).await.unwrap(), None);
    }
    assert_eq!(
        runners::authenticate(&world.store, secret.expose())
            .await
            .unwrap(),
        None
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn no_table_holds_a_secret_in_clear(pool: PgPool) {
    let world = World::new(pool).await;
    let (_, secret) = create(&world.store, &world.context(), &new(&world, None))
        .await
        .unwrap();
    let everywhere = "select count(*) from record.tokens t, log.events e \
         where t::text like '%' || $1 || '%' or e::text like '%' || $1 || '%'";
    let (_, digits) = secret.expose().split_once('_').unwrap();
    let found: i64 = sqlx::query_scalar(everywhere)
        .bind(digits)
        .fetch_one(&world.owner)
        .await
        .unwrap();
    assert_eq!(found, 0);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn the_last_use_is_kept_to_the_minute(pool: PgPool) {
    let world = World::new(pool).await;
    let (token, secret) = create(&world.store, &world.context(), &new(&world, None))
        .await
        .unwrap();
    let last_used = async || {
        list(
            &world.store.pool,
            world.organization,
            world.user,
            &Page::first(),
        )
        .await
        .unwrap()[0]
            .last_used_at
    };
    assert_eq!(last_used().await, None);
    authenticate(&world.store, secret.expose()).await.unwrap();
    let first = last_used().await.expect("the first use is kept");
    authenticate(&world.store, secret.expose()).await.unwrap();
    assert_eq!(
        last_used().await,
        Some(first),
        "a use within the same minute was written"
    );
    let backdate = "update record.tokens set last_used_at = last_used_at - interval '2 minutes'";
    sqlx::raw_sql(backdate).execute(&world.owner).await.unwrap();
    authenticate(&world.store, secret.expose()).await.unwrap();
    assert!(last_used().await.unwrap() >= first);
    assert_eq!(
        list(
            &world.store.pool,
            world.organization,
            world.user,
            &Page::first()
        )
        .await
        .unwrap()[0]
            .id,
        token
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_runner_is_known_by_its_secret_until_it_is_revoked(pool: PgPool) {
    let world = World::new(pool).await;
    let (runner, secret) = runners::create(&world.store, "local").await.unwrap();
    assert_eq!(
        runners::authenticate(&world.store, secret.expose())
            .await
            .unwrap(),
        Some(runner)
    );
    assert_eq!(
        runners::authenticate(&world.store, "ssr_x").await.unwrap(),
        None
    );
    assert!(runners::revoke(&world.store, runner).await.unwrap());
    assert_eq!(
        runners::authenticate(&world.store, secret.expose())
            .await
            .unwrap(),
        None
    );
}
