//! What the room promises, on a real sandbox.
mod supervisor;
mod support;
