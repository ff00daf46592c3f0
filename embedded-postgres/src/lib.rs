//! The supervisor of a private PostgreSQL cluster.
//!
//! `serve` without a `DATABASE_URL` and the tests (through `with-postgres`) need a PostgreSQL that
//! is simply there and that never outlives them. This room finds the system's PostgreSQL binaries,
//! makes a cluster in a directory of ours, runs `postgres` as our child and stops it again. It
//! promises:
//!
//! * **One owner.** A cluster has at most one supervisor ([`Error::Locked`] names the other), and a
//!   server left over from a dead supervisor is waited for, never run beside.
//! * **No survivor.** However the supervisor ends, `kill -9` included, the server shuts down cleanly.
//! * **No half-made cluster.** A data directory appears complete or not at all.
//! * **No secret death.** [`Cluster::on_exit`] reports a server that ended, asked or not.
//!
//! The server has no TCP port. It trusts whoever can reach its socket directory, which only our own
//! user can enter: neither that directory nor the data directory may ever be visible inside a
//! run's sandbox.
//!
//! No SQL client, no async runtime and no environment variable may enter here: callers bring the
//! settings and take the URL. Linux only.

mod binaries;
mod cluster;
mod error;
mod identity;
mod initialize;
mod layout;
mod lock;
mod log;
mod occupants;
mod process;
mod server;
mod settings;
mod socket;
mod spawn;

pub use cluster::Cluster;
pub use error::{Error, Looked};
pub use server::Exit;
pub use settings::{Durability, Settings};
pub use spawn::end_with_this_thread;

/// The superuser of every cluster made here.
pub const ROLE: &str = "stackship";

/// The database that exists in every cluster made here.
pub const DATABASE: &str = "stackship";
