//! Checking a chain, entry after entry, in the room of one.

use std::io::{self, BufRead, Read as _};

use sha2::{Digest as _, Sha256};
use stackship_domain::{Sha256Digest, Timestamp};

use super::heads::{HeadLog, SignedHead};
use super::line::{EntryLine, ExportHead, HEAD_PREFIX, HeadLine, LINE_BYTES_MAX};
use super::{CHAIN_START, CHAIN_VERSION, Linker, strict};

/// What is wrong with an audit, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A line is none of ours.
    #[error("line {line} cannot be read: {cause}")]
    Unreadable {
        /// Which line.
        line: u64,
        /// Why.
        cause: String,
    },
    /// An entry of somebody else.
    #[error("entry {number} belongs to {found}, the ones before belong to {organization}")]
    Foreign {
        /// Which entry.
        number: i64,
        /// Whose it says it is.
        found: String,
        /// Whose it should be.
        organization: String,
    },
    /// A jump forward.
    #[error("entry {found} follows entry {after}: what stood between them was removed or moved")]
    Missing {
        /// The last entry in its place.
        after: i64,
        /// The entry that follows it.
        found: i64,
    },
    /// A step back.
    #[error("entry {found} follows entry {after}: it was added, repeated or moved")]
    OutOfPlace {
        /// The last entry in its place.
        after: i64,
        /// The entry that follows it.
        found: i64,
    },
    /// An entry that follows another one than it says.
    #[error(
        "entry {number} is not chained to the entry before it: one of the two was changed or added"
    )]
    NotChained {
        /// Which entry.
        number: i64,
    },
    /// An entry whose hash is another one.
    #[error("entry {number} is not what was hashed: it was changed or added")]
    Changed {
        /// Which entry.
        number: i64,
    },
    /// An entry whose event is gone.
    #[error("the event of entry {number} is not in the log: it was removed")]
    EventMissing {
        /// Which entry.
        number: i64,
    },
    /// An event whose entry is gone, or that was put in behind the audit.
    #[error(
        "event {sequence} of {aggregate} has no entry: the entry was removed, or the event was added"
    )]
    EntryMissing {
        /// Whose event.
        aggregate: String,
        /// Which one.
        sequence: i64,
    },
    /// No head at the end.
    #[error("the export ends after entry {number} without its head: the end was cut off")]
    Cut {
        /// The last entry.
        number: i64,
    },
    /// A head of another chain.
    #[error("the head names entry {said}, and the last entry is {number}: {what}")]
    HeadDiffers {
        /// The last entry by the head.
        said: i64,
        /// The last entry that is there.
        number: i64,
        /// What that means.
        what: &'static str,
    },
    /// More after the head.
    #[error("line {line} follows the head, which is the last line: it was added")]
    AfterHead {
        /// Which line.
        line: u64,
    },
    /// Entries that mean the same in other bytes.
    #[error(
        "every entry means what was hashed, but the bytes of the export are not those that were exported"
    )]
    Bytes,
    /// A signed head beyond the end.
    #[error(
        "a head signed at {time} knows entry {known}, and the chain ends with entry {number}: \
         the end was cut off, or this is older than the head"
    )]
    Behind {
        /// The last entry.
        number: i64,
        /// The entry that was signed.
        known: i64,
        /// When it was signed.
        time: Timestamp,
    },
    /// A signed head of another chain.
    #[error(
        "a head signed at {time} has another hash for entry {number}: this entry or one before was replaced"
    )]
    Rewritten {
        /// The entry that was signed.
        number: i64,
        /// When it was signed.
        time: Timestamp,
    },
    /// A head that this key has not signed.
    #[error("heads, line {line}: not signed with this key")]
    HeadUnsigned {
        /// Which line.
        line: u64,
    },
    /// A head that follows another one than it says.
    #[error(
        "heads, line {line}: does not follow the head before: heads were removed, added or moved"
    )]
    HeadsBroken {
        /// Which line.
        line: u64,
    },
}

/// Why an audit did not pass.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// It was tampered with.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// It could not be read.
    #[error("it could not be read to its end")]
    Read(#[from] io::Error),
}

/// What passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Whose audit.
    pub organization: String,
    /// How many entries; the number of the last one.
    pub entries: i64,
    /// The last one's hash.
    pub hash: Sha256Digest,
    /// How many signed heads were met.
    pub heads: u64,
}

/// Follows one organization's chain.
#[derive(Debug)]
pub struct ChainCheck {
    organization: Option<String>,
    number: i64,
    hash: Sha256Digest,
    linker: Linker,
}

impl Default for ChainCheck {
    fn default() -> Self {
        Self {
            organization: None,
            number: 0,
            hash: CHAIN_START,
            linker: Linker::default(),
        }
    }
}

impl ChainCheck {
    /// The last entry's number.
    pub const fn number(&self) -> i64 {
        self.number
    }

    /// The last entry's hash.
    pub const fn hash(&self) -> Sha256Digest {
        self.hash
    }

    /// Takes the entry that stands next.
    pub fn take(&mut self, entry: &EntryLine<'_>) -> Result<(), Fault> {
        let number = entry.position;
        match &self.organization {
            None => self.organization = Some(entry.organization.clone().into_owned()),
            Some(organization) if *organization == entry.organization => {}
            Some(organization) => {
                return Err(Fault::Foreign {
                    number,
                    found: entry.organization.clone().into_owned(),
                    organization: organization.clone(),
                });
            }
        }
        let (after, found) = (self.number, number);
        if found > after + 1 {
            return Err(Fault::Missing { after, found });
        }
        if found <= after {
            return Err(Fault::OutOfPlace { after, found });
        }
        if entry.previous_hash != self.hash {
            return Err(Fault::NotChained { number });
        }
        let payload = strict::value(entry.payload.get()).map_err(|_| Fault::Changed { number })?;
        let hash = self
            .linker
            .link(self.hash, number, &entry.columns(), &payload);
        if hash != entry.hash {
            return Err(Fault::Changed { number });
        }
        (self.number, self.hash) = (number, hash);
        Ok(())
    }
}

/// The signed heads of one organization, met one after the other while its chain is followed.
pub(super) struct Witness<'a, R> {
    log: Option<&'a mut HeadLog<R>>,
    next: Option<SignedHead>,
    met: u64,
}

impl<'a, R: BufRead> Witness<'a, R> {
    pub(super) const fn new(log: Option<&'a mut HeadLog<R>>) -> Self {
        Self {
            log,
            next: None,
            met: 0,
        }
    }

    /// How many heads were met.
    pub(super) const fn met(&self) -> u64 {
        self.met
    }

    /// Looks for the organization's next head.
    fn advance(&mut self, organization: &str) -> Result<(), VerifyError> {
        self.next = None;
        while let Some(log) = self.log.as_deref_mut() {
            match log.next_head()? {
                None => self.log = None,
                Some(head) if head.organization == organization => {
                    self.next = Some(head);
                    break;
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Compares the head of this entry, if one was signed.
    pub(super) fn meet(
        &mut self,
        organization: &str,
        chain: &ChainCheck,
    ) -> Result<(), VerifyError> {
        if self.next.is_none() && self.log.is_some() {
            self.advance(organization)?;
        }
        // Heads are signed in the order of the chain; one that is not would be behind for ever.
        while let Some(head) = self
            .next
            .as_ref()
            .filter(|head| head.position <= chain.number)
        {
            if head.position < chain.number || head.hash != chain.hash {
                let (number, time) = (head.position, head.time);
                return Err(Fault::Rewritten { number, time }.into());
            }
            self.met += 1;
            self.advance(organization)?;
        }
        Ok(())
    }

    /// No head may know more than the chain.
    pub(super) fn finish(
        &mut self,
        organization: &str,
        chain: &ChainCheck,
    ) -> Result<(), VerifyError> {
        self.meet(organization, chain)?;
        let mut furthest = None;
        while let Some(head) = self.next.take() {
            furthest = Some((head.position, head.time));
            self.advance(organization)?;
        }
        match furthest {
            None => Ok(()),
            Some((known, time)) => Err(Fault::Behind {
                number: chain.number,
                known,
                time,
            }
            .into()),
        }
    }
}

/// Checks an export, from its first byte to its head; with heads also that nothing is missing at its
/// end and that it was not written anew.
pub fn verify_export<E: BufRead, R: BufRead>(
    mut export: E,
    heads: Option<&mut HeadLog<R>>,
) -> Result<Verified, VerifyError> {
    let (mut chain, mut bytes, mut line) = (ChainCheck::default(), Sha256::new(), Vec::new());
    let mut witness = Witness::new(heads);
    let mut line_number = 0;
    let head = loop {
        if !read_line(&mut export, &mut line)? {
            return Err(Fault::Cut {
                number: chain.number,
            }
            .into());
        }
        line_number += 1;
        let unreadable = |cause: serde_json::Error| Fault::Unreadable {
            line: line_number,
            cause: cause.to_string(),
        };
        if line.starts_with(HEAD_PREFIX) {
            let read: HeadLine = serde_json::from_slice(&line).map_err(unreadable)?;
            break read.head;
        }
        let entry: EntryLine<'_> = serde_json::from_slice(&line).map_err(unreadable)?;
        chain.take(&entry)?;
        witness.meet(&entry.organization, &chain)?;
        bytes.update(&line);
    };
    let head_line = std::mem::take(&mut line);
    // Whatever wrote the export to a file may have ended it with an empty line.
    while read_line(&mut export, &mut line)? {
        line_number += 1;
        if !line.trim_ascii().is_empty() {
            return Err(Fault::AfterHead { line: line_number }.into());
        }
    }
    ends_there(&head, &chain)?;
    witness.finish(&head.organization, &chain)?;
    if HeadLine::sealed(head.clone(), bytes).map_err(io::Error::from)? != head_line {
        return Err(Fault::Bytes.into());
    }
    Ok(Verified {
        organization: head.organization,
        entries: chain.number,
        hash: chain.hash,
        heads: witness.met(),
    })
}

/// The head must be that of the chain.
fn ends_there(head: &ExportHead, chain: &ChainCheck) -> Result<(), Fault> {
    let differs = |what| Fault::HeadDiffers {
        said: head.position,
        number: chain.number,
        what,
    };
    if head.chain != CHAIN_VERSION {
        return Err(differs("the head is of another layout"));
    }
    let foreign = |organization: &String| *organization != head.organization;
    if chain.organization.as_ref().is_some_and(foreign) {
        return Err(differs("the head is another organization's"));
    }
    match head.position.cmp(&chain.number) {
        std::cmp::Ordering::Less => Err(differs("entries were added")),
        std::cmp::Ordering::Greater => Err(differs("the end was cut off")),
        std::cmp::Ordering::Equal if head.hash == chain.hash => Ok(()),
        std::cmp::Ordering::Equal => Err(differs("its hash is another one")),
    }
}

/// Reads one whole line; `false` at the end.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let read = reader.take(LINE_BYTES_MAX).read_until(b'\n', line)?;
    Ok(read > 0)
}
