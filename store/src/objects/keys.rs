//! Key-encryption keys: they wrap the data key of each object and seal small values.
//!
//! A key never meets two algorithms: for each purpose a subkey is derived from it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aes_gcm::aead::{Aead as _, Payload};
use aes_gcm::{Aes256Gcm, KeyInit as _};
use hmac::{Hmac, Mac as _};
use rand::Rng as _;
use sha2::{Digest as _, Sha256};
use stackship_domain::ids::ObjectId;
use zeroize::Zeroizing;

use super::frames::DataKey;
use super::key_file;
use crate::StoreError;

const NONCE_BYTES: usize = 12;

/// Why a key could not be had, or did not open a value.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The key file could not be read or made.
    #[error("the key file {path} could not be read or made")]
    File {
        /// Where it is.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Others can read the key file.
    #[error("the key file {path} has mode {mode:04o}; others must not read it: run `chmod 600 {path}`", path = .path.display())]
    Exposed {
        /// Where it is.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The key file does not hold keys.
    #[error("the key file {path} must hold one key of 64 hexadecimal digits a line, the current one first", path = .path.display())]
    Malformed {
        /// Where it is.
        path: PathBuf,
    },
    /// No key with this id is in the key file.
    #[error("the key `{key_id}` is not in the key file")]
    Unknown {
        /// The id of the key.
        key_id: String,
    },
    /// The value was changed, moved, or sealed under another key.
    #[error("a sealed value does not authenticate")]
    Unauthentic,
}

impl From<KeyError> for StoreError {
    fn from(error: KeyError) -> Self {
        Self::Object(error.into())
    }
}

/// A sealed value and the key that opens it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// The id of the key.
    pub key_id: String,
    /// Nonce, encrypted value and tag.
    pub bytes: Vec<u8>,
}

/// The key-encryption keys of this installation. Cheap to clone; wiped when the last clone goes.
#[derive(Clone)]
pub struct KeyRing {
    /// The current key first; older ones only open.
    keys: Arc<[Key]>,
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list()
            .entries(self.keys.iter().map(|key| &key.id))
            .finish()
    }
}

struct Key {
    id: String,
    secret: Zeroizing<[u8; 32]>,
}

impl Key {
    fn new(secret: Zeroizing<[u8; 32]>) -> Self {
        let digest = Sha256::new()
            .chain_update(b"stackship key id\0")
            .chain_update(secret.as_slice())
            .finalize();
        Self {
            id: format!("kek-{}", hex::encode(&digest[..8])),
            secret,
        }
    }

    fn subkey(&self, purpose: &str, label: &str) -> Zeroizing<[u8; 32]> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.secret.as_slice())
            .expect("HMAC takes keys of any length");
        mac.update(b"stackship/v1/");
        mac.update(purpose.as_bytes());
        mac.update(b"/");
        mac.update(label.as_bytes());
        Zeroizing::new(mac.finalize().into_bytes().into())
    }

    fn cipher(&self, purpose: Purpose) -> Aes256Gcm {
        Aes256Gcm::new((&*self.subkey(purpose.as_str(), "")).into())
    }
}

#[derive(Clone, Copy)]
enum Purpose {
    Wrap,
    Seal,
}

impl Purpose {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Wrap => "wrap",
            Self::Seal => "seal",
        }
    }
}

impl KeyRing {
    /// The keys in the file at `path`; a first key is made when there is no file. Losing the file
    /// loses every object and sealed value; a backup of it beside them protects nothing.
    pub fn load_or_create(path: &Path) -> Result<Self, KeyError> {
        key_file::load_or_create(path).map(Self::from_keys)
    }

    /// A ring of these keys, the current one first. There is always one.
    pub(super) fn from_keys(keys: key_file::Keys) -> Self {
        Self {
            keys: std::iter::once(keys.current)
                .chain(keys.older)
                .map(Key::new)
                .collect(),
        }
    }

    fn current(&self) -> &Key {
        self.keys
            .first()
            .expect("a key ring holds at least one key")
    }

    /// Seals a small value for `context`, which names the one place where it may be opened.
    pub fn seal(&self, context: &str, plain: &[u8]) -> Result<Sealed, KeyError> {
        self.encrypt(Purpose::Seal, context, plain)
    }

    /// Opens a value that was sealed for `context`.
    pub fn open(
        &self,
        context: &str,
        key_id: &str,
        bytes: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, KeyError> {
        self.decrypt(Purpose::Seal, context, key_id, bytes)
    }

    /// A key for another use (signed URLs, cursors), the same on every start.
    pub fn derive(&self, label: &str) -> [u8; 32] {
        *self.current().subkey("derive", label)
    }

    pub(super) fn wrap(&self, object: ObjectId, key: &DataKey) -> Result<Sealed, KeyError> {
        self.encrypt(Purpose::Wrap, &object.to_string(), key.as_slice())
    }

    pub(super) fn unwrap(
        &self,
        object: ObjectId,
        key_id: &str,
        bytes: &[u8],
    ) -> Result<DataKey, KeyError> {
        let plain = self.decrypt(Purpose::Wrap, &object.to_string(), key_id, bytes)?;
        let key = <[u8; 32]>::try_from(plain.as_slice()).map_err(|_| KeyError::Unauthentic)?;
        Ok(Zeroizing::new(key))
    }

    fn encrypt(&self, purpose: Purpose, context: &str, plain: &[u8]) -> Result<Sealed, KeyError> {
        let key = self.current();
        let mut nonce = [0; NONCE_BYTES];
        rand::rng().fill(&mut nonce);
        let aad = associated_data(&key.id, context);
        let sealed = key
            .cipher(purpose)
            .encrypt(
                &nonce.into(),
                Payload {
                    msg: plain,
                    aad: &aad,
                },
            )
            .map_err(|_| KeyError::Unauthentic)?;
        Ok(Sealed {
            key_id: key.id.clone(),
            bytes: [nonce.as_slice(), &sealed].concat(),
        })
    }

    fn decrypt(
        &self,
        purpose: Purpose,
        context: &str,
        key_id: &str,
        bytes: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, KeyError> {
        let key = self
            .keys
            .iter()
            .find(|key| key.id == key_id)
            .ok_or_else(|| KeyError::Unknown {
                key_id: key_id.to_owned(),
            })?;
        let (nonce, sealed) = bytes
            .split_first_chunk::<NONCE_BYTES>()
            .ok_or(KeyError::Unauthentic)?;
        let aad = associated_data(&key.id, context);
        key.cipher(purpose)
            .decrypt(
                &(*nonce).into(),
                Payload {
                    msg: sealed,
                    aad: &aad,
                },
            )
            .map(Zeroizing::new)
            .map_err(|_| KeyError::Unauthentic)
    }
}

/// A key id has a fixed length, so it cannot run into the context.
fn associated_data(key_id: &str, context: &str) -> Vec<u8> {
    [key_id.as_bytes(), context.as_bytes()].concat()
}
