//! Revoking a token takes back whatever descends from it, also what is being made meanwhile.

use std::collections::BTreeSet;

use sqlx::PgPool;
use stackship_domain::ids::TokenId;
use stackship_store::records::tokens::{Descent, MintError, NewToken, Revoked, create, revoke};

use crate::support::World;

const MINTERS: usize = 6;

async fn mint(world: &World, descent: Descent) -> Result<TokenId, MintError> {
    let new = NewToken {
        user: world.user,
        description: "d".to_owned(),
        expires_at: None,
        descent,
    };
    let made = create(&world.store, &world.context(), &new).await;
    made.map(|(id, _)| id)
}

async fn live(world: &World) -> BTreeSet<String> {
    let live = "select token_id from record.tokens where revoked_at is null";
    let rows: Vec<String> = sqlx::query_scalar(live)
        .fetch_all(&world.owner)
        .await
        .unwrap();
    rows.into_iter().collect()
}

fn names(tokens: &[TokenId]) -> BTreeSet<String> {
    tokens.iter().map(ToString::to_string).collect()
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_chain_is_revoked_from_where_it_is_cut(pool: PgPool) {
    let world = World::new(pool).await;
    let root = mint(&world, Descent::Machine).await.unwrap();
    let mut chain = vec![root];
    for _ in 0..5 {
        let last = *chain.last().unwrap();
        chain.push(mint(&world, Descent::Of(last)).await.unwrap());
    }
    let apart = mint(&world, Descent::Apart(chain[4])).await.unwrap();
    let cut = revoke(&world.store, &world.context(), chain[3])
        .await
        .unwrap();
    assert_eq!(cut, Some(Revoked { descendants: 2 }));
    let left = [chain[0], chain[1], chain[2], apart];
    assert_eq!(live(&world).await, names(&left));
    let whole = revoke(&world.store, &world.context(), root).await.unwrap();
    assert_eq!(
        whole,
        Some(Revoked { descendants: 2 }),
        "only live ones count"
    );
    assert_eq!(live(&world).await, names(&[apart]));
    let late = mint(&world, Descent::Of(chain[5])).await;
    assert!(matches!(late, Err(MintError::MinterOver)), "{late:?}");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_token_descends_from_one_of_its_own_organization(pool: PgPool) {
    let world = World::new(pool).await;
    let (other, ..) = world.other_tenant().await;
    let foreign = NewToken {
        user: world.user,
        description: "d".to_owned(),
        expires_at: None,
        descent: Descent::Machine,
    };
    let elsewhere = crate::support::origin(world.user).within(other);
    let (foreign, _) = create(&world.store, &elsewhere, &foreign).await.unwrap();
    let made = mint(&world, Descent::Of(foreign)).await;
    assert!(matches!(made, Err(MintError::MinterOver)), "{made:?}");
}

/// Everybody mints with the newest token that they know, as fast as they can, until it is over.
async fn keep_minting(world: &World, root: TokenId) {
    let mut newest = root;
    loop {
        match mint(world, Descent::Of(newest)).await {
            Ok(token) => newest = token,
            Err(MintError::MinterOver) => return,
            Err(other) => panic!("{other:?}"),
        }
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn nothing_that_is_made_meanwhile_is_left_behind(pool: PgPool) {
    let world = World::new(pool).await;
    let root = mint(&world, Descent::Machine).await.unwrap();
    let minters = futures::future::join_all((0..MINTERS).map(|_| keep_minting(&world, root)));
    let revoking = async {
        // Not before each of them has got somewhere.
        while live(&world).await.len() <= MINTERS * 2 {}
        revoke(&world.store, &world.context(), root).await.unwrap()
    };
    let (revoked, _) = futures::future::join(revoking, minters).await;
    assert!(revoked.unwrap().descendants >= MINTERS * 2);
    assert_eq!(live(&world).await, names(&[]));
}
