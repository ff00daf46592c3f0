//! Configuration versions.

use serde::{Deserialize, Serialize};

use super::{Request, Resource};

/// A configuration version.
pub type ConfigurationResource = Resource<ConfigurationAttributes>;

/// How far its upload has come. The client polls until it reads `uploaded` and treats anything else
/// as "not yet", so a refused upload must be refused while it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ConfigurationStatus {
    /// Nothing has arrived.
    Pending,
    /// It is here.
    Uploaded,
}

/// What a configuration version says of itself.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ConfigurationAttributes {
    /// How far its upload has come.
    pub status: ConfigurationStatus,
    /// Where to upload it, without a credential; absent once it is here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upload_url: Option<String>,
    /// Never: a run is asked for.
    pub auto_queue_runs: bool,
    /// Whether it may only be planned.
    pub speculative: bool,
    /// The client's word for "not from version control".
    pub source: &'static str,
}

/// A configuration version to be created.
pub type ConfigurationRequest = Request<ConfigurationRequestAttributes>;

/// What is asked of it.
#[derive(Debug, Deserialize)]
pub struct ConfigurationRequestAttributes {
    /// Whether it may only be planned: the only mark of `tofu plan`.
    #[serde(default)]
    pub speculative: bool,
}
