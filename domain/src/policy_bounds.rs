//! How much policy one run may have. Attaching and uploading keep to it, so that no run is made that
//! could not be judged, and evaluating checks it again.

/// The most bundles of one run.
pub const BUNDLES_ATTACHED_MAX: usize = 32;
/// The most policies of one run, disabled ones included.
pub const POLICIES_ATTACHED_MAX: usize = 1_000;
