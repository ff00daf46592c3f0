//! A sensitive value leaves the store towards an input snapshot and nowhere else.

use sqlx::PgPool;
use stackship_domain::variable::{VARIABLES_MAX, VariableCategory};
use stackship_store::objects::{KeyError, ObjectError};
use stackship_store::records::variables::{
    NewVariable, VariableChange, delete, for_snapshot, list, set, update,
};
use stackship_store::{StoreError, Violation};

use crate::support::{CHECK, World, refusal, violation};

const SECRET: &str = "correct horse battery staple";

fn new(key: &str, value: &str, sensitive: bool) -> NewVariable {
    NewVariable {
        key: key.to_owned(),
        value: value.to_owned(),
        category: VariableCategory::Env,
        hcl: false,
        sensitive,
        description: "why".to_owned(),
    }
}

async fn is_anywhere(world: &World, text: &str) -> bool {
    let found: i64 = sqlx::query_scalar(
        "select (select count(*) from record.variables v where v::text like '%' || $1 || '%' \
                 or position(convert_to($1, 'UTF8') in v.sealed_value) > 0) \
              + (select count(*) from log.events e where e::text like '%' || $1 || '%')",
    )
    .bind(text)
    .fetch_one(&world.owner)
    .await
    .unwrap();
    found > 0
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_sensitive_value_reaches_snapshots_only(pool: PgPool) {
    let world = World::new(pool).await;
    let context = world.context();
    let plain = set(
        &world.store,
        &context,
        world.workspace,
        &new("REGION", "eu", false),
    )
    .await
    .unwrap();
    let secret = set(
        &world.store,
        &context,
        world.workspace,
        &new("PASSWORD", SECRET, true),
    )
    .await
    .unwrap();
    assert_eq!(
        (plain.value.as_deref(), secret.value.as_deref()),
        (Some("eu"), None)
    );
    let listed = list(&world.store.pool, world.organization, world.workspace)
        .await
        .unwrap();
    assert_eq!(listed, [secret, plain]);
    assert!(
        !is_anywhere(&world, SECRET).await,
        "a table holds the secret in clear"
    );

    let inputs = for_snapshot(&world.store, world.organization, world.workspace)
        .await
        .unwrap();
    let values: Vec<_> = inputs
        .iter()
        .map(|input| (input.key.as_str(), input.value.as_str()))
        .collect();
    assert_eq!(values, [("PASSWORD", SECRET), ("REGION", "eu")]);
    assert!(!format!("{:?}", new("PASSWORD", SECRET, true)).contains(SECRET));
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_sealed_value_does_not_open_in_another_row(pool: PgPool) {
    let world = World::new(pool).await;
    let context = world.context();
    set(
        &world.store,
        &context,
        world.workspace,
        &new("A", SECRET, true),
    )
    .await
    .unwrap();
    set(
        &world.store,
        &context,
        world.workspace,
        &new("B", "other", true),
    )
    .await
    .unwrap();
    let copy = "update record.variables set sealed_value = (select sealed_value from record.variables where key = 'A') \
         where key = 'B'";
    sqlx::raw_sql(copy).execute(&world.owner).await.unwrap();
    let outcome = for_snapshot(&world.store, world.organization, world.workspace).await;
    assert!(
        matches!(
            outcome,
            Err(StoreError::Object(ObjectError::Key(KeyError::Unauthentic)))
        ),
        "a moved value opened"
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_plain_value_can_become_sensitive_and_never_back(pool: PgPool) {
    let world = World::new(pool).await;
    let context = world.context();
    let variable = set(
        &world.store,
        &context,
        world.workspace,
        &new("A", SECRET, false),
    )
    .await
    .unwrap();
    let change = async |change: VariableChange| {
        update(
            &world.store,
            &context,
            world.workspace,
            variable.id,
            &change,
        )
        .await
    };
    let hidden = change(VariableChange {
        sensitive: Some(true),
        ..VariableChange::default()
    })
    .await
    .unwrap()
    .unwrap();
    assert_eq!((hidden.sensitive, hidden.value), (true, None));
    assert!(!is_anywhere(&world, SECRET).await);
    let shown = change(VariableChange {
        sensitive: Some(false),
        ..VariableChange::default()
    })
    .await;
    assert_eq!(violation(shown), Violation::Immutable);
    let with_value = VariableChange {
        sensitive: Some(false),
        value: Some("x".to_owned()),
        ..VariableChange::default()
    };
    assert_eq!(violation(change(with_value).await), Violation::Immutable);

    change(VariableChange {
        key: Some("B".to_owned()),
        ..VariableChange::default()
    })
    .await
    .unwrap();
    let inputs = for_snapshot(&world.store, world.organization, world.workspace)
        .await
        .unwrap();
    assert_eq!(
        (inputs[0].key.as_str(), inputs[0].value.as_str()),
        ("B", SECRET),
        "a new name keeps the value"
    );
    change(VariableChange {
        value: Some("new".to_owned()),
        ..VariableChange::default()
    })
    .await
    .unwrap();
    let inputs = for_snapshot(&world.store, world.organization, world.workspace)
        .await
        .unwrap();
    assert_eq!(
        (inputs[0].value.as_str(), inputs[0].sensitive),
        ("new", true)
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_key_is_taken_once_a_category(pool: PgPool) {
    let world = World::new(pool).await;
    let context = world.context();
    let first = set(
        &world.store,
        &context,
        world.workspace,
        &new("A", "1", false),
    )
    .await
    .unwrap();
    let again = set(
        &world.store,
        &context,
        world.workspace,
        &new("A", "2", true),
    )
    .await;
    assert_eq!(violation(again), Violation::Taken { field: "key" });
    let input = NewVariable {
        category: VariableCategory::Terraform,
        ..new("A", "3", false)
    };
    set(&world.store, &context, world.workspace, &input)
        .await
        .unwrap();
    assert!(
        delete(&world.store, &context, world.workspace, first.id)
            .await
            .unwrap()
    );
    assert!(
        !delete(&world.store, &context, world.workspace, first.id)
            .await
            .unwrap()
    );
    set(
        &world.store,
        &context,
        world.workspace,
        &new("A", "4", false),
    )
    .await
    .unwrap();
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_workspace_holds_a_bounded_number_even_for_two_writers_at_once(pool: PgPool) {
    let world = World::new(pool).await;
    let almost = format!(
        "insert into record.variables (variable_id, organization_id, workspace_id, key, category, hcl, sensitive, value) \
         select 'var-' || n, '{}', '{}', 'k' || n, 'env', false, false, '' from generate_series(2, {VARIABLES_MAX}) n",
        world.organization, world.workspace
    );
    sqlx::raw_sql(&almost).execute(&world.owner).await.unwrap();
    let (a, b) = (new("A", "", false), new("B", "", false));
    let context = world.context();
    let (one, other) = tokio::join!(
        set(&world.store, &context, world.workspace, &a),
        set(&world.store, &context, world.workspace, &b)
    );
    let refused = if one.is_ok() { other } else { one };
    assert_eq!(
        violation(refused),
        Violation::Full {
            what: "variables",
            max: VARIABLES_MAX
        }
    );
    let count: i64 = sqlx::query_scalar("select count(*) from record.variables")
        .fetch_one(&world.owner)
        .await
        .unwrap();
    assert_eq!(usize::try_from(count).unwrap(), VARIABLES_MAX);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn the_database_takes_a_value_plain_or_sealed_and_never_both(pool: PgPool) {
    let world = World::new(pool).await;
    let insert = |sensitive: bool, value: &str, sealed: &str, key_id: &str| {
        format!(
            "insert into record.variables (variable_id, organization_id, workspace_id, key, category, hcl, sensitive, \
                 value, sealed_value, sealed_key_id) \
             values ('var-1', '{}', '{}', 'A', 'env', false, {sensitive}, {value}, {sealed}, {key_id})",
            world.organization, world.workspace
        )
    };
    for statement in [
        insert(true, "'in clear'", "null", "null"),
        insert(true, "'in clear'", "'sealed'", "'kek'"),
        insert(true, "null", "null", "null"),
        insert(false, "null", "'sealed'", "'kek'"),
        insert(false, "null", "null", "null"),
        insert(true, "null", "'sealed'", "null"),
    ] {
        assert_eq!(
            refusal(&world.store.pool, &statement).await,
            CHECK,
            "{statement}"
        );
        assert_eq!(
            refusal(&world.owner, &statement).await,
            CHECK,
            "{statement}"
        );
    }
}
