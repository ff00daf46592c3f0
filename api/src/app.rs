//! What every handler can reach.

use std::ops::Deref;
use std::sync::Arc;

use stackship_domain::TofuVersion;
use stackship_projections::{ViewWaiter, Views};
use stackship_store::Store;
use stackship_store::notify::Nudges;

use crate::signed_path::SignedPaths;

/// The state of the router. Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<AppInner>);

/// The rooms behind the edges, and the settings of the edges.
pub struct AppInner {
    /// The write side and the records.
    pub store: Store,
    /// The read models.
    pub views: Views,
    /// Waits for a caller's own write.
    pub waiter: ViewWaiter,
    /// Tells that something moved.
    pub nudges: Nudges,
    /// Makes and opens signed paths.
    pub signer: SignedPaths,
    /// How the edges present themselves.
    pub settings: ApiSettings,
}

/// How the edges present themselves, and what they fill in where a request says nothing.
#[derive(Debug, Clone)]
pub struct ApiSettings {
    /// Where people reach this installation; no slash at the end.
    pub public_url: String,
    /// Host and port as people write them in a `cloud` block.
    pub hostname: String,
    /// Base of the URLs that are handed to run tokens.
    pub gateway_url: String,
    /// OpenTofu release of a workspace that names none.
    pub default_tofu_version: TofuVersion,
    /// Region of a workspace that names none.
    pub default_region: String,
    /// How far the read models may be behind while this process calls itself ready.
    pub ready_lag_seconds: u32,
    /// How long a lease lasts without a heartbeat.
    pub lease_seconds: u32,
    /// The longest a plan may take.
    pub plan_seconds_max: u32,
    /// The longest an apply may take.
    pub apply_seconds_max: u32,
    /// How often an applying OpenTofu saves its state on the way.
    pub snapshot_interval_seconds: u32,
}

impl App {
    /// Puts the state of the router together.
    pub fn new(inner: AppInner) -> Self {
        Self(Arc::new(inner))
    }
}

impl Deref for App {
    type Target = AppInner;

    fn deref(&self) -> &AppInner {
        &self.0
    }
}
