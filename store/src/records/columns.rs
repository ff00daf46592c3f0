//! Rows into types: a text that does not parse is an error that names table, column and row.

use std::str::FromStr;

use sqlx::postgres::{PgRow, Postgres};
use sqlx::{Decode, Row as _, Type};
use stackship_domain::{Sha256Digest, Timestamp};

use crate::{DbTime, StoreError};

/// The columns of one row.
pub(super) struct Columns<'r> {
    row: &'r PgRow,
    table: &'static str,
    key: String,
}

impl<'r> Columns<'r> {
    /// The columns of a row of `table`, whose key is in the text column `key`.
    pub(super) fn new(row: &'r PgRow, table: &'static str, key: &str) -> Result<Self, StoreError> {
        Ok(Self {
            row,
            table,
            key: row.try_get(key)?,
        })
    }

    /// A value that PostgreSQL's type describes fully.
    pub(super) fn plain<T: Decode<'r, Postgres> + Type<Postgres>>(
        &self,
        column: &str,
    ) -> Result<T, StoreError> {
        Ok(self.row.try_get(column)?)
    }

    /// A text with a type of ours.
    pub(super) fn parsed<T: FromStr>(&self, column: &'static str) -> Result<T, StoreError> {
        let text: &str = self.row.try_get(column)?;
        text.parse().map_err(|_| self.inconsistent(column))
    }

    /// A text with a type of ours, or null.
    pub(super) fn parsed_or_null<T: FromStr>(
        &self,
        column: &'static str,
    ) -> Result<Option<T>, StoreError> {
        let text: Option<&str> = self.row.try_get(column)?;
        text.map(|text| text.parse().map_err(|_| self.inconsistent(column)))
            .transpose()
    }

    /// A member of a closed set, found by its name.
    pub(super) fn member<T: Copy>(
        &self,
        column: &'static str,
        all: &[T],
        name: impl Fn(T) -> &'static str,
    ) -> Result<T, StoreError> {
        let text: &str = self.row.try_get(column)?;
        all.iter()
            .copied()
            .find(|one| name(*one) == text)
            .ok_or_else(|| self.inconsistent(column))
    }

    /// A time.
    pub(super) fn time(&self, column: &str) -> Result<Timestamp, StoreError> {
        Ok(self.row.try_get::<DbTime, _>(column)?.get())
    }

    /// A time, or null.
    pub(super) fn time_or_null(&self, column: &str) -> Result<Option<Timestamp>, StoreError> {
        Ok(self
            .row
            .try_get::<Option<DbTime>, _>(column)?
            .map(DbTime::get))
    }

    /// A count that is never negative.
    pub(super) fn count<T: TryFrom<i64>>(&self, column: &'static str) -> Result<T, StoreError> {
        T::try_from(self.row.try_get(column)?).map_err(|_| self.inconsistent(column))
    }

    /// A SHA-256 kept as 32 bytes.
    pub(super) fn digest(&self, column: &'static str) -> Result<Sha256Digest, StoreError> {
        let bytes: &[u8] = self.row.try_get(column)?;
        <[u8; 32]>::try_from(bytes)
            .map(Sha256Digest::from_bytes)
            .map_err(|_| self.inconsistent(column))
    }

    /// The error of a column that cannot be understood.
    pub(super) fn inconsistent(&self, column: &'static str) -> StoreError {
        StoreError::inconsistent(self.table, column, &self.key)
    }
}
