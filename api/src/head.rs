//! What the head of a request decides: first of all, and once more when a slow body is in.
//!
//! Rights are asked before a body is waited for, so that nobody holds a connection without one. The body
//! may then take hours, and a token that was revoked or a role that was taken away meanwhile must not be
//! good for what it leads to. So the end of a body that took its time is withheld until the handler has
//! judged the head again. It stands around every route: none has to think of it, and none can forget it.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use hyper::body::{Frame, SizeHint};
use tokio::time::Instant;

use crate::error::WouldBeCarriedOut;
use crate::reading::Withheld;
use crate::serving::AtHand;

/// How long it is believed what the head decided, while the body comes. A request that is whole within
/// this time could as well have been carried out just before its token was revoked.
pub const BELIEVED_FOR: Duration = Duration::from_secs(1);

/// Marks a request that is only judged: nothing may be carried out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judged;

/// Lets a body that took its time end only when its head would still be let in. The answer to one that
/// would not is what the handler says to the head now, in the words of its edge.
pub(crate) async fn judged_again(request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let head = Head {
        parts: parts.clone(),
        length: body.size_hint(),
        next: next.clone(),
        believed_until: Instant::now() + BELIEVED_FOR,
    };
    let refused = Arc::default();
    let body = Awaited {
        body,
        standing: Standing::Comes(Box::new(head)),
        refused: Arc::clone(&refused),
    };
    let response = next.run(Request::from_parts(parts, Body::new(body))).await;
    take(&refused).unwrap_or(response)
}

/// What the handler says to a head, without having asked for the body; nothing when it would go on.
pub(crate) async fn refusal(mut parts: Parts, length: SizeHint, next: Next) -> Option<Response> {
    let stand_in = StandIn {
        length,
        was_asked_for: Arc::default(),
    };
    let was_asked_for = Arc::clone(&stand_in.was_asked_for);
    parts.extensions.insert(Judged);
    let response = next
        .run(Request::from_parts(parts, Body::new(stand_in)))
        .await;
    let would_go_on = was_asked_for.load(Ordering::Acquire)
        || response.extensions().get::<WouldBeCarriedOut>().is_some();
    (!would_go_on).then_some(response)
}

/// Stands in for a body that is not read: as long, and not there.
struct StandIn {
    length: SizeHint,
    was_asked_for: Arc<AtomicBool>,
}

impl HttpBody for StandIn {
    type Data = Bytes;
    type Error = Withheld;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Withheld>>> {
        self.was_asked_for.store(true, Ordering::Release);
        Poll::Ready(Some(Err(Withheld)))
    }

    fn size_hint(&self) -> SizeHint {
        self.length
    }
}

/// A head, and until when it need not be judged again.
struct Head {
    parts: Parts,
    length: SizeHint,
    next: Next,
    believed_until: Instant,
}

impl Head {
    async fn judge(mut self) -> Option<Response> {
        // The request is at hand already, and stays it whatever else its user begins.
        self.parts.extensions.remove::<AtHand>();
        refusal(self.parts, self.length, self.next).await
    }
}

/// Where the answer to a head that is refused is put for its request.
type Refused = Arc<Mutex<Option<Response>>>;

fn take(refused: &Refused) -> Option<Response> {
    let mut refused = refused.lock().unwrap_or_else(PoisonError::into_inner);
    refused.take()
}

/// A body on its way, whose end is not told before its head was judged again.
struct Awaited {
    body: Body,
    standing: Standing,
    refused: Refused,
}

enum Standing {
    Comes(Box<Head>),
    /// It is in.
    Judged(BoxFuture<'static, Option<Response>>),
    Ended,
    Withheld,
}

impl HttpBody for Awaited {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        loop {
            this.standing = match &mut this.standing {
                Standing::Comes(_) => {
                    let frame = ready!(Pin::new(&mut this.body).poll_frame(context));
                    if frame.is_some() {
                        return Poll::Ready(frame);
                    }
                    std::mem::replace(&mut this.standing, Standing::Ended).at_its_end()
                }
                Standing::Judged(judging) => match ready!(judging.as_mut().poll(context)) {
                    None => Standing::Ended,
                    refusal @ Some(_) => {
                        *this.refused.lock().unwrap_or_else(PoisonError::into_inner) = refusal;
                        Standing::Withheld
                    }
                },
                Standing::Ended => return Poll::Ready(None),
                Standing::Withheld => {
                    return Poll::Ready(Some(Err(axum::Error::new(Withheld))));
                }
            };
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.standing, Standing::Ended)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Standing {
    fn at_its_end(self) -> Self {
        match self {
            Self::Comes(head) if Instant::now() >= head.believed_until => {
                Self::Judged(head.judge().boxed())
            }
            Self::Comes(_) | Self::Ended => Self::Ended,
            other @ (Self::Judged(_) | Self::Withheld) => other,
        }
    }
}
