//! Encrypted objects: configurations, snapshots, plans, states.
//!
//! An object is written once, under a key of its own, and never changed: first its bytes, then its
//! row. Bytes without a row are nobody's and are swept after a day. Bytes stream in both directions
//! in constant memory, and nothing leaves that has not been authenticated.

mod error;
mod frames;
mod key_file;
mod keys;
mod read;
mod sweep;
mod write;

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use sqlx::PgPool;
use stackship_domain::ids::{ObjectId, OrganizationId, WorkspaceId};
use stackship_domain::{Sha256Digest, Timestamp};

pub use error::{Corruption, ObjectError};
pub use key_file::secret_load_or_create;
pub use keys::{KeyError, KeyRing, Sealed};
pub use read::ObjectReader;
pub use sweep::ORPHAN_AGE;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal),+ $(,)?) => {
        /// What an object holds.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ObjectKind { $($(#[$doc])* $name),+ }

        impl ObjectKind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The name in records and storage keys.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text),+ }
            }

            fn from_stored(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|kind| kind.as_str() == text)
            }
        }
    };
}

kinds! {
    /// A packed configuration.
    Configuration = "configuration",
    /// The pinned inputs of a run.
    InputSnapshot = "input_snapshot",
    /// A plan file.
    Plan = "plan",
    /// A plan as JSON.
    PlanJson = "plan_json",
    /// What of a plan people may see.
    PlanDiff = "plan_diff",
    /// What of a plan policies see.
    PolicyInput = "policy_input",
    /// A dependency lock file.
    LockFile = "lock_file",
    /// A policy bundle.
    PolicyBundle = "policy_bundle",
    /// A policy result.
    PolicyResult = "policy_result",
    /// An OpenTofu state.
    State = "state",
    /// A state as JSON.
    StateJson = "state_json",
    /// The outputs of a state.
    StateOutputs = "state_outputs",
    /// What OpenTofu left behind when it could not write its state.
    ErroredState = "errored_state",
}

/// An object to be written.
#[derive(Debug, Clone, Copy)]
pub struct NewObject {
    /// The tenant.
    pub organization: OrganizationId,
    /// The workspace it belongs to, if to one.
    pub workspace: Option<WorkspaceId>,
    /// What it holds.
    pub kind: ObjectKind,
    /// The most bytes it may have.
    pub bytes_max: u64,
}

/// An object that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredObject {
    /// Its id.
    pub id: ObjectId,
    /// How many bytes it has.
    pub bytes: u64,
    /// SHA-256 of its exact bytes.
    pub sha256: Sha256Digest,
}

/// What is known about an object without opening it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptor {
    /// Its id.
    pub id: ObjectId,
    /// The workspace it belongs to, if to one.
    pub workspace: Option<WorkspaceId>,
    /// What it holds.
    pub kind: ObjectKind,
    /// How many bytes it has.
    pub bytes: u64,
    /// SHA-256 of its exact bytes.
    pub sha256: Sha256Digest,
    /// When it was written.
    pub created_at: Timestamp,
}

/// The encrypted objects of this installation. Cheap to clone.
#[derive(Clone)]
pub struct Objects {
    files: Arc<dyn ObjectStore>,
    root: Arc<Path>,
    keys: KeyRing,
    pool: PgPool,
}

impl std::fmt::Debug for Objects {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Objects")
            .field("root", &self.root)
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

impl Objects {
    /// Objects in files below `root`, which is made when it is missing.
    pub fn open(root: &Path, keys: KeyRing, pool: PgPool) -> Result<Self, ObjectError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(root)
            .map_err(ObjectError::File)?;
        let root: PathBuf = root.canonicalize().map_err(ObjectError::File)?;
        let files = LocalFileSystem::new_with_prefix(&root)?.with_fsync(true);
        Ok(Self {
            files: Arc::new(files),
            root: root.into(),
            keys,
            pool,
        })
    }

    /// The keys, for sealing small values and deriving other keys.
    pub const fn keys(&self) -> &KeyRing {
        &self.keys
    }
}

/// Where an object's bytes are kept. Derived from a fresh id, so no key is ever written twice.
fn storage_key(organization: OrganizationId, kind: ObjectKind, id: ObjectId) -> String {
    format!("{organization}/{}/{id}", kind.as_str())
}
