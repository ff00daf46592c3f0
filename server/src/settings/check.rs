//! What a setting may be. A server that starts with a wrong one fails later and worse.

use std::path::Path;

use stackship_domain::{Sha256Digest, TofuVersion};
use stackship_sandbox::Limits;

use super::Settings;

/// Bytes in a MiB.
const MIB: u64 = 1 << 20;

/// A setting that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {why}")]
pub struct InvalidSetting {
    what: String,
    why: String,
}

impl InvalidSetting {
    pub(super) fn new(setting: impl std::fmt::Display, why: impl Into<String>) -> Self {
        Self::of(format!("setting `{setting}`"), why)
    }

    /// What is no single setting, or says more of where it stands.
    pub(super) fn of(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            why: why.into(),
        }
    }

    pub(super) fn file(path: &Path) -> Self {
        Self::of("--config", format!("there is no file `{}`", path.display()))
    }
}

impl Settings {
    pub(super) fn check(&self) -> Result<(), InvalidSetting> {
        self.check_urls()?;
        self.default_tofu_version
            .parse::<TofuVersion>()
            .map_err(|error| InvalidSetting::new("default_tofu_version", error.to_string()))?;
        between("connections_max", self.connections_max, 16, 100_000)?;
        between("lease_seconds", self.lease_seconds, 5, 600)?;
        between("ready_lag_seconds", self.ready_lag_seconds, 1, 3_600)?;
        between(
            "shutdown_grace_seconds",
            self.shutdown_grace_seconds,
            1,
            86_400,
        )?;
        between("runner.slots", u32::from(self.runner.slots), 1, 64)?;
        between(
            "runner.plan_seconds_max",
            self.runner.plan_seconds_max,
            10,
            86_400,
        )?;
        between(
            "runner.apply_seconds_max",
            self.runner.apply_seconds_max,
            10,
            86_400,
        )?;
        between("runner.pids", self.runner.pids, 32, 32_768)?;
        between("runner.cpu_millis", self.runner.cpu_millis, 100, 256_000)?;
        between(
            "runner.interrupt_grace_seconds",
            self.runner.interrupt_grace_seconds,
            1,
            3_600,
        )?;
        between(
            "runner.snapshot_interval_seconds",
            self.runner.snapshot_interval_seconds,
            1,
            3_600,
        )?;
        self.check_memory()?;
        let region = |name: &str| {
            let plain =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            (1..=64).contains(&name.len()) && name.bytes().all(plain)
        };
        for (setting, name) in [
            ("default_region", Some(&self.default_region)),
            ("runner.region", self.runner.region.as_ref()),
        ] {
            if name.is_some_and(|name| !region(name)) {
                return Err(InvalidSetting::new(
                    setting,
                    "has 1 to 64 of a-z, 0-9 and `-`",
                ));
            }
        }
        self.check_releases()
    }

    /// A sandbox whose files do not fit into its memory is refused at every launch.
    fn check_memory(&self) -> Result<(), InvalidSetting> {
        let scratch = Limits::default().tmp_bytes.div_ceil(MIB);
        let least = self.runner.workspace_mib.saturating_add(scratch);
        if self.runner.memory_mib > least {
            return Ok(());
        }
        let why = format!(
            "must be larger than {least}: `runner.workspace_mib` and {scratch} MiB for temporary files live in it, \
             beside the programs"
        );
        Err(InvalidSetting::new("runner.memory_mib", why))
    }

    fn check_urls(&self) -> Result<(), InvalidSetting> {
        let http = |url: &str| url.starts_with("http://") || url.starts_with("https://");
        if let Some(url) = &self.public_url
            && (!http(url) || url.ends_with('/'))
        {
            return Err(InvalidSetting::new(
                "public_url",
                "begins with http:// or https:// and has no trailing slash",
            ));
        }
        if let Some(url) = &self.runner.control_plane_url
            && !http(url)
        {
            return Err(InvalidSetting::new(
                "runner.control_plane_url",
                "begins with http:// or https://",
            ));
        }
        if let Some(name) = &self.hostname
            && (name.contains('/') || name.is_empty())
        {
            return Err(InvalidSetting::new(
                "hostname",
                "is a host name with an optional port, without a scheme",
            ));
        }
        for (setting, url) in [
            ("database_url", &self.database_url),
            ("migration_database_url", &self.migration_database_url),
        ] {
            if url.as_ref().is_some_and(|url| {
                !url.starts_with("postgres://") && !url.starts_with("postgresql://")
            }) {
                return Err(InvalidSetting::new(setting, "begins with postgres://"));
            }
        }
        Ok(())
    }

    fn check_releases(&self) -> Result<(), InvalidSetting> {
        for (version, sum) in &self.tofu.release_sha256 {
            let setting = format!("tofu.release_sha256.{version}");
            version
                .parse::<TofuVersion>()
                .map_err(|error| InvalidSetting::new(setting.clone(), error.to_string()))?;
            sum.parse::<Sha256Digest>()
                .map_err(|error| InvalidSetting::new(setting, error.to_string()))?;
        }
        Ok(())
    }
}

fn between(setting: &'static str, value: u32, least: u32, most: u32) -> Result<(), InvalidSetting> {
    if (least..=most).contains(&value) {
        Ok(())
    } else {
        Err(InvalidSetting::new(
            setting,
            format!("must be between {least} and {most}"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut Settings)) -> String {
        let mut settings = Settings::default();
        change(&mut settings);
        settings
            .check()
            .expect_err("the setting was taken")
            .to_string()
    }

    #[test]
    fn the_defaults_are_valid() {
        assert!(Settings::default().check().is_ok());
    }

    #[test]
    fn an_error_names_its_setting() {
        assert!(
            refused(|settings| settings.public_url = Some("ship.example".into()))
                .contains("`public_url`")
        );
        assert!(refused(|settings| settings.connections_max = 0).contains("`connections_max`"));
        assert!(refused(|settings| settings.lease_seconds = 0).contains("`lease_seconds`"));
        assert!(refused(|settings| settings.runner.memory_mib = 1).contains("`runner.memory_mib`"));
        assert!(
            refused(|settings| settings.runner.memory_mib = settings.runner.workspace_mib + 256)
                .contains("larger than 1280"),
            "temporary files need their place too"
        );
        assert!(
            refused(|settings| settings.default_tofu_version = "latest".into())
                .contains("`default_tofu_version`")
        );
        assert!(
            refused(|settings| settings.database_url = Some("mysql://x".into()))
                .contains("`database_url`")
        );
        assert!(
            refused(|settings| {
                settings
                    .tofu
                    .release_sha256
                    .insert("1.12.6".into(), "abc".into());
            })
            .contains("`tofu.release_sha256.1.12.6`")
        );
    }
}
