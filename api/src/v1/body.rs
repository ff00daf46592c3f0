//! What a request carries: JSON bodies, query and path parameters, read strictly.

use serde::{Deserialize, Deserializer};
use stackship_domain::Timestamp;
use stackship_domain::text::is_plain;
use stackship_store::records::{PAGE_MAX, Page};
use utoipa::IntoParams;

use crate::{ApiError, reading};

reading::extractors!(pub(super), ApiError);

/// Which part of a list is asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PageQuery {
    /// The `next_cursor` of the page before.
    pub(super) cursor: Option<String>,
    /// How many entries at most: 1 to 100, 100 when absent.
    #[param(minimum = 1, maximum = 100)]
    pub(super) limit: Option<u16>,
}

impl PageQuery {
    /// The page after a cursor that `is_own` recognizes.
    pub(super) fn page(&self, is_own: impl Fn(&str) -> bool) -> Result<Page, ApiError> {
        if self.cursor.as_deref().is_some_and(|cursor| !is_own(cursor)) {
            return Err(ApiError::unreadable(
                "LIST_CURSOR_INVALID",
                "cursor",
                "`cursor` does not belong to this list; begin again without one",
            ));
        }
        Ok(Page::new(self.cursor.clone(), limit(self.limit)?))
    }

    /// The cursor of the next page, when this one is full.
    pub(super) fn next<T>(&self, rows: &[T], key: impl Fn(&T) -> String) -> Option<String> {
        let wanted = usize::from(self.limit.unwrap_or(PAGE_MAX));
        rows.last().filter(|_| rows.len() >= wanted).map(key)
    }
}

/// A page's size.
pub(super) fn limit(asked: Option<u16>) -> Result<u16, ApiError> {
    match asked {
        None => Ok(PAGE_MAX),
        Some(limit) if (1..=PAGE_MAX).contains(&limit) => Ok(limit),
        Some(_) => Err(ApiError::unreadable(
            "LIST_LIMIT_INVALID",
            "limit",
            "`limit` is 1 to 100",
        )),
    }
}

/// A text of `min` to `max` characters, each of which shows as what it is.
pub(super) fn plain_text(
    code: &'static str,
    field: &str,
    text: &str,
    bounds: std::ops::RangeInclusive<usize>,
) -> Result<(), ApiError> {
    if bounds.contains(&text.chars().count()) && text.chars().all(is_plain) {
        return Ok(());
    }
    let (min, max) = bounds.into_inner();
    let message = format!(
        "`{field}` has {min} to {max} characters and no control characters, invisible characters or marks of direction"
    );
    Err(ApiError::refused(code, field, message))
}

/// A time that need not be said; how one is written is said where it cannot be read.
pub(super) fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Timestamp>, D::Error> {
    let Some(text) = Option::<String>::deserialize(from)? else {
        return Ok(None);
    };
    let read = text.parse().map(Some);
    read.map_err(|_| serde::de::Error::custom("write a time as in `2026-01-02T03:04:05Z`"))
}
