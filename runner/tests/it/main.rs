//! What the runner promises, with real sandboxes, the real OpenTofu and a control plane that speaks
//! the wire contract over a real socket.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod applying;
mod backends;
mod hostile;
mod interrupted;
mod log_properties;
mod masked_forms;
mod planning;
mod providers;
mod redaction;
mod releases;
mod support;
mod tampering;
