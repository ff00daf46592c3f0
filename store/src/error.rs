//! What can go wrong while writing down. A [`StoreError`] is ours to act upon; a caller's mistake
//! that only the database can see is a [`Violation`].

/// A write that the database refused because of what it already holds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// Another record has this name.
    #[error("`{field}` is taken")]
    Taken {
        /// The field whose value is taken.
        field: &'static str,
    },
    /// The write presents a fence that is not current (SQLSTATE SS001).
    #[error("the workspace lock has moved on")]
    StaleFence,
    /// What was pinned cannot change (SQLSTATE SS003), or the log was to be changed (SS002).
    #[error("what was written down cannot change")]
    Immutable,
    /// The write does not fit what the database knows (SQLSTATE SS004).
    #[error("the write does not fit what is known")]
    NotNow,
    /// An apply without approval (S-RUN-6).
    #[error("automatic apply is refused")]
    AutoApply,
    /// There is no room for one more.
    #[error("there may be at most {max} {what}")]
    Full {
        /// What there is too much of.
        what: &'static str,
        /// How many there may be.
        max: usize,
    },
    /// The organization would have no owner left.
    #[error("an organization keeps an owner: make somebody else one first")]
    LastOwner,
    /// Another live apply exists in the workspace.
    #[error("another apply is live in this workspace")]
    ApplyLive,
}

/// Why a write or a read failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database refused the write by a rule.
    #[error(transparent)]
    Refused(#[from] Violation),
    /// The database could not be reached or did not answer in time.
    #[error("the database is not available")]
    Unavailable(#[source] sqlx::Error),
    /// Any other database error.
    #[error("the database answered with an error")]
    Database(#[source] sqlx::Error),
    /// A row holds what this program cannot understand.
    #[error("row {row} of {table} holds an inconsistent {column}")]
    Inconsistent {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// The row's key.
        row: String,
    },
    /// An object could not be stored, read or authenticated.
    #[error("an object could not be stored or read")]
    Object(#[from] crate::objects::ObjectError),
    /// A password could not be hashed.
    #[error("a password could not be hashed")]
    Hash(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A document did not serialize.
    #[error("a document did not serialize")]
    Serialize(#[from] serde_json::Error),
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        if let Some(violation) = violation(&error) {
            return Self::Refused(violation);
        }
        match error {
            sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::Io(_)
            | sqlx::Error::WorkerCrashed => Self::Unavailable(error),
            other if is_going_away(&other) => Self::Unavailable(other),
            other => Self::Database(other),
        }
    }
}

/// Whether the server says that it is shutting down, starting, or has no place left: its last word
/// before a connection ends is an answer too, and says nothing about what was asked.
fn is_going_away(error: &sqlx::Error) -> bool {
    let code = error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code);
    code.is_some_and(|code| {
        let classes = ["08", "57P", "53300"];
        classes.iter().any(|class| code.starts_with(class))
    })
}

impl StoreError {
    /// A row that cannot be understood.
    pub fn inconsistent(
        table: &'static str,
        column: &'static str,
        row: impl std::fmt::Display,
    ) -> Self {
        Self::Inconsistent {
            table,
            column,
            row: row.to_string(),
        }
    }
}

/// Maps a database error to the rule behind it, by SQLSTATE or constraint name.
pub fn violation(error: &sqlx::Error) -> Option<Violation> {
    let database = error.as_database_error()?;
    match database.code().as_deref() {
        Some("SS001") => return Some(Violation::StaleFence),
        Some("SS002" | "SS003") => return Some(Violation::Immutable),
        Some("SS004") => return Some(Violation::NotNow),
        _ => {}
    }
    match database.constraint()? {
        "auto_apply_never" => Some(Violation::AutoApply),
        "one_live_apply" => Some(Violation::ApplyLive),
        "organizations_name_key"
        | "project_name_taken"
        | "workspace_name_taken"
        | "policy_set_name_taken"
        | "runners_name_key" => Some(Violation::Taken { field: "name" }),
        "users_login_key" | "member_login_taken" => Some(Violation::Taken { field: "login" }),
        // Somebody else has carried out the same named request.
        "facts_once" => Some(Violation::NotNow),
        "variable_key_taken" => Some(Violation::Taken { field: "key" }),
        _ => None,
    }
}
