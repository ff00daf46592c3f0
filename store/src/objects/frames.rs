//! The stored form of an object: a header, then frames of the STREAM construction.
//!
//! Each frame's tag covers the header and the object's place (organization, kind, storage key), so
//! an object that was moved between tenants or kinds does not open. Pure: no I/O here.

use aead_stream::{DecryptorBE32, EncryptorBE32};
use aes_gcm::{Aes256Gcm, KeyInit as _};
use rand::Rng as _;
use sha2::{Digest as _, Sha256};
use stackship_domain::ids::OrganizationId;
use zeroize::Zeroizing;

use super::{Corruption, ObjectError, ObjectKind};

/// Plain bytes of a full frame.
pub(super) const FRAME_BYTES: usize = 64 * 1024;
/// What authentication adds to a frame.
pub(super) const TAG_BYTES: usize = 16;
/// Bytes of a header.
pub(super) const HEADER_BYTES: usize = 17;

const MAGIC: [u8; 4] = *b"SSOB";
const VERSION: u8 = 1;
/// AES-256-GCM in STREAM with a 32-bit big-endian counter.
const ALGORITHM: u8 = 1;
const NONCE_PREFIX_BYTES: usize = 7;

/// The key of one object; used for no other.
pub(super) type DataKey = Zeroizing<[u8; 32]>;

/// A fresh data key.
pub(super) fn fresh_data_key() -> DataKey {
    let mut key = Zeroizing::new([0; 32]);
    rand::rng().fill(key.as_mut_slice());
    key
}

/// Where an object belongs; part of what every frame authenticates.
pub(super) struct Place<'a> {
    pub organization: OrganizationId,
    pub kind: ObjectKind,
    pub storage_key: &'a str,
}

impl Place<'_> {
    fn associated_data(&self, header: &[u8; HEADER_BYTES]) -> [u8; 32] {
        let mut digest = Sha256::new();
        let organization = self.organization.to_string();
        // Each part with its length, so that no two places digest the same bytes.
        for part in [
            header.as_slice(),
            organization.as_bytes(),
            self.kind.as_str().as_bytes(),
            self.storage_key.as_bytes(),
        ] {
            digest.update(
                u64::try_from(part.len())
                    .expect("a length fits 64 bits")
                    .to_be_bytes(),
            );
            digest.update(part);
        }
        digest.finalize().into()
    }
}

/// How many bytes an object of `plain` bytes has when stored; `None` when no object can be so large.
pub(super) fn stored_bytes(plain: u64) -> Option<u64> {
    let frames = plain.div_ceil(FRAME_BYTES as u64).max(1);
    // The frame counter has 32 bits.
    u32::try_from(frames).ok()?;
    plain
        .checked_add(frames * TAG_BYTES as u64)?
        .checked_add(HEADER_BYTES as u64)
}

/// A header with a fresh nonce prefix.
pub(super) fn fresh_header() -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&MAGIC);
    header[4] = VERSION;
    header[5] = ALGORITHM;
    header[6..10].copy_from_slice(&frame_bytes_field());
    rand::rng().fill(&mut header[10..]);
    header
}

fn frame_bytes_field() -> [u8; 4] {
    u32::try_from(FRAME_BYTES)
        .expect("64 KiB fit 32 bits")
        .to_be_bytes()
}

fn nonce_prefix(header: &[u8; HEADER_BYTES]) -> [u8; NONCE_PREFIX_BYTES] {
    header[10..]
        .try_into()
        .expect("a header ends with the nonce prefix")
}

fn cipher(key: &DataKey) -> Aes256Gcm {
    Aes256Gcm::new((&**key).into())
}

/// Seals frames in order.
pub(super) struct FrameSealer {
    stream: EncryptorBE32<Aes256Gcm>,
    associated_data: [u8; 32],
}

impl FrameSealer {
    pub(super) fn new(key: &DataKey, header: &[u8; HEADER_BYTES], place: &Place<'_>) -> Self {
        Self {
            stream: EncryptorBE32::from_aead(cipher(key), &nonce_prefix(header).into()),
            associated_data: place.associated_data(header),
        }
    }

    /// Seals a frame that others follow, in place. Fails only when the counter is used up.
    pub(super) fn next(&mut self, frame: &mut Vec<u8>) -> Result<(), ObjectError> {
        self.stream
            .encrypt_next_in_place(&self.associated_data, frame)
            .map_err(|_| ObjectError::Corrupt(Corruption::Length))
    }

    /// Seals the last frame, in place.
    pub(super) fn last(self, frame: &mut Vec<u8>) -> Result<(), ObjectError> {
        self.stream
            .encrypt_last_in_place(&self.associated_data, frame)
            .map_err(|_| ObjectError::Corrupt(Corruption::Length))
    }
}

/// Opens frames in order.
pub(super) struct FrameOpener {
    stream: DecryptorBE32<Aes256Gcm>,
    associated_data: [u8; 32],
}

impl FrameOpener {
    /// An opener for the object that begins with `header`.
    pub(super) fn new(
        key: &DataKey,
        header: &[u8],
        place: &Place<'_>,
    ) -> Result<Self, ObjectError> {
        let unknown = ObjectError::Corrupt(Corruption::Header);
        let Ok(header) = <&[u8; HEADER_BYTES]>::try_from(header) else {
            return Err(unknown);
        };
        let known = header[..4] == MAGIC && header[4] == VERSION && header[5] == ALGORITHM;
        if !known || header[6..10] != frame_bytes_field() {
            return Err(unknown);
        }
        Ok(Self {
            stream: DecryptorBE32::from_aead(cipher(key), &nonce_prefix(header).into()),
            associated_data: place.associated_data(header),
        })
    }

    /// Opens a frame that others follow, in place.
    pub(super) fn next(&mut self, frame: &mut Vec<u8>) -> Result<(), ObjectError> {
        self.stream
            .decrypt_next_in_place(&self.associated_data, frame)
            .map_err(|_| ObjectError::Corrupt(Corruption::Frame))
    }

    /// Opens the last frame, in place.
    pub(super) fn last(self, frame: &mut Vec<u8>) -> Result<(), ObjectError> {
        self.stream
            .decrypt_last_in_place(&self.associated_data, frame)
            .map_err(|_| ObjectError::Corrupt(Corruption::Frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_length_follows_from_the_plain_one() {
        assert_eq!(stored_bytes(0), Some(17 + 16));
        assert_eq!(stored_bytes(65_536), Some(17 + 65_536 + 16));
        assert_eq!(stored_bytes(65_537), Some(17 + 65_537 + 32));
        assert_eq!(stored_bytes(u64::MAX), None);
    }

    #[test]
    fn parts_of_a_place_cannot_run_into_each_other() {
        let header = [0; HEADER_BYTES];
        let organization = stackship_domain::run::samples::id(1);
        let place = |kind, storage_key| {
            Place {
                organization,
                kind,
                storage_key,
            }
            .associated_data(&header)
        };
        assert_ne!(
            place(ObjectKind::Plan, "_json"),
            place(ObjectKind::PlanJson, "")
        );
    }
}
