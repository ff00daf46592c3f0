//! Typed identifiers: a prefix that says what is named, a hyphen, and a UUID in 26 lower-case
//! Crockford base-32 digits. They are minted outside (from a version 7 UUID, so that text order is
//! creation order) and only parsed here.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Digits after the prefix: 128 bits at five bits each, rounded up.
const DIGITS: usize = 26;

/// A text that is not an identifier of the kind that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a {kind} id; expected `{kind}-` and 26 base-32 digits")]
pub struct InvalidId {
    /// The prefix of the identifier that was wanted.
    pub kind: &'static str,
    /// What was given, cut to a length that is safe to show.
    pub given: String,
}

fn encode(uuid: Uuid) -> String {
    let mut rest = uuid.as_u128();
    let mut digits = [0_u8; DIGITS];
    for digit in digits.iter_mut().rev() {
        let index = usize::try_from(rest & 31).expect("five bits fit a usize");
        *digit = ALPHABET[index];
        rest >>= 5;
    }
    digits.iter().map(|byte| char::from(*byte)).collect()
}

fn decode(digits: &str) -> Option<Uuid> {
    if digits.len() != DIGITS {
        return None;
    }
    let mut value: u128 = 0;
    for (position, byte) in digits.bytes().enumerate() {
        let index = ALPHABET.iter().position(|letter| *letter == byte)?;
        // 26 digits carry 130 bits: the first digit may use only its lowest three.
        if position == 0 && index > 7 {
            return None;
        }
        value = (value << 5) | u128::try_from(index).ok()?;
    }
    Some(Uuid::from_u128(value))
}

/// What every typed identifier can do; lets other rooms handle ids alike without knowing each one.
pub trait Id: Copy + Ord + fmt::Display + FromStr<Err = InvalidId> + Send + Sync + 'static {
    /// The word before the hyphen.
    const PREFIX: &'static str;
    /// Names the given UUID.
    fn from_uuid(uuid: Uuid) -> Self;
    /// The UUID behind the text.
    fn uuid(self) -> Uuid;
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal),+ $(,)?) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl Id for $name {
            const PREFIX: &'static str = $prefix;
            fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }
            fn uuid(self) -> Uuid {
                self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, "{}-{}", $prefix, encode(self.0))
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, out)
            }
        }
        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                text.strip_prefix(concat!($prefix, "-"))
                    .and_then(decode)
                    .map(Self)
                    .ok_or_else(|| InvalidId { kind: $prefix, given: text.chars().take(64).collect() })
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )+ };
}

ids! {
    /// A tenant.
    OrganizationId = "org",
    /// A group of workspaces inside an organization.
    ProjectId = "prj",
    /// The unit of state.
    WorkspaceId = "ws",
    /// One attempt to evaluate a pinned configuration and inputs.
    RunId = "run",
    /// An immutable uploaded source.
    ConfigurationVersionId = "cv",
    /// The pinned inputs of one run.
    InputSnapshotId = "snap",
    /// One OpenTofu state with its serial and lineage.
    StateVersionId = "sv",
    /// One numbered try at a phase in one sandbox.
    AttemptId = "att",
    /// A person or a service account.
    UserId = "user",
    /// An API token.
    TokenId = "tok",
    /// A workspace variable.
    VariableId = "var",
    /// An encrypted object.
    ObjectId = "obj",
    /// A runner process.
    RunnerId = "rnr",
    /// An administrative fact in the log.
    FactId = "fact",
    /// Policies that are versioned and attached together.
    PolicySetId = "polset",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_survives_its_text_and_refuses_another_kind() {
        let id = RunId::from_uuid(Uuid::from_u128(0x0193_8000_0000_7000_8000_0000_0000_002a));
        let text = id.to_string();
        assert_eq!(text, "run-01je000000e00800000000001a");
        assert_eq!(text.parse::<RunId>(), Ok(id));
        assert!(text.parse::<WorkspaceId>().is_err());
    }

    #[test]
    fn texts_that_would_name_the_same_uuid_twice_are_refused() {
        assert!(
            "run-8zzzzzzzzzzzzzzzzzzzzzzzzz".parse::<RunId>().is_err(),
            "overflows 128 bits"
        );
        assert!(
            "run-01JE000000E00800000000001A".parse::<RunId>().is_err(),
            "upper case"
        );
        assert!("run-".parse::<RunId>().is_err());
    }

    #[test]
    fn text_order_is_uuid_order() {
        let texts: Vec<String> = [1_u128, 31, 32, 1 << 64, u128::MAX]
            .map(|n| RunId::from_uuid(Uuid::from_u128(n)).to_string())
            .into();
        let mut sorted = texts.clone();
        sorted.sort();
        assert_eq!(texts, sorted);
    }
}
