//! A proof belongs to one token, has an end, and guessing has a bound.

use sqlx::PgPool;
use stackship_store::records::passwords::{
    FAILURES_MAX, Password, ProveError, is_proven, prove, set,
};
use stackship_store::records::tokens::{Descent, NewToken, Principal, create};

use crate::support::World;

const RIGHT: &str = "correct horse battery";

async fn principal(world: &World) -> Principal {
    let new = NewToken {
        user: world.user,
        description: "terminal".to_owned(),
        expires_at: None,
        descent: Descent::Machine,
    };
    let (token, _) = create(&world.store, &world.context(), &new).await.unwrap();
    Principal {
        user: world.user,
        organization: world.organization,
        token,
    }
}

fn presented(text: &str) -> Password {
    Password::presented(text.to_owned()).unwrap()
}

async fn try_with(world: &World, who: Principal, text: &str) -> Result<(), ProveError> {
    prove(&world.store, &world.context(), who, presented(text))
        .await
        .map(|_| ())
}

async fn set_right(world: &World) {
    let password = Password::new(RIGHT.to_owned()).unwrap();
    set(&world.store, &world.context(), world.user, password)
        .await
        .unwrap();
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_proof_is_for_one_token_and_for_a_time(pool: PgPool) {
    let world = World::new(pool.clone()).await;
    let (who, other) = (principal(&world).await, principal(&world).await);
    assert!(
        matches!(try_with(&world, who, RIGHT).await, Err(ProveError::Wrong)),
        "none is set"
    );
    set_right(&world).await;
    try_with(&world, who, RIGHT).await.unwrap();
    assert!(is_proven(&world.store.pool, who.token).await.unwrap());
    assert!(!is_proven(&world.store.pool, other.token).await.unwrap());

    let age = async |by: &str| {
        let aged = format!("update record.step_ups set proved_at = proved_at - interval '{by}'");
        sqlx::query(&aged).execute(&pool).await.unwrap();
    };
    age("14 minutes").await;
    assert!(is_proven(&world.store.pool, who.token).await.unwrap());
    age("1 minute").await;
    assert!(!is_proven(&world.store.pool, who.token).await.unwrap());

    try_with(&world, who, RIGHT).await.unwrap();
    set_right(&world).await;
    assert!(
        !is_proven(&world.store.pool, who.token).await.unwrap(),
        "a new password voids what the old one proved"
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn guessing_has_a_bound_and_every_try_is_told(pool: PgPool) {
    let world = World::new(pool.clone()).await;
    let who = principal(&world).await;
    set_right(&world).await;
    for _ in 0..FAILURES_MAX {
        assert!(matches!(
            try_with(&world, who, "a guess").await,
            Err(ProveError::Wrong)
        ));
    }
    let other = principal(&world).await;
    for token in [who, other] {
        assert!(
            matches!(
                try_with(&world, token, RIGHT).await,
                Err(ProveError::TooManyTries)
            ),
            "the bound is the user's, whatever the token"
        );
    }
    let told: i64 =
        sqlx::query_scalar("select count(*) from log.events where event_type = 'step_up_failed'")
            .fetch_one(&pool)
            .await
            .unwrap();
    assert_eq!(told, i64::from(FAILURES_MAX));

    sqlx::query("update record.password_failures set since = since - interval '15 minutes'")
        .execute(&pool)
        .await
        .unwrap();
    try_with(&world, who, RIGHT).await.unwrap();
    let left: i64 = sqlx::query_scalar("select count(*) from record.password_failures")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(left, 0, "success forgets the failures");
}
