//! Settings: one file, then the environment, checked once at start. Every error names its setting.

mod check;
mod environment;
mod table;
mod words;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use figment::Figment;
use figment::providers::{Env, Format as _, Serialized, Toml};
use serde::{Deserialize, Serialize};

pub use check::InvalidSetting;
pub use environment::names_the_scripts_mirror;
pub use table::describe;

/// Every setting. `stackship settings` prints what each means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub data_dir: PathBuf,
    pub listen: SocketAddr,
    pub public_url: Option<String>,
    pub hostname: Option<String>,
    pub connections_max: u32,
    pub database_url: Option<String>,
    pub migration_database_url: Option<String>,
    pub postgres_bin_dir: Option<PathBuf>,
    pub default_tofu_version: String,
    pub default_region: String,
    pub log_format: LogFormat,
    pub log_filter: String,
    pub lease_seconds: u32,
    pub ready_lag_seconds: u32,
    pub shutdown_grace_seconds: u32,
    pub runner: RunnerPart,
    pub tofu: TofuPart,
}

/// How logs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    Text,
    Json,
}

/// The runner in this process, or the runner this process is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunnerPart {
    pub enabled: bool,
    pub name: String,
    pub control_plane_url: Option<String>,
    pub token_file: Option<PathBuf>,
    pub region: Option<String>,
    pub slots: u16,
    pub egress_allow: Vec<String>,
    pub provider_mirror: Option<PathBuf>,
    pub plan_seconds_max: u32,
    pub apply_seconds_max: u32,
    pub memory_mib: u64,
    pub cpu_millis: u32,
    pub pids: u32,
    pub workspace_mib: u64,
    pub interrupt_grace_seconds: u32,
    pub snapshot_interval_seconds: u32,
}

/// Where exact OpenTofu releases come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TofuPart {
    pub mirror: Option<PathBuf>,
    pub release_url: String,
    pub release_sha256: BTreeMap<String, String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            data_dir: PathBuf::from(".stackship"),
            listen: SocketAddr::from(([127, 0, 0, 1], 8300)),
            public_url: None,
            hostname: None,
            connections_max: 512,
            database_url: None,
            migration_database_url: None,
            postgres_bin_dir: None,
            default_tofu_version: "1.12.6".to_owned(),
            default_region: "local".to_owned(),
            log_format: LogFormat::Text,
            log_filter: "info".to_owned(),
            lease_seconds: 30,
            ready_lag_seconds: 30,
            shutdown_grace_seconds: 60,
            runner: RunnerPart::default(),
            tofu: TofuPart::default(),
        }
    }
}

impl Default for RunnerPart {
    fn default() -> Self {
        Self {
            enabled: true,
            name: "embedded".to_owned(),
            control_plane_url: None,
            token_file: None,
            region: None,
            slots: 4,
            egress_allow: Vec::new(),
            provider_mirror: None,
            plan_seconds_max: 3_600,
            apply_seconds_max: 7_200,
            memory_mib: 3_072,
            cpu_millis: 2_000,
            pids: 512,
            workspace_mib: 1_024,
            interrupt_grace_seconds: 60,
            snapshot_interval_seconds: 20,
        }
    }
}

impl Default for TofuPart {
    fn default() -> Self {
        Self {
            mirror: None,
            release_url: "https://github.com/opentofu/opentofu/releases/download".to_owned(),
            release_sha256: BTreeMap::new(),
        }
    }
}

impl Settings {
    /// Reads the file, then the environment, and checks every value.
    pub fn load(file: Option<&Path>) -> Result<Self, InvalidSetting> {
        let mut figment = Figment::from(Serialized::defaults(Self::default()));
        if let Some(file) = file {
            if !file.is_file() {
                return Err(InvalidSetting::file(file));
            }
            figment = figment.merge(Toml::file_exact(file));
        }
        environment::check()?;
        // STACKSHIP_LOG_FORMAT, STACKSHIP_RUNNER__SLOTS.
        let environment = Env::prefixed(environment::PREFIX)
            .split("__")
            .filter(|key| table::is_setting(key.as_str()));
        let settings: Self = figment
            .merge(environment)
            .extract()
            .map_err(InvalidSetting::from)?;
        settings.check()?;
        settings.absolute()
    }

    /// Paths do not depend on where a child process stands.
    fn absolute(mut self) -> Result<Self, InvalidSetting> {
        let make = |setting: &'static str, path: &Path| {
            std::path::absolute(path)
                .map_err(|error| InvalidSetting::new(setting, error.to_string()))
        };
        self.data_dir = make("data_dir", &self.data_dir)?;
        self.tofu.mirror = self
            .tofu
            .mirror
            .as_deref()
            .map(|path| make("tofu.mirror", path))
            .transpose()?;
        self.runner.provider_mirror = self
            .runner
            .provider_mirror
            .as_deref()
            .map(|path| make("runner.provider_mirror", path))
            .transpose()?;
        Ok(self)
    }

    /// The URL under which people and runners reach this server, without a trailing slash.
    pub fn public_url(&self) -> String {
        self.public_url
            .clone()
            .unwrap_or_else(|| format!("http://{}", self.listen))
    }

    /// The name people write into the `cloud` block.
    pub fn hostname(&self) -> String {
        self.hostname.clone().unwrap_or_else(|| {
            let url = self.public_url();
            url.split_once("://")
                .map_or(url.as_str(), |(_, rest)| rest)
                .to_owned()
        })
    }
}
