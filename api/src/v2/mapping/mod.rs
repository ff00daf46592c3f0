//! From what StackShip knows to what the client reads. Pure: a review goes in, words come out.
//!
//! The client has no state machine of its own. It believes single fields of single answers, so what
//! it reads must be consistent within one document, and the order in which things become visible is
//! the order in which the review tells them.

mod outputs;
mod policy;
mod run;
mod workspace;

pub use outputs::{Output, outputs, parse_output_id};
pub use policy::policy_check;
pub use run::{
    RunView, SOURCE, apply_status, has_changes, is_over, listed_status, plan_status, run_resource,
};
pub use workspace::{Rights, current_run, workspace_resource};
