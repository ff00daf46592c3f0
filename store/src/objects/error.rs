//! What can go wrong with an object. Nothing here tells key material or content.

use super::KeyError;

/// Why an object could not be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// More bytes arrived than the object may have; nothing was kept.
    #[error("the object is larger than {bytes_max} bytes")]
    TooLarge {
        /// The most bytes it may have.
        bytes_max: u64,
    },
    /// The organization has no such object of this kind.
    #[error("there is no such object")]
    NotFound,
    /// What is stored is not what was written: cut, extended, changed or moved.
    #[error("the object is not what was written: {0}")]
    Corrupt(Corruption),
    /// The place where objects are kept failed.
    #[error("the object storage failed")]
    Storage(#[from] object_store::Error),
    /// Whoever sends the bytes stopped before the end.
    #[error("the bytes of the object could not be read to the end")]
    Source(#[source] std::io::Error),
    /// A file on this machine could not be written.
    #[error("the object could not be written to a file")]
    File(#[source] std::io::Error),
    /// The key that is needed is missing or wrong.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// How a stored object differs from what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Corruption {
    /// The stored length is not the one that follows from the declared length.
    #[error("its stored length is wrong")]
    Length,
    /// The header is not one that this release writes.
    #[error("its header is unknown")]
    Header,
    /// A frame does not authenticate in its place.
    #[error("a frame does not authenticate")]
    Frame,
    /// The content does not have the recorded digest.
    #[error("its digest is wrong")]
    Digest,
}
