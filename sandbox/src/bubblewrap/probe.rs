//! placeholder
use super::Inner;
use crate::driver::{Capabilities, Unavailable};
pub(super) async fn run(_: &Inner) -> Result<Capabilities, Unavailable> {
    Err(super::settings::unavailable("x", "y"))
}
