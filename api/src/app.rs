//! What every handler can reach.

use std::ops::Deref;
use std::sync::Arc;

use serde::Deserialize;
use stackship_domain::TofuVersion;
use stackship_policy::Evaluator;
use stackship_projections::{ViewWaiter, Views};
use stackship_store::Store;
use stackship_store::notify::Nudges;
use utoipa::ToSchema;

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
    /// Tries uploaded policies.
    pub evaluator: Evaluator,
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
    /// On what the runs of a workspace that does not say execute.
    pub default_platform: Platform,
    /// How long a lease lasts without a heartbeat.
    pub lease_seconds: u32,
    /// The longest a plan may take.
    pub plan_seconds_max: u32,
    /// The longest an apply may take.
    pub apply_seconds_max: u32,
    /// How often an applying OpenTofu saves its state on the way.
    pub snapshot_interval_seconds: u32,
}

/// How long a plan waits for a decision when its workspace does not say, in seconds: a day.
pub const APPROVAL_SECONDS_DEFAULT: u32 = 24 * 60 * 60;

/// On what runs execute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
pub enum Platform {
    /// Linux on x86-64.
    #[serde(rename = "linux_amd64")]
    LinuxAmd64,
    /// Linux on 64-bit Arm.
    #[serde(rename = "linux_arm64")]
    LinuxArm64,
}

impl Platform {
    /// The one that this program was built for: that of the runner in its own process.
    pub const OWN: Self = if cfg!(target_arch = "aarch64") {
        Self::LinuxArm64
    } else {
        Self::LinuxAmd64
    };

    /// Its name, as OpenTofu has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LinuxAmd64 => "linux_amd64",
            Self::LinuxArm64 => "linux_arm64",
        }
    }
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
