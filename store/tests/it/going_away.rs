//! A server that goes away is told from one that answers.

use sqlx::PgPool;
use stackship_store::StoreError;

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn the_last_word_of_a_server_that_shuts_down_is_no_answer(pool: PgPool) {
    for (statement, is_away) in [
        ("select pg_terminate_backend(pg_backend_pid())", true),
        ("select 1 / 0", false),
    ] {
        let error = sqlx::query(statement).execute(&pool).await.unwrap_err();
        let error = StoreError::from(error);
        let found = matches!(error, StoreError::Unavailable(_));
        assert_eq!(found, is_away, "{statement}: {error:?}");
    }
}
