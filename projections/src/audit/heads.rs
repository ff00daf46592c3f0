//! Signed heads: where a chain ended at some time, said with a key that the database does not have.
//! Each covers the signature before, so that none can be taken out of the middle of its file.

use std::io::{self, BufRead, Read as _};

use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use stackship_domain::{Sha256Digest, Timestamp};

use super::verify::{Fault, VerifyError};

const SIGNED: &[u8] = b"stackship.audit-head/v1";
const SIGNATURE_BYTES: usize = 64;
const PUBLIC_KEY_BYTES: usize = 32;

/// The longest line of a file of heads; what is longer is none.
pub const HEAD_LINE_BYTES_MAX: u64 = 1024;

/// A signature in hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Signature([u8; SIGNATURE_BYTES]);

impl Signature {
    /// What the first head of a file follows.
    const NONE: Self = Self([0; SIGNATURE_BYTES]);
}

impl Serialize for Signature {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(self.0))
    }
}

impl<'de> Deserialize<'de> for Signature {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut bytes = [0; SIGNATURE_BYTES];
        hex::decode_to_slice(&text, &mut bytes).map_err(serde::de::Error::custom)?;
        Ok(Self(bytes))
    }
}

/// Where an organization's chain ended, signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedHead {
    /// The tenant.
    pub organization: String,
    /// The last entry's position.
    pub position: i64,
    /// The last entry's hash.
    pub hash: Sha256Digest,
    /// When it was signed.
    pub time: Timestamp,
    /// The signature of the head before in the same file, whosever it is; zeros before the first.
    previous: Signature,
    /// Over all of the above.
    signature: Signature,
}

impl SignedHead {
    /// Its line, with the end of the line.
    pub fn line(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self).map(|line| line + "\n")
    }

    fn message(&self) -> Vec<u8> {
        let mut bytes = SIGNED.to_vec();
        bytes.extend(self.previous.0);
        bytes.extend(self.hash.as_bytes());
        bytes.extend(self.position.to_be_bytes());
        bytes.extend(self.time.as_microsecond().to_be_bytes());
        // The only part of changing length comes last.
        bytes.extend(self.organization.as_bytes());
        bytes
    }
}

/// Signs heads.
pub struct HeadKey(Ed25519KeyPair);

impl HeadKey {
    /// The key that belongs to these secret bytes.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed);
        Self(pair.expect("any 32 bytes are a seed of Ed25519"))
    }

    /// What others check its signatures with.
    pub fn public(&self) -> HeadPublicKey {
        let bytes = self.0.public_key().as_ref().try_into();
        HeadPublicKey(bytes.expect("a public key of Ed25519 has 32 bytes"))
    }

    /// Signs where a chain ends; `last` is the head that was signed before in the same file.
    pub fn sign(
        &self,
        (organization, position, hash): (String, i64, Sha256Digest),
        time: Timestamp,
        last: Option<&SignedHead>,
    ) -> SignedHead {
        let mut head = SignedHead {
            organization,
            position,
            hash,
            time,
            previous: last.map_or(Signature::NONE, |head| head.signature),
            signature: Signature::NONE,
        };
        let signature = self.0.sign(&head.message());
        let bytes = signature.as_ref().try_into();
        head.signature = Signature(bytes.expect("a signature of Ed25519 has 64 bytes"));
        head
    }
}

/// What signatures are checked with; 64 hexadecimal digits as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadPublicKey([u8; PUBLIC_KEY_BYTES]);

/// A text that is no public key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a public key is 64 hexadecimal digits, as `stackship audit public-key` prints it")]
pub struct InvalidPublicKey;

impl std::fmt::Display for HeadPublicKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&hex::encode(self.0))
    }
}

impl std::str::FromStr for HeadPublicKey {
    type Err = InvalidPublicKey;

    fn from_str(text: &str) -> Result<Self, InvalidPublicKey> {
        let mut bytes = [0; PUBLIC_KEY_BYTES];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| InvalidPublicKey)?;
        Ok(Self(bytes))
    }
}

impl HeadPublicKey {
    fn verifies(&self, head: &SignedHead) -> bool {
        UnparsedPublicKey::new(&ED25519, self.0)
            .verify(&head.message(), &head.signature.0)
            .is_ok()
    }
}

/// Reads a file of heads, line by line, and checks that each is signed and follows the one before.
#[derive(Debug)]
pub struct HeadLog<R> {
    lines: R,
    /// `None` when every signature was checked before.
    key: Option<HeadPublicKey>,
    line: u64,
    torn: u64,
    last: Signature,
}

impl<R: BufRead> HeadLog<R> {
    /// Reads heads that were signed with this key.
    pub const fn new(lines: R, key: HeadPublicKey) -> Self {
        Self {
            lines,
            key: Some(key),
            line: 0,
            torn: 0,
            last: Signature::NONE,
        }
    }

    /// Reads heads whose signatures another reading of the same file has checked: looking for those of
    /// many organizations, one after the other, then costs the signatures once.
    pub const fn checked_before(lines: R) -> Self {
        Self {
            lines,
            key: None,
            line: 0,
            torn: 0,
            last: Signature::NONE,
        }
    }

    /// How many lines were no heads: what a crash cut off while it was written.
    pub const fn torn(&self) -> u64 {
        self.torn
    }

    /// The next head of whatever organization.
    pub fn next_head(&mut self) -> Result<Option<SignedHead>, VerifyError> {
        let mut line = Vec::new();
        loop {
            line.clear();
            if !self.read_line(&mut line)? {
                return Ok(None);
            }
            self.line += 1;
            let line_number = self.line;
            // A head that was cut off never counted: the next one follows the last whole one, and
            // one that was made unreadable later is missed there.
            let Ok(head) = serde_json::from_slice::<SignedHead>(&line) else {
                self.torn += 1;
                continue;
            };
            if self.key.is_some_and(|key| !key.verifies(&head)) {
                return Err(Fault::HeadUnsigned { line: line_number }.into());
            }
            if head.previous != self.last {
                return Err(Fault::HeadsBroken { line: line_number }.into());
            }
            self.last = head.signature;
            return Ok(Some(head));
        }
    }

    /// Reads one line, or as much of it as a head could have; `false` at the end.
    fn read_line(&mut self, line: &mut Vec<u8>) -> io::Result<bool> {
        let read = (&mut self.lines)
            .take(HEAD_LINE_BYTES_MAX)
            .read_until(b'\n', line)?;
        Ok(read > 0)
    }
}
