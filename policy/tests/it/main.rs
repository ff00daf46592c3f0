//! Bundles, and evaluations by the real limited process.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod archives;
mod confinement;
mod evaluating;
mod helpers;
mod hostile;
mod results;
mod support;
mod uploading;
