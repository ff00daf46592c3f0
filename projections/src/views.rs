//! The handle through which read models are read. Their queries are in the modules of the models;
//! the tenant is in every one of them.

use std::fmt;

use sqlx::PgPool;

/// The most rows a page has.
pub const PAGE_ROWS_MAX: u16 = 100;

/// The key that makes cursors unforgeable.
#[derive(Clone)]
pub struct CursorKey([u8; 32]);

impl CursorKey {
    /// Takes a key that was derived for this purpose alone.
    pub const fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    pub(crate) const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for CursorKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("CursorKey(…)")
    }
}

/// Reads the read models. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Views {
    pub(crate) pool: PgPool,
    pub(crate) cursor_key: CursorKey,
}

impl Views {
    /// Reads through `pool`, which needs no right but to read.
    pub const fn new(pool: PgPool, cursor_key: CursorKey) -> Self {
        Self { pool, cursor_key }
    }
}

/// A page's limit as the database takes it: at least one row, at most [`PAGE_ROWS_MAX`].
pub(crate) fn page_limit(asked: u16) -> i64 {
    i64::from(asked.clamp(1, PAGE_ROWS_MAX))
}
