//! Handing descriptors over a Unix socket.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use crate::spec::INPUTS_MAX;

/// Sends a count byte and that many descriptors.
pub(crate) fn send_fds(socket: impl AsFd, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let count = u8::try_from(fds.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(INPUTS_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let sent = loop {
        match sendmsg(
            &socket,
            &[IoSlice::new(&[count])],
            &mut ancillary,
            SendFlags::NOSIGNAL,
        ) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other?,
        }
    };
    if sent == 1 {
        Ok(())
    } else {
        Err(io::ErrorKind::WriteZero.into())
    }
}

/// Receives exactly `expected` descriptors, close-on-exec.
pub(crate) fn receive_fds(socket: impl AsFd, expected: usize) -> io::Result<Vec<OwnedFd>> {
    let mut count = [0_u8];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(INPUTS_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let message = loop {
        let mut slices = [IoSliceMut::new(&mut count)];
        match recvmsg(
            &socket,
            &mut slices,
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        ) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other?,
        }
    };
    if message.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut fds = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            fds.extend(received);
        }
    }
    if fds.len() == expected && usize::from(count[0]) == expected {
        Ok(fds)
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "unexpected number of descriptors",
        ))
    }
}
