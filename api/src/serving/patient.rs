//! A connection that does not wait for ever until its peer takes the next part of an answer.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::Limits;
use super::pace::Patience;
use super::places::Seat;

/// A connection whose writes fail once the peer takes nothing for a time, or all too little: one byte
/// now and then would hold it as well as none.
pub(super) struct Patient {
    stream: TcpStream,
    patience: Patience,
    seat: Arc<Seat>,
}

impl Patient {
    pub(super) fn new(stream: TcpStream, limits: &Limits, seat: Arc<Seat>) -> Self {
        Self {
            stream,
            patience: Patience::new(limits),
            seat,
        }
    }

    pub(super) fn into_inner(self) -> TcpStream {
        self.stream
    }

    /// Lets a write's outcome through, unless it has been pending for too long.
    fn within_patience(
        &mut self,
        context: &mut Context<'_>,
        polled: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        self.seat.owes(polled.is_pending());
        if let Poll::Ready(written) = polled {
            self.patience
                .went_on(written.as_ref().copied().unwrap_or(0));
            return Poll::Ready(written);
        }
        let message = "the peer does not take its answer";
        self.patience
            .poll_over(context)
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
        let this = self.get_mut();
        // Asked for after everything was written.
        this.seat.wrote_all();
        Pin::new(&mut this.stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
