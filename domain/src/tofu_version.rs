//! Exact OpenTofu releases. A range or `latest` cannot be pinned, so neither can be written down.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A released OpenTofu version, `major.minor.patch` (S-RUN-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TofuVersion {
    major: u16,
    minor: u16,
    patch: u16,
}

/// A text that does not name one exact release.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "an OpenTofu version is three numbers such as `1.12.6`: no range, no `latest`, no pre-release"
)]
pub struct InvalidTofuVersion;

impl FromStr for TofuVersion {
    type Err = InvalidTofuVersion;

    fn from_str(text: &str) -> Result<Self, InvalidTofuVersion> {
        let number = |part: &str| -> Result<u16, InvalidTofuVersion> {
            let plain = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            let canonical = part == "0" || !part.starts_with('0');
            if plain && canonical {
                part.parse().map_err(|_| InvalidTofuVersion)
            } else {
                Err(InvalidTofuVersion)
            }
        };
        let mut parts = text.split('.');
        let (Some(major), Some(minor), Some(patch), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(InvalidTofuVersion);
        };
        Ok(Self {
            major: number(major)?,
            minor: number(minor)?,
            patch: number(patch)?,
        })
    }
}

impl fmt::Display for TofuVersion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl Serialize for TofuVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TofuVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_releases_are_versions() {
        assert_eq!(
            "1.12.6"
                .parse::<TofuVersion>()
                .map(|version| version.to_string()),
            Ok("1.12.6".to_owned())
        );
        for text in [
            "latest",
            "~> 1.12",
            "1.12",
            "1.12.6-rc1",
            "v1.12.6",
            "1.12.06",
            "1.12.6.1",
            "../1",
            "",
        ] {
            assert!(text.parse::<TofuVersion>().is_err(), "{text} was taken");
        }
    }
}
