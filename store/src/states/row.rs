//! A state version as it is stored.

use sqlx::postgres::PgRow;
use stackship_domain::ids::{ObjectId, OrganizationId, RunId, StateVersionId, UserId, WorkspaceId};
use stackship_domain::{Fence, Sha256Digest, Timestamp};

use crate::StoreError;
use crate::columns::Columns;

pub(super) const COLUMNS: &str = "state_version_id, organization_id, workspace_id, run_id, user_id, \
     restored_state_version_id, fence, serial, lineage, md5, status, \
     object_id, sha256, bytes, created_at, published_at, outputs_object_id";

/// How far a state has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateStatus {
    /// The bytes have not arrived.
    Pending,
    /// The bytes are here; only its run sees them.
    Staged,
    /// The workspace's state, now or once.
    Published,
}

impl StateStatus {
    const ALL: [Self; 3] = [Self::Pending, Self::Staged, Self::Published];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Staged => "staged",
            Self::Published => "published",
        }
    }
}

/// Who made a state version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    /// A run, by its apply.
    Run(RunId),
    /// A person, who rolled back.
    Person {
        /// Who.
        user: UserId,
        /// The version whose content this one has again.
        restores: StateVersionId,
    },
}

impl Author {
    /// The run, when it was one.
    pub const fn run(self) -> Option<RunId> {
        match self {
            Self::Run(run) => Some(run),
            Self::Person { .. } => None,
        }
    }
}

/// A state version, as it is stored.
#[derive(Debug, Clone)]
pub struct StateVersionRow {
    /// Which one.
    pub id: StateVersionId,
    /// The tenant.
    pub organization: OrganizationId,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// Who made it.
    pub author: Author,
    /// The fence under which it was written.
    pub fence: Fence,
    /// Its serial.
    pub serial: i64,
    /// Its lineage.
    pub lineage: String,
    /// MD5 of its bytes, which the protocol of uploads wants; absent when nobody uploaded them.
    pub md5: Option<String>,
    /// How far it has come.
    pub status: StateStatus,
    /// The stored bytes.
    pub object: Option<ObjectId>,
    /// SHA-256 of the bytes.
    pub sha256: Option<Sha256Digest>,
    /// Number of bytes.
    pub bytes: Option<i64>,
    /// When it was begun.
    pub created_at: Timestamp,
    /// When it became the workspace's state.
    pub published_at: Option<Timestamp>,
    /// The stored outputs document.
    pub outputs_object: Option<ObjectId>,
}

pub(super) fn parse(row: &PgRow) -> Result<StateVersionRow, StoreError> {
    let columns = Columns::new(row, "record.state_versions", "state_version_id")?;
    Ok(StateVersionRow {
        id: columns.parsed("state_version_id")?,
        organization: columns.parsed("organization_id")?,
        workspace: columns.parsed("workspace_id")?,
        author: author(&columns)?,
        fence: Fence::from_stored(columns.plain("fence")?),
        serial: columns.plain("serial")?,
        lineage: columns.plain("lineage")?,
        md5: columns.plain("md5")?,
        status: columns.member("status", &StateStatus::ALL, StateStatus::as_str)?,
        object: columns.parsed_or_null("object_id")?,
        sha256: columns.digest_or_null("sha256")?,
        bytes: columns.plain("bytes")?,
        created_at: columns.time("created_at")?,
        published_at: columns.time_or_null("published_at")?,
        outputs_object: columns.parsed_or_null("outputs_object_id")?,
    })
}

fn author(columns: &Columns<'_>) -> Result<Author, StoreError> {
    let user = columns.parsed_or_null("user_id")?;
    let restores = columns.parsed_or_null("restored_state_version_id")?;
    match (columns.parsed_or_null("run_id")?, user, restores) {
        (Some(run), None, None) => Ok(Author::Run(run)),
        (None, Some(user), Some(restores)) => Ok(Author::Person { user, restores }),
        _ => Err(columns.inconsistent("run_id")),
    }
}
