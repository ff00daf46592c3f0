//! Why a plan's JSON is not taken at all. No text here quotes the document: it may hold secrets.

use crate::json::{JsonError, JsonErrorKind};

/// Why there is neither a plan-diff nor a policy input.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// Reading or writing failed.
    #[error("the plan's JSON cannot be read, or its views cannot be written")]
    Io(#[from] std::io::Error),
    /// Longer than the limit.
    #[error("the plan's JSON is longer than {limit} bytes")]
    TooLong {
        /// How long it may be.
        limit: u64,
    },
    /// More resource changes, outputs or variables than are listed.
    #[error("the plan's JSON lists more than {limit} of one kind")]
    TooMany {
        /// How many there may be.
        limit: usize,
    },
    /// Not UTF-8.
    #[error("the plan's JSON is not UTF-8 at byte {offset}")]
    NotUtf8 {
        /// Where the text ends.
        offset: usize,
    },
    /// Not JSON.
    #[error("the plan's JSON is damaged at byte {offset}")]
    Syntax {
        /// Where it stops being JSON.
        offset: usize,
    },
    /// JSON, but no plan.
    #[error("the plan's JSON does not have the shape of a plan")]
    Shape,
    /// Nested deeper than the limit.
    #[error("the plan's JSON nests too deeply at byte {offset}")]
    TooDeep {
        /// Where.
        offset: usize,
    },
    /// Objects with too many members.
    #[error("an object in the plan's JSON has too many members at byte {offset}")]
    TooManyKeys {
        /// Where.
        offset: usize,
    },
    /// Two members of one name: readers would not agree on what it says.
    #[error("an object in the plan's JSON has a key twice, before byte {offset}")]
    DoubledKey {
        /// Where the object ends.
        offset: usize,
    },
    /// Something every plan has is missing.
    #[error("the plan's JSON has no `{name}`")]
    Missing {
        /// What is missing.
        name: &'static str,
    },
    /// A format this reader does not know.
    #[error("the plan's JSON is not of format version 1")]
    FormatVersion,
}

impl From<JsonError> for InspectError {
    fn from(JsonError { kind, offset }: JsonError) -> Self {
        match kind {
            JsonErrorKind::Syntax => Self::Syntax { offset },
            // Offsets in a part of the document would mislead.
            JsonErrorKind::Shape | JsonErrorKind::TooManyNodes => Self::Shape,
            JsonErrorKind::TooDeep => Self::TooDeep { offset },
            JsonErrorKind::TooManyKeys => Self::TooManyKeys { offset },
            JsonErrorKind::DoubledKey => Self::DoubledKey { offset },
        }
    }
}
