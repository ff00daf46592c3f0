//! What the room promises, on real sandboxes.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod artifacts;
mod egress;
mod ends;
mod hostile;
mod inputs;
mod probe;
mod supervisor;
mod support;
mod unpack;
