//! The room as others use it: a plan goes in, what may be shown comes out.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod echoes;
mod golden;
mod limits;
mod markers;
mod masks;
mod refused;
mod support;
