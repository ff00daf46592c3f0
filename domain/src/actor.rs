//! Who caused an event. Personal data stays out: an actor is an opaque id.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ids::{RunnerId, UserId};

/// Whoever caused an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Actor {
    /// A person or a service account, through any edge.
    User(UserId),
    /// A runner that reports on an attempt it leased.
    Runner(RunnerId),
    /// StackShip itself: queue order, timers, lost leases.
    System,
    /// An operator at the machine itself, through `stackship admin`.
    Operator,
}

impl Actor {
    /// Whether this is somebody who can be held to a decision, and no part of StackShip.
    pub const fn is_person(self) -> bool {
        match self {
            Self::User(_) | Self::Operator => true,
            Self::Runner(_) | Self::System => false,
        }
    }
}

/// A text that names no actor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an actor: expected `system`, `operator`, a user id or a runner id")]
pub struct InvalidActor;

impl fmt::Display for Actor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(id) => id.fmt(out),
            Self::Runner(id) => id.fmt(out),
            Self::System => out.write_str("system"),
            Self::Operator => out.write_str("operator"),
        }
    }
}

impl FromStr for Actor {
    type Err = InvalidActor;

    fn from_str(text: &str) -> Result<Self, InvalidActor> {
        match text {
            "system" => Ok(Self::System),
            "operator" => Ok(Self::Operator),
            other => other
                .parse()
                .map(Self::User)
                .or_else(|_| other.parse().map(Self::Runner))
                .map_err(|_| InvalidActor),
        }
    }
}

impl Serialize for Actor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Actor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
