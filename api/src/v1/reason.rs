//! Why a person decides so: one rule for every route that asks. What surrounds the words is no reason
//! and is not kept; a blank one is none at all.

use serde::Deserialize;
use utoipa::ToSchema;

use super::body::plain_text;
use crate::ApiError;

/// The longest reason, in characters.
const CHARS_MAX: usize = 1_000;
/// The shortest one for what goes past the usual way, in characters: somebody will read it when things
/// went wrong, and a word is none.
const FULL_CHARS_MIN: usize = 10;

/// Why, where nothing has to be said.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReasonBody {
    /// Why, for those who read the history; not blank.
    #[schema(min_length = 1, max_length = 1000)]
    reason: Option<String>,
}

impl ReasonBody {
    pub(super) fn checked(self) -> Result<Option<String>, ApiError> {
        let given = self.reason.as_deref();
        given.map(|reason| checked(reason, 1)).transpose()
    }
}

/// Why, where a word is enough.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GivenReason {
    /// Why, for those who read the history; not blank.
    #[schema(min_length = 1, max_length = 1000)]
    reason: String,
}

impl GivenReason {
    pub(super) fn checked(self) -> Result<String, ApiError> {
        checked(&self.reason, 1)
    }
}

/// Why, where the usual way is left.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FullReason {
    /// What was looked at and why this is needed, for those who read the history.
    #[schema(min_length = 10, max_length = 1000)]
    reason: String,
}

impl FullReason {
    pub(super) fn checked(self) -> Result<String, ApiError> {
        full(&self.reason)
    }
}

/// A reason beside other fields, where the usual way is left.
pub(super) fn full(given: &str) -> Result<String, ApiError> {
    checked(given, FULL_CHARS_MIN)
}

fn checked(given: &str, chars_min: usize) -> Result<String, ApiError> {
    let reason = given.trim();
    plain_text("REASON_INVALID", "reason", reason, chars_min..=CHARS_MAX)?;
    Ok(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_surrounds_a_reason_is_not_part_of_it() {
        assert_eq!(checked("  not today ", 1).unwrap(), "not today");
        let padded = format!("{}nine char{}", " ".repeat(9), " ".repeat(9));
        assert_eq!(checked(&padded, 9).unwrap(), "nine char");
        for (given, chars_min) in [
            ("", 1),
            ("   ", 1),
            ("\u{a0}\u{2003}", 1),
            (&padded, 10),
            ("a\nb", 1),
        ] {
            let refused = checked(given, chars_min).unwrap_err();
            assert_eq!(refused.code(), "REASON_INVALID", "{given:?}");
        }
    }
}
