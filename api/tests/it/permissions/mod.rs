//! Every route tried by every kind of caller. A route without a row in the table fails, and so does
//! a row without a route.

mod fill;
mod late;
pub mod routes;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Request, StatusCode};
use hyper::body::{Frame, SizeHint};
use serde_json::Value;
use sqlx::PgPool;
use stackship_domain::Role;
use tower::ServiceExt as _;

pub use fill::Fill;
use routes::{TABLE, Who};

use crate::http::{Answer, Call};
use crate::world::World;

/// Who calls, in the order in which each route is tried: the strongest last, because some calls
/// change what is there.
#[derive(Clone, Copy, Debug, PartialEq)]
enum As {
    Nobody,
    BadToken,
    ForeignOwner,
    Runner,
    OtherLease,
    Run,
    Is(Role),
    Lease,
}

const CALLERS: [As; 11] = [
    As::Nobody,
    As::BadToken,
    As::ForeignOwner,
    As::Runner,
    As::OtherLease,
    As::Run,
    As::Is(Role::Reader),
    As::Is(Role::Planner),
    As::Is(Role::Operator),
    As::Is(Role::Owner),
    As::Lease,
];

impl As {
    fn credential<'a>(self, world: &'a World, fill: &'a Fill<'_>) -> Option<&'a str> {
        Some(match self {
            Self::Nobody => return None,
            Self::BadToken => "ss_0000000000000000000000000000000000000000000",
            Self::ForeignOwner => &world.umbrella.owner.token,
            Self::Runner => &fill.runner_token,
            Self::OtherLease => &fill.other_lease_token,
            Self::Run => &fill.run_token,
            Self::Is(Role::Reader) => &world.acme.reader.token,
            Self::Is(Role::Planner) => &world.acme.planner.token,
            Self::Is(Role::Operator) => &world.acme.operator.token,
            Self::Is(Role::Owner) => &world.acme.owner.token,
            Self::Lease => &fill.lease_token,
        })
    }
}

/// What a caller gets, as far as permission is concerned.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    /// 401.
    Unknown,
    /// 403.
    Forbidden,
    /// 404.
    NotThere,
    /// Anything else: the handler itself answered.
    Reached,
}

use Outcome::{Forbidden, NotThere, Reached, Unknown};

impl Outcome {
    fn of(answer: &Answer) -> Self {
        Self::of_status(answer.status)
    }

    fn of_status(status: StatusCode) -> Self {
        match status.as_u16() {
            401 => Unknown,
            403 => Forbidden,
            404 => NotThere,
            _ => Reached,
        }
    }
}

impl Who {
    /// What this caller gets, exactly.
    fn expected(self, caller: As) -> Outcome {
        match (self, caller) {
            (Self::Anybody, _)
            | (Self::Runner, As::Runner)
            | (Self::Lease, As::Lease)
            | (Self::Themselves, As::ForeignOwner) => Reached,
            (Self::Signature, _) => NotThere,
            (Self::Runner | Self::Lease, _)
            | (_, As::Nobody | As::BadToken | As::Runner | As::OtherLease | As::Lease) => Unknown,
            (_, As::ForeignOwner) => NotThere,
            (_, As::Run) => self.expected_of_run(),
            (_, As::Is(role)) => self.expected_of(role),
        }
    }

    fn expected_of_run(self) -> Outcome {
        match self {
            Self::ClientOrRun(..) | Self::RunAlone | Self::Insider => Reached,
            Self::Themselves | Self::Member | Self::May(..) | Self::Creates(_) | Self::Applying => {
                Forbidden
            }
            _ => NotThere,
        }
    }

    fn expected_of(self, role: Role) -> Outcome {
        match self {
            Self::May(permission, seen_with)
            | Self::Client(permission, seen_with)
            | Self::ClientOrRun(permission, seen_with) => {
                match (role.grants(permission), role.grants(seen_with)) {
                    (true, _) => Reached,
                    (false, true) => Forbidden,
                    (false, false) => NotThere,
                }
            }
            Self::Guarded(permission) if role.grants(permission) => Forbidden,
            Self::Creates(permission) if role.grants(permission) => Reached,
            Self::Creates(_) | Self::RunAlone | Self::Applying => Forbidden,
            Self::Guarded(_) | Self::Absent => NotThere,
            _ => Reached,
        }
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn every_route_lets_in_whom_the_table_says_and_nobody_else(pool: PgPool) {
    let world = World::new(pool).await;
    let fill = Fill::new(&world).await;
    let mut wrong = Vec::new();
    for (method, template, who) in TABLE {
        for caller in CALLERS {
            let mut call = Call::new(method, fill.path(template).await, "");
            call.token = caller.credential(&world, &fill);
            let call = call.json(&fill.body(template).await);
            let answer = call.send(&world.router).await;
            let expected = who.expected(caller);
            if answer.status.is_server_error() || expected != Outcome::of(&answer) {
                wrong.push(format!(
                    "{method} {template} as {caller:?}: {} {}, not {expected:?}",
                    answer.status, answer.json
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A body that never comes, and tells whether anybody asked for it.
struct Unread(Arc<AtomicBool>);

impl HttpBody for Unread {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.store(true, Ordering::Release);
        Poll::Ready(None)
    }

    fn size_hint(&self) -> SizeHint {
        // Of unknown length: one that announces too much is refused for that.
        SizeHint::default()
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn whom_the_head_refuses_is_refused_without_a_look_at_the_body(pool: PgPool) {
    let world = World::new(pool).await;
    let fill = Fill::new(&world).await;
    let mut wrong = Vec::new();
    let mut tried = 0;
    for (method, template, who) in TABLE.iter().filter(|(method, ..)| *method != "GET") {
        for caller in CALLERS {
            let expected = who.expected(caller);
            // Nothing but the body names what the run is to be made of.
            let is_in_the_body = (*template, caller) == ("/api/v2/runs", As::ForeignOwner);
            if expected == Reached || is_in_the_body {
                continue;
            }
            for name in [None, Some("a-name")] {
                let was_asked_for = Arc::new(AtomicBool::new(false));
                let mut request = Request::builder()
                    .method(*method)
                    .uri(fill.path(template).await)
                    .header("host", "ship.test");
                if let Some(token) = caller.credential(&world, &fill) {
                    request = request.header("authorization", format!("Bearer {token}"));
                }
                if let Some(name) = name {
                    request = request.header("idempotency-key", name);
                }
                let body = Body::new(Unread(Arc::clone(&was_asked_for)));
                let request = request.body(body).unwrap();
                let response = world.router.clone().oneshot(request).await.unwrap();
                let outcome = Outcome::of_status(response.status());
                tried += 1;
                if was_asked_for.load(Ordering::Acquire) || outcome != expected {
                    wrong.push(format!(
                        "{method} {template} as {caller:?}, named {name:?}: {outcome:?}, not {expected:?} from the head"
                    ));
                }
            }
        }
    }
    assert!(tried > 500, "{tried} refusals were tried");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_and_the_router_have_the_same_routes() {
    let document: Value = serde_json::from_str(&stackship_api::openapi_json()).unwrap();
    let mut routes = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            routes.insert((method.to_uppercase(), plain(path)));
        }
    }
    let others = [
        stackship_api::front::ROUTES,
        stackship_api::health::ROUTES,
        stackship_api::v1::UNDESCRIBED_ROUTES,
        stackship_api::v2::ROUTES,
        stackship_api::runner_v1::ROUTES,
    ];
    for (method, path) in others.concat() {
        routes.insert((method.to_owned(), plain(path)));
    }
    let rows: BTreeSet<_> = TABLE
        .iter()
        .map(|(method, path, _)| ((*method).to_owned(), plain(path)))
        .collect();
    let missing: Vec<_> = routes.difference(&rows).collect();
    let stale: Vec<_> = rows.difference(&routes).collect();
    assert!(missing.is_empty(), "routes without a row: {missing:?}");
    assert!(stale.is_empty(), "rows without a route: {stale:?}");
}

/// A path without the names of its parameters.
fn plain(path: &str) -> String {
    let is_parameter = |part: &&str| part.starts_with('{');
    let parts = path
        .split('/')
        .map(|part| if is_parameter(&part) { "{}" } else { part });
    parts.collect::<Vec<_>>().join("/")
}
