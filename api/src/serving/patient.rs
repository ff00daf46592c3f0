//! A connection that does not wait for ever until its peer takes the next part of an answer.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use super::places::Seat;

/// A connection whose writes fail once the peer has taken nothing for a time.
pub(super) struct Patient {
    stream: TcpStream,
    silence_max: Duration,
    /// Runs while the peer keeps us waiting.
    alarm: Option<Pin<Box<Sleep>>>,
    seat: Arc<Seat>,
}

impl Patient {
    pub(super) const fn new(stream: TcpStream, silence_max: Duration, seat: Arc<Seat>) -> Self {
        Self {
            stream,
            silence_max,
            alarm: None,
            seat,
        }
    }

    pub(super) fn into_inner(self) -> TcpStream {
        self.stream
    }

    /// Lets a write's outcome through, unless it has been pending for too long.
    fn within_patience<T>(
        &mut self,
        context: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        self.seat.owes(polled.is_pending());
        if polled.is_ready() {
            self.alarm = None;
            return polled;
        }
        let silence_max = self.silence_max;
        let alarm = self
            .alarm
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(silence_max)));
        let message = "the peer does not take its answer";
        alarm
            .as_mut()
            .poll(context)
            .map(|()| Err(io::Error::new(io::ErrorKind::TimedOut, message)))
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.within_patience(context, polled)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_write_vectored(context, parts);
        this.within_patience(context, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    // A socket has nothing to flush, and says so at once: it must not end the wait of a write.
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
