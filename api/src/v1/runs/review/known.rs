//! A value, or in which of two ways it is not here. One type for both, so that whoever shows a review
//! never has to guess what an empty field means (S-REV-15).

use serde::Serialize;
use utoipa::ToSchema;

/// What was recorded, or why it is not here.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Known<T> {
    /// It was recorded.
    Recorded {
        /// What.
        value: T,
    },
    /// It was never recorded.
    NotRecorded,
    /// It was recorded, and cannot be read now.
    Unavailable,
}

impl<T> From<Option<T>> for Known<T> {
    fn from(value: Option<T>) -> Self {
        match value {
            Some(value) => Self::Recorded { value },
            None => Self::NotRecorded,
        }
    }
}

impl<T> Known<T> {
    /// The same of what is made of the value.
    pub(super) fn map<U>(self, make: impl FnOnce(T) -> U) -> Known<U> {
        match self {
            Self::Recorded { value } => Known::Recorded { value: make(value) },
            Self::NotRecorded => Known::NotRecorded,
            Self::Unavailable => Known::Unavailable,
        }
    }

    /// The same, borrowed.
    pub(super) const fn as_ref(&self) -> Known<&T> {
        match self {
            Self::Recorded { value } => Known::Recorded { value },
            Self::NotRecorded => Known::NotRecorded,
            Self::Unavailable => Known::Unavailable,
        }
    }
}
