//! The `/api/v2` edge against a real database, and against the real `tofu` where one is at hand on the
//! build machine: `make test` sees to that.

mod applying;
mod cli;
pub mod edge;
mod http;
mod logs;
mod policies;
mod runner;
mod terminal;
mod tofu;
pub mod world;
