//! Room `runner-protocol`.
