//! The room that isolates a process tree.
//!
//! A [`SandboxSpec`] says what to run and with which files, limits and network; a
//! [`SandboxDriver`] turns it into a [`Sandbox`] that reports bounded events and ends with one
//! [`Outcome`]. The room knows nothing of runs, of OpenTofu or of any HTTP API, and a spec names
//! no flag or descriptor of a driver, so that a remote driver could serve it as well.
//!
//! | module | holds |
//! | --- | --- |
//! | [`spec`], [`outcome`], [`driver`] | the public contract |
//! | [`bubblewrap`] | the default driver: cgroups, slots, system call filter, `bwrap`, self-test |
//! | [`init`] | the supervisor that runs inside, from the same binary re-executed |
//! | [`egress`] | the allow-listing CONNECT proxy behind a sandbox's only way out |
//! | [`unpack`] | the unpacker of uploaded archives, and the same rules without writing |
//!
//! Three rules hold everywhere. Isolation fails closed: a driver that cannot isolate launches
//! nothing. Whatever comes from inside is written by an attacker: it is parsed with limits and
//! hashed on receipt. A secret travels only over the control socket, never in an argument list.
//!
//! The host binary calls [`run_helper_if_asked`] first thing in `main`, because the driver
//! re-executes it as the launch helper, the supervisor and the self-test.

pub mod bubblewrap;
pub mod digest;
pub mod driver;
pub mod egress;
pub mod init;
pub mod outcome;
pub mod spec;
pub mod unpack;
mod wire;

pub use digest::Digest;
pub use driver::{
    Capabilities, Control, LaunchError, Sandbox, SandboxDriver, SweepError, Unavailable,
};
pub use init::{init_main, run_helper_if_asked};
pub use outcome::{
    EndReason, Event, Isolation, LogStream, Outcome, ReceivedArtifact, StepExit, StepReport,
};
pub use spec::{
    Artifact, Environment, Input, InputSource, Limits, Network, Placement, Presence,
    ReadOnlyDirectory, SandboxSpec, SpecError, Stdout, Step,
};
