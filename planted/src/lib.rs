//! Random plans with secrets planted in them, and the search for what leaked. For tests and for
//! `stackship bench leaks`: whatever makes something of a plan is asked whether a secret comes out.
//!
//! Knows none of our own code, least of all what it judges: which places of a plan are secret and in
//! which forms a secret can be repeated is written down here a second time.

mod dice;
mod forms;
mod places;
mod plan;
mod search;
mod tree;

pub use plan::{Planted, plan};
pub use search::Search;
