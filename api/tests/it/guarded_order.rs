//! What is guarded leaves after the history was told, and not a byte of the answer before.

use serde_json::json;
use sqlx::PgPool;

use crate::guarded::{Guarded, PLAN, REASON};
use crate::socket::Wire;
use crate::world::until;

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn nothing_of_the_answer_comes_while_the_history_is_not_told(pool: PgPool) {
    let guarded = Guarded::new(pool).await;
    let (served, owner) = (&guarded.served, &guarded.served.acme.owner.token);
    guarded.step_up(owner).await.data(200);
    // Whoever appends to the log now waits.
    let mut held = served.owner.begin().await.unwrap();
    sqlx::raw_sql("lock table log.events in share mode")
        .execute(&mut *held)
        .await
        .unwrap();
    let (path, body) = (guarded.path("raw-plan"), json!({"reason": REASON}));
    let mut wire = Wire::send(&served.url, "POST", &path, owner, &body.to_string()).await;
    let waits = "select exists (select from pg_locks where relation = 'log.events'::regclass and not granted \
        and database = (select oid from pg_database where datname = current_database()))";
    until("the append waits", async || {
        let waits = sqlx::query_scalar::<_, bool>(waits);
        waits.fetch_one(&served.owner).await.unwrap()
    })
    .await;
    assert!(
        !wire.has_come(),
        "something was said before the history was told"
    );
    assert!(guarded.releases().await.is_empty());

    held.rollback().await.unwrap();
    let head = wire.head().await;
    assert_eq!((head.status, head.length), (200, PLAN.len()));
    let told = guarded.releases().await;
    assert_eq!(told.len(), 1, "before the first byte of the body is read");
    assert_eq!(told[0]["reason"], REASON);
    assert_eq!(wire.rest().await, PLAN);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn what_cannot_be_told_is_not_released(pool: PgPool) {
    let guarded = Guarded::new(pool).await;
    let (served, owner) = (&guarded.served, &guarded.served.acme.owner.token);
    guarded.step_up(owner).await.data(200);
    sqlx::raw_sql(
        "create function log.refuse_release() returns trigger language plpgsql as \
             $$ begin raise exception 'no room for it'; end $$; \
         create trigger refuse_release before insert on log.events for each row \
             when (new.event_type = 'guarded_artifact_released') execute function log.refuse_release()",
    )
    .execute(&served.owner)
    .await
    .unwrap();
    let refused = guarded.raw_plan("", REASON).await;
    assert_eq!((refused.status.as_u16(), refused.code()), (500, "INTERNAL"));
    assert!(!refused.bytes.windows(6).any(|bytes| bytes == b"secret"));
    assert!(guarded.releases().await.is_empty());
}
