//! Names that people choose for organizations, projects and workspaces. They stand in URLs, in the
//! `cloud` block and in lock ids, so they are short and plain.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The most characters a name may have.
pub const NAME_LENGTH_MAX: usize = 90;

/// A name of letters, digits, `-` and `_` that begins with a letter or a digit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

/// A text that cannot be a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a name has 1 to 90 letters, digits, `-` or `_` and begins with a letter or a digit")]
pub struct InvalidName;

impl Name {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether OpenTofu keeps this name for itself: a `cloud` block cannot name such a workspace,
    /// so none of its runs could plan.
    pub fn is_kept_by_tofu(&self) -> bool {
        self.0 == "default"
    }
}

impl FromStr for Name {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let begins_well = text
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphanumeric());
        if begins_well && text.len() <= NAME_LENGTH_MAX && text.bytes().all(allowed) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidName)
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cloud_block_cannot_name_the_workspace_default() {
        assert!(
            "default"
                .parse::<Name>()
                .is_ok_and(|name| name.is_kept_by_tofu())
        );
        assert!(
            "defaults"
                .parse::<Name>()
                .is_ok_and(|name| !name.is_kept_by_tofu())
        );
    }

    #[test]
    fn names_are_safe_in_urls_and_paths() {
        assert!("prod-network_1".parse::<Name>().is_ok());
        for text in ["", "-x", "a/b", "a b", "..", "é", &"a".repeat(91)] {
            assert!(text.parse::<Name>().is_err(), "{text} was taken");
        }
    }
}
