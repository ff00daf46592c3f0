//! Rows into types: a text that does not parse is an error that names table, column and row.

use std::str::FromStr;

use serde::de::DeserializeOwned;
use sqlx::postgres::{PgRow, Postgres};
use sqlx::{Decode, Row as _, Type};
use stackship_domain::{Sha256Digest, Timestamp};

use crate::{DbTime, StoreError};

/// The columns of one row.
pub(crate) struct Columns<'r> {
    row: &'r PgRow,
    table: &'static str,
    key: String,
}

impl<'r> Columns<'r> {
    /// The columns of a row of `table`, whose key is in the text column `key`.
    pub(crate) fn new(row: &'r PgRow, table: &'static str, key: &str) -> Result<Self, StoreError> {
        Ok(Self {
            row,
            table,
            key: row.try_get(key)?,
        })
    }

    /// A value that PostgreSQL's type describes fully.
    pub(crate) fn plain<T: Decode<'r, Postgres> + Type<Postgres>>(
        &self,
        column: &str,
    ) -> Result<T, StoreError> {
        Ok(self.row.try_get(column)?)
    }

    /// A text with a type of ours.
    pub(crate) fn parsed<T: FromStr>(&self, column: &'static str) -> Result<T, StoreError> {
        let text: &str = self.row.try_get(column)?;
        text.parse().map_err(|_| self.inconsistent(column))
    }

    /// A text with a type of ours, or null.
    pub(crate) fn parsed_or_null<T: FromStr>(
        &self,
        column: &'static str,
    ) -> Result<Option<T>, StoreError> {
        let text: Option<&str> = self.row.try_get(column)?;
        text.map(|text| text.parse().map_err(|_| self.inconsistent(column)))
            .transpose()
    }

    /// A member of a closed set, found by its name.
    pub(crate) fn member<T: Copy>(
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

    /// A member of a closed set, or null.
    pub(crate) fn member_or_null<T: Copy>(
        &self,
        column: &'static str,
        all: &[T],
        name: impl Fn(T) -> &'static str,
    ) -> Result<Option<T>, StoreError> {
        let text: Option<&str> = self.row.try_get(column)?;
        text.map(|_| self.member(column, all, name)).transpose()
    }

    /// A JSON document with a type of ours.
    pub(crate) fn document<T: DeserializeOwned>(
        &self,
        column: &'static str,
    ) -> Result<T, StoreError> {
        serde_json::from_value(self.row.try_get(column)?).map_err(|_| self.inconsistent(column))
    }

    /// A time.
    pub(crate) fn time(&self, column: &str) -> Result<Timestamp, StoreError> {
        Ok(self.row.try_get::<DbTime, _>(column)?.get())
    }

    /// A time, or null.
    pub(crate) fn time_or_null(&self, column: &str) -> Result<Option<Timestamp>, StoreError> {
        Ok(self
            .row
            .try_get::<Option<DbTime>, _>(column)?
            .map(DbTime::get))
    }

    /// A count that is never negative.
    pub(crate) fn count<T: TryFrom<i64>>(&self, column: &'static str) -> Result<T, StoreError> {
        T::try_from(self.row.try_get(column)?).map_err(|_| self.inconsistent(column))
    }

    /// The same of a column of half the width.
    pub(crate) fn small_count<T: TryFrom<i32>>(
        &self,
        column: &'static str,
    ) -> Result<T, StoreError> {
        T::try_from(self.row.try_get(column)?).map_err(|_| self.inconsistent(column))
    }

    /// A SHA-256 kept as 32 bytes.
    pub(crate) fn digest(&self, column: &'static str) -> Result<Sha256Digest, StoreError> {
        self.digest_or_null(column)?
            .ok_or_else(|| self.inconsistent(column))
    }

    /// A SHA-256 kept as 32 bytes, or null.
    pub(crate) fn digest_or_null(
        &self,
        column: &'static str,
    ) -> Result<Option<Sha256Digest>, StoreError> {
        let bytes: Option<&[u8]> = self.row.try_get(column)?;
        bytes
            .map(|bytes| {
                <[u8; 32]>::try_from(bytes)
                    .map(Sha256Digest::from_bytes)
                    .map_err(|_| self.inconsistent(column))
            })
            .transpose()
    }

    /// The error of a column that cannot be understood.
    pub(crate) fn inconsistent(&self, column: &'static str) -> StoreError {
        StoreError::inconsistent(self.table, column, &self.key)
    }
}
