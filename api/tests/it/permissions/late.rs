//! Every route that waits for a body, with a credential that ends while it waits.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::Request;
use hyper::body::Frame;
use sqlx::PgPool;
use stackship_api::BELIEVED_FOR;
use stackship_store::records::passwords::{self, Password};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tower::ServiceExt as _;

use super::routes::{TABLE, Who};
use super::{Fill, Outcome};
use crate::guarded::PASSWORD;
use crate::http::Call;
use crate::world::{World, origin};

/// Ends every credential there is; that of a closed attempt too, which nothing else could change.
const END_ALL: &str = "update record.tokens set revoked_at = now(); \
     update record.runners set revoked_at = now(); \
     alter table record.attempts disable trigger user; \
     update record.attempts set lease_token_sha256 = sha256(lease_token_sha256), run_token_sha256 = null \
         where lease_token_sha256 is not null";
/// Fewer than the routes that wait for a body of somebody in the table.
const ROUTES_MIN: usize = 40;

/// A body that tells when it is asked for, and ends, empty, when a test lets it.
struct Late {
    was_asked_for: Arc<Notify>,
    over: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl HttpBody for Late {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        this.was_asked_for.notify_one();
        this.over.as_mut().poll(context).map(|()| None)
    }
}

/// Sends a request; gives it back when it waits for its body.
async fn waiting(
    world: &World,
    request: axum::http::request::Builder,
    over: &CancellationToken,
) -> Option<JoinHandle<Outcome>> {
    let was_asked_for = Arc::<Notify>::default();
    let body = Late {
        was_asked_for: Arc::clone(&was_asked_for),
        over: Box::pin(over.clone().cancelled_owned()),
    };
    let request = request.body(Body::new(body)).unwrap();
    let router = world.router.clone();
    let mut answer = tokio::spawn(async move {
        let response = router.oneshot(request).await.unwrap();
        Outcome::of_status(response.status())
    });
    tokio::select! {
        () = was_asked_for.notified() => Some(answer),
        _ = &mut answer => None,
    }
}

/// The owner has shown who they are, so that what is guarded waits for its body too.
async fn prove(world: &World) {
    let acme = &world.acme;
    let context = origin(acme.owner.user).within(acme.organization);
    let password = Password::new(PASSWORD.to_owned()).unwrap();
    passwords::set(&world.store, &context, acme.owner.user, password)
        .await
        .unwrap();
    let body = serde_json::json!({"password": PASSWORD});
    let proof = Call::new("POST", "/v1/user/step-up", &acme.owner.token).json(&body);
    proof.send(&world.router).await.data(200);
}

/// Whether a request may be named; elsewhere a name is refused before anything else is looked at.
fn takes_name(template: &str) -> bool {
    let never_kept = [
        "/user/step-up",
        "/raw-plan",
        "/emergency-state",
        "/download",
    ];
    !never_kept.iter().any(|end| template.ends_with(end))
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn whose_credential_ends_before_the_body_is_refused_by_every_route(pool: PgPool) {
    let world = World::new(pool).await;
    let fill = Fill::new(&world).await;
    prove(&world).await;
    let over = CancellationToken::new();
    let (mut late, mut routes) = (Vec::new(), 0);
    for (method, template, who) in TABLE.iter().filter(|(method, ..)| *method != "GET") {
        let is_named = matches!(who, Who::May(..) | Who::Member) && *method == "POST";
        let name = (is_named && takes_name(template)).then_some("late");
        for name in std::iter::once(None).chain(name.map(Some)) {
            let mut request = Request::builder()
                .method(*method)
                .uri(fill.path(template).await)
                .header("host", "ship.test")
                .header("x-stackship-sha256", "0".repeat(64))
                .header("authorization", format!("Bearer {}", fill.strongest(*who)));
            if let Some(name) = name {
                request = request.header("idempotency-key", name);
            }
            if let Some(answer) = waiting(&world, request, &over).await {
                routes += usize::from(name.is_none());
                late.push((format!("{method} {template}, named {name:?}"), answer));
            }
        }
    }
    sqlx::raw_sql(END_ALL).execute(&world.owner).await.unwrap();
    let written = world.count("log.events").await;
    tokio::time::sleep(BELIEVED_FOR).await;
    over.cancel();
    let mut wrong = Vec::new();
    for (request, answer) in late {
        let outcome = answer.await.unwrap();
        if outcome != Outcome::Unknown {
            wrong.push(format!("{request}: {outcome:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(world.count("log.events").await, written);
    assert!(routes >= ROUTES_MIN, "{routes} routes waited for a body");
}
