//! What can go wrong while following the log or reading what came of it.

use stackship_store::StoreError;

/// Why read models could not be written or read. Texts name rows, never their contents.
#[derive(Debug, thiserror::Error)]
pub enum ProjectionError {
    /// The database or the log's reader failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An event is missing from the feed. Nothing is skipped: the projector stops here.
    #[error("{aggregate} continues with event {found}, but event {expected} has not been seen")]
    Gap {
        /// Whose events.
        aggregate: String,
        /// The sequence that should have come.
        expected: i64,
        /// The sequence that came.
        found: i64,
    },
    /// An event holds what this release cannot read.
    #[error("event {sequence} of {aggregate} cannot be read by this release")]
    Unreadable {
        /// Whose event.
        aggregate: String,
        /// Which one.
        sequence: i64,
    },
    /// A run's events do not begin with its creation.
    #[error("the first event of {aggregate} does not create it")]
    NotCreated {
        /// Whose events.
        aggregate: String,
    },
    /// A row holds what this release cannot read.
    #[error("row {row} of view.{table} cannot be read by this release; rebuild the projections")]
    Row {
        /// The table.
        table: &'static str,
        /// The row's key.
        row: String,
    },
    /// A write met rows that are further than the checkpoint says.
    #[error(
        "view.{table} took {written} of {expected} rows: it does not fit its checkpoint; rebuild the projections"
    )]
    Diverged {
        /// The table.
        table: &'static str,
        /// How many rows should have been written.
        expected: usize,
        /// How many were.
        written: u64,
    },
}

impl From<sqlx::Error> for ProjectionError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(StoreError::from(error))
    }
}

impl ProjectionError {
    /// A row that cannot be understood.
    pub(crate) fn row(table: &'static str, row: impl Into<String>) -> Self {
        Self::Row {
            table,
            row: row.into(),
        }
    }

    /// Every row that was sent must have been written.
    pub(crate) fn all_written(
        table: &'static str,
        expected: usize,
        written: u64,
    ) -> Result<(), Self> {
        if u64::try_from(expected) == Ok(written) {
            Ok(())
        } else {
            Err(Self::Diverged {
                table,
                expected,
                written,
            })
        }
    }
}

/// Why a page could not be read.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The cursor was not made by this installation for this list (S-INV-1).
    #[error("the cursor does not belong to this list; begin again without one")]
    CursorInvalid,
    /// A failure of ours.
    #[error(transparent)]
    Projection(#[from] ProjectionError),
}

impl From<sqlx::Error> for PageError {
    fn from(error: sqlx::Error) -> Self {
        Self::Projection(error.into())
    }
}
