//! What of a plan may be shown, and to whom. Reads what `tofu show -json` printed, which a hostile
//! provider or module can influence, and gives two documents: the plan-diff, for people
//! ([`DIFF_SCHEMA`]), and the plan as policies see it ([`POLICY_INPUT_SCHEMA`]).
//!
//! Both come out of the same redaction in two passes: what the plan's own masks call sensitive, and what
//! repeats such a value anywhere else. What is not certain is withheld, one resource at a time.
//!
//! Only rules: no file, process, network, clock or environment enters here.

mod action;
mod buffer;
mod change;
mod diff;
mod document;
mod error;
mod inspect;
mod json;
mod limits;
mod outline;
mod policy;
mod reason;
mod redact;
mod secrets;

pub use diff::DIFF_SCHEMA;
pub use error::InspectError;
pub use inspect::{Inspection, Summary, inspect, run};
pub use limits::{
    DIFF_BYTES_MAX, Limits, OUTPUTS_MAX, PLAN_JSON_BYTES_MAX, POLICY_INPUT_BYTES_MAX,
    RESOURCES_MAX, SECRETS_MAX,
};
pub use outline::{OUTLINE_BYTES_MAX, outline};
pub use policy::POLICY_INPUT_SCHEMA;
pub use reason::Reason;
