//! Room `server`.
fn main() {}
