//! Requests that may be sent again. A `POST` whose caller names it in `Idempotency-Key` is carried
//! out once: the same request under the same name gets the same answer, another one is refused.
//!
//! A name is its caller's own, within one organization and for one path. Answers are kept for
//! [`ANSWER_KEPT_SECONDS`]; a repetition after that is still not carried out again where the first
//! one created something, but its answer is gone. Refusals are not kept: what was refused may be
//! tried again under the same name. Whoever may no longer send the request is refused like anybody
//! else, whatever is kept.

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt as _;
use hyper::body::SizeHint;
use stackship_domain::Sha256Digest;
use stackship_store::records::answers::{self, Claim, KeptAnswer, NamedRequest};
use stackship_store::records::tokens;
use tracing::Instrument as _;

use crate::auth::Caller;
use crate::error::WouldBeCarriedOut;
use crate::{ApiError, App, error, head, reading};

pub use answers::ANSWER_KEPT_SECONDS;

/// Header by which a caller names a request, so that sending it again is harmless.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Header of an answer that was given before.
pub const IDEMPOTENCY_REPLAYED: &str = "idempotency-replayed";
/// The longest name of a request.
pub(super) const NAME_CHARS_MAX: usize = 128;

/// What is kept in place of an answer that holds a secret.
#[derive(Clone)]
pub(super) struct WithoutSecret(pub(super) String);

/// Carries a named request out once.
pub(super) async fn once(State(app): State<App>, request: Request, next: Next) -> Response {
    if request.method() != Method::POST || !request.headers().contains_key(IDEMPOTENCY_KEY) {
        return next.run(request).await;
    }
    named(app, request, next)
        .await
        .unwrap_or_else(IntoResponse::into_response)
}

/// The request has no name: no answer of its route is kept, and a promise that is not held must not look
/// like one.
pub(super) struct Unnamed(());

impl FromRequestParts<App> for Unnamed {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        if !parts.headers.contains_key(IDEMPOTENCY_KEY) {
            return Ok(Self(()));
        }
        let (code, field) = ("IDEMPOTENCY_KEY_UNSUPPORTED", IDEMPOTENCY_KEY);
        let message = "no answer of this route is kept, so it takes no `Idempotency-Key`; send the request without one, \
                       and once more if its answer is lost";
        Err(ApiError::unreadable(code, field, message))
    }
}

async fn named(app: App, request: Request, next: Next) -> Result<Response, ApiError> {
    let (mut parts, body) = request.into_parts();
    let mut caller = Caller::from_request_parts(&mut parts, &app).await?;
    let Some(user) = caller.user().copied() else {
        return Ok(next.run(Request::from_parts(parts, body)).await);
    };
    let name = name(&parts)?.to_owned();
    if let Some(refused) =
        refused_from_the_head(&parts, &caller, body.size_hint(), next.clone()).await
    {
        return Ok(refused);
    }
    let body = reading::bytes(Request::from_parts(parts.clone(), body)).await?;
    let request = named_request(&parts, &user, &name, &body);
    let claim = answers::claim(&app.store.pool, &request).await?;
    caller.command_id = request.command_id();
    caller.is_repeated = claim != Claim::Fresh;
    parts.extensions.insert(caller);
    let running = next.run(Request::from_parts(parts, Body::from(body)));
    if claim != Claim::Fresh {
        return repeated(claim, running.await);
    }
    // On a task of its own: a caller who goes away does not take the answer along.
    let task = async move { settle(&app, &request, running.await).await };
    let finished = tokio::spawn(task.in_current_span()).await;
    Ok(finished.unwrap_or_else(|_| error::internal()))
}

/// What the handler says without having asked for the body. A body is waited for only when the head
/// does not decide: whoever may not send the request would otherwise keep a connection by naming it.
async fn refused_from_the_head(
    parts: &Parts,
    caller: &Caller,
    length: SizeHint,
    next: Next,
) -> Option<Response> {
    let mut parts = parts.clone();
    // Nothing is carried out here, whatever the handler does without a body.
    parts.extensions.insert(Caller {
        is_repeated: true,
        ..caller.clone()
    });
    head::refusal(parts, length, next).await
}

/// What a request gets whose name is taken. Rights may have gone since the first time, so its handler
/// is asked first: whatever it says before it would have carried the request out is the answer.
fn repeated(claim: Claim, response: Response) -> Result<Response, ApiError> {
    if response.extensions().get::<WouldBeCarriedOut>().is_none() {
        return Ok(response);
    }
    match claim {
        Claim::Answered(answer) => replay(answer),
        Claim::CarriedOut(done) => Err(ApiError::CarriedOut { done }),
        Claim::OtherBody => Err(reused()),
        Claim::Fresh | Claim::Busy => Err(busy()),
    }
}

/// The name that the caller gave.
fn name(parts: &Parts) -> Result<&str, ApiError> {
    let given = parts.headers.get(IDEMPOTENCY_KEY);
    given
        .and_then(|name| name.to_str().ok())
        .filter(|name| !name.is_empty() && name.len() <= NAME_CHARS_MAX)
        .ok_or_else(|| {
            let message = "`Idempotency-Key` has 1 to 128 visible characters";
            ApiError::unreadable("IDEMPOTENCY_KEY_INVALID", IDEMPOTENCY_KEY, message)
        })
}

/// Two callers, or two paths, may choose the same name and mean different requests.
fn named_request(
    parts: &Parts,
    user: &tokens::Principal,
    name: &str,
    body: &Bytes,
) -> NamedRequest {
    let whole = format!(
        "{}\n{} {}\n{name}",
        user.user,
        parts.method,
        parts.uri.path()
    );
    NamedRequest {
        organization: user.organization,
        name: Sha256Digest::of(whole.as_bytes()),
        body: Sha256Digest::of(body),
    }
}

/// Keeps a success; everything else leaves the name free for another try.
async fn settle(app: &App, request: &NamedRequest, response: Response) -> Response {
    let (parts, body) = response.into_parts();
    let body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(failure) => return ApiError::Internal(failure.into()).into_response(),
    };
    let pool = &app.store.pool;
    let kept = match kept(&parts, &body) {
        Some(answer) => answers::answer(pool, request, &answer).await,
        None => answers::release(pool, request).await,
    };
    if let Err(failure) = kept {
        tracing::warn!(error = %failure, "The answer of a named request was not kept");
    }
    Response::from_parts(parts, Body::from(body))
}

fn kept(parts: &axum::http::response::Parts, body: &Bytes) -> Option<KeptAnswer> {
    let body = match parts.extensions.get::<WithoutSecret>() {
        Some(WithoutSecret(body)) => body.clone(),
        None => String::from_utf8(body.to_vec()).ok()?,
    };
    let is_kept = parts.status.is_success() && body.len() <= answers::ANSWER_BYTES_MAX;
    is_kept.then(|| KeptAnswer {
        status: parts.status.as_u16(),
        body,
    })
}

fn replay(answer: KeptAnswer) -> Result<Response, ApiError> {
    let status = StatusCode::from_u16(answer.status)
        .map_err(|invalid| ApiError::Internal(invalid.into()))?;
    let mut response = (status, answer.body).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(IDEMPOTENCY_REPLAYED, HeaderValue::from_static("true"));
    Ok(response)
}

fn reused() -> ApiError {
    let message = "this `Idempotency-Key` belongs to a request with another body; choose a new one";
    ApiError::refused("IDEMPOTENCY_KEY_REUSED", IDEMPOTENCY_KEY, message)
}

fn busy() -> ApiError {
    let message = "the first request with this `Idempotency-Key` is still being carried out; send this one again in a moment";
    ApiError::Invalid {
        status: StatusCode::CONFLICT,
        code: "IDEMPOTENCY_KEY_BUSY",
        field: IDEMPOTENCY_KEY.to_owned(),
        message: message.to_owned(),
    }
}
