//! A real server, a real database, real sandboxes and the real `tofu` in a pseudo-terminal.

mod archive;
mod checkout;
mod client;
mod configurations;
mod database;
mod environment;
mod policies;
mod remote;
mod server;
mod terminal;
mod world;

pub use archive::{bomb, packed};
pub use checkout::Checkout;
pub use client::{Client, Upload, Workspace, text};
pub use configurations::{ENDLESS_PLAN, SLOW_PLAN};
pub use policies::NO_FORBIDDEN;
pub use remote::RemoteRunner;
pub use terminal::Terminal;
pub use world::World;

use std::time::{Duration, Instant};

/// How long anything that must happen may take, on two busy cores.
pub const DEADLINE: Duration = Duration::from_mins(1);
/// How often a condition without a signal of its own is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Looks until there is something to see.
#[track_caller]
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(
            began.elapsed() < DEADLINE,
            "{what}: not within {DEADLINE:?}"
        );
        std::thread::sleep(LOOK_EVERY);
    }
}
