//! What StackShip decides, and nothing else.
//!
//! Two aggregates, [`run::Run`] and [`workspace::Workspace`], take commands and answer with events
//! or a [`run::Refusal`]. Everything here is pure: no clock, no randomness, no I/O, no wire format.
//! Facts that a rule needs (the time, the caller, a digest) arrive inside the command.

pub mod actor;
pub mod canonical;
pub mod digest;
pub mod fence;
pub mod hcl_literal;
pub mod ids;
pub mod name;
pub mod permission;
pub mod policy_bounds;
pub mod run;
pub mod text;
pub mod tofu_version;
pub mod variable;
pub mod workspace;

pub use actor::Actor;
pub use digest::Sha256Digest;
pub use fence::Fence;
pub use jiff::Timestamp;
pub use name::Name;
pub use permission::{Permission, Role};
pub use tofu_version::TofuVersion;
