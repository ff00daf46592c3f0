//! A peer that has to go on: the sender of a body, and whoever an answer is for.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::BoxError;
use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use super::Limits;

/// The body stood still, or came slower than a body may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the body came too slowly")]
pub struct Stalled;

impl Stalled {
    /// Whether this is what is behind an error.
    pub fn is_behind(error: &(dyn Error + 'static)) -> bool {
        has_cause::<Self>(error)
    }
}

/// Whether an error is a `C`, or comes from one.
pub(crate) fn has_cause<C: Error + 'static>(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<C>() {
            return true;
        }
        // An I/O error passes over what it was made of when it is asked for its source.
        next = match error.downcast_ref::<io::Error>() {
            Some(error) => error.get_ref().map(|inner| inner as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    false
}

/// A body that ends in [`Stalled`] when its sender does not go on. Only the time that is spent waiting
/// for the sender counts: who reads it may take as long as it needs.
pub struct Paced<B> {
    body: B,
    patience: Patience,
    is_over: bool,
}

impl<B> Paced<B> {
    /// The body under these limits.
    pub fn new(body: B, limits: &Limits) -> Self {
        Self {
            body,
            patience: Patience::new(limits),
            is_over: false,
        }
    }
}

/// Waits for a peer, none of them longer than it may be.
pub(super) struct Patience {
    pace: Pace,
    wait: Option<Wait>,
}

/// A wait for the peer.
struct Wait {
    since: Instant,
    alarm: Pin<Box<Sleep>>,
}

impl Patience {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            pace: Pace::new(limits),
            wait: None,
        }
    }

    /// The peer sent, or took, so many bytes.
    pub(super) fn went_on(&mut self, bytes: usize) {
        let wait = self.wait.take();
        let waited = wait.map_or(Duration::ZERO, |wait| wait.since.elapsed());
        self.pace.went_on(waited, bytes as u64);
    }

    /// The peer keeps us waiting; ready when that is over.
    pub(super) fn poll_over(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let patience = self.pace.patience();
        let wait = self.wait.get_or_insert_with(|| Wait {
            since: Instant::now(),
            alarm: Box::pin(tokio::time::sleep(patience)),
        });
        wait.alarm.as_mut().poll(context)
    }
}

/// How long the peer may still be waited for. Each byte gains the time that it takes at the least
/// rate, but nobody saves up for a long pause by being fast at first.
struct Pace {
    silence_max: Duration,
    rate_min: u64,
    left_max: Duration,
    left: Duration,
}

impl Pace {
    fn new(limits: &Limits) -> Self {
        Self {
            silence_max: limits.silence_max,
            rate_min: limits.body_rate_min.max(1),
            left_max: limits.body_head_start,
            left: limits.body_head_start,
        }
    }

    /// The longest that the next wait may be.
    fn patience(&self) -> Duration {
        self.silence_max.min(self.left)
    }

    fn went_on(&mut self, waited: Duration, bytes: u64) {
        let micros = bytes.saturating_mul(1_000_000) / self.rate_min;
        let left = self.left.saturating_sub(waited);
        self.left = left
            .saturating_add(Duration::from_micros(micros))
            .min(self.left_max);
    }
}

impl<B> HttpBody for Paced<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        if this.is_over {
            return Poll::Ready(None);
        }
        match Pin::new(&mut this.body).poll_frame(context) {
            Poll::Ready(frame) => {
                let data = frame.as_ref().and_then(|frame| frame.as_ref().ok());
                let bytes = data.and_then(Frame::data_ref).map_or(0, Bytes::len);
                this.patience.went_on(bytes);
                Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
            }
            Poll::Pending => {
                ready!(this.patience.poll_over(context));
                this.is_over = true;
                Poll::Ready(Some(Err(Stalled.into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serving::{BODY_HEAD_START, SILENCE_MAX};

    /// How many bytes come until the sender is given up; `bytes` each time, after so long.
    fn sent(bytes: u64, every: Duration, bytes_max: u64) -> u64 {
        let (mut pace, mut sent) = (Pace::new(&Limits::default()), 0);
        while sent < bytes_max && every <= pace.patience() {
            pace.went_on(every, bytes);
            sent += bytes;
        }
        sent
    }

    #[test]
    fn a_slow_and_honest_line_gets_its_upload_through() {
        let archive = 100 * 1024 * 1024;
        let second = Duration::from_secs(1);
        assert_eq!(sent(2 * 1024, second, archive), archive);
        let hiccups = Duration::from_secs(25);
        assert_eq!(sent(64 * 1024, hiccups, archive), archive);
    }

    #[test]
    fn a_drip_does_not_last() {
        for every in [1, 5, 29] {
            let sent = sent(1, Duration::from_secs(every), u64::MAX);
            assert!(sent <= BODY_HEAD_START.as_secs() / every, "{sent} bytes");
        }
        let too_long = SILENCE_MAX + Duration::from_secs(1);
        assert_eq!(sent(1024 * 1024, too_long, u64::MAX), 0);
    }

    #[test]
    fn nobody_saves_up_for_a_drip() {
        let mut pace = Pace::new(&Limits::default());
        pace.went_on(Duration::from_secs(1), 100 * 1024 * 1024);
        assert_eq!(pace.left, BODY_HEAD_START);
    }

    #[test]
    fn a_stall_is_found_behind_what_it_became() {
        let body = axum::Error::new(Stalled);
        let error = io::Error::other(io::Error::other(body));
        assert!(Stalled::is_behind(&error));
        assert!(!Stalled::is_behind(&io::Error::other("broken")));
    }
}
