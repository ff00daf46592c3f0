//! The runner: leases an attempt, drives OpenTofu in a sandbox, streams the log, reports.
//!
//! It has no database and decides nothing: it says how a phase ended, and the control plane says
//! what that means. Everything that leaves a sandbox is written by an attacker: it is bounded,
//! hashed on receipt and parsed with limits. A secret travels to a sandbox over its control socket
//! alone, and the two tokens of a lease never enter it: the [`gateway`] adds the run's token to the
//! few requests that a phase may make.
//!
//! | module | holds |
//! | --- | --- |
//! | [`runner`], [`settings`] | the loop that leases, and what it is told |
//! | [`attempt`], [`heartbeat`] | one lease from its start to its report |
//! | [`plan`], [`apply`], [`session`] | the two phases as sandbox specifications, and what drives them |
//! | [`inspect`] | what a plan says, in a second sandbox without network |
//! | [`redact`] | the step of that sandbox that makes of it what people and policies may see |
//! | [`workdir`], [`variables`], [`backend`], [`mirror`], [`dependencies`] | what is put around a configuration, and the checks after `init` |
//! | [`control_plane`], [`inputs`], [`tools`] | what is fetched, each verified by its digest |
//! | [`gateway`], [`logs`] | what comes out |
//! | [`kept_states`] | a state that nobody takes any more, kept on this machine |

mod apply;
mod attempt;
mod backend;
mod control_plane;
mod dependencies;
mod gateway;
mod heartbeat;
mod inputs;
mod inspect;
mod kept_states;
pub mod logs;
mod mirror;
mod plan;
pub mod redact;
mod runner;
mod session;
mod settings;
mod tools;
mod variables;
mod workdir;

pub use control_plane::CallError;
pub use mirror::{PROVIDERS_MAX, ProviderMirrorError, mirrored_providers};
pub use redact::run_helper_if_asked;
pub use runner::{Runner, RunnerError};
pub use settings::{RunnerSettings, ToolSettings};
pub use tools::ToolError;
