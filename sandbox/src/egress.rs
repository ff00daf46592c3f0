//! The allow-listing HTTP CONNECT proxy behind a sandbox's only way out.
//!
//! It runs outside and serves the egress listener of one sandbox. A request names a host and a
//! port; both must be on the list. The name is resolved once, here; if any address is not public
//! the request is refused, and the connection goes to a checked address, so that a name cannot
//! change its meaning in between. Every decision is reported.

mod address;
mod policy;
mod proxy;
mod request;

pub use policy::{EgressPolicy, PolicyError};
pub use proxy::{Decision, Egress, HostNetwork, Outside, Refusal};
