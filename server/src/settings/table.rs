//! What each setting means: printed by `stackship settings`, and the list of names that the
//! environment may set.

use std::fmt::Write as _;

/// Name and meaning of every setting.
const TABLE: &[(&str, &str)] = &[
    (
        "data_dir",
        "Where the private PostgreSQL, objects, keys and the runner's work live. Never inside a repository of yours.",
    ),
    (
        "listen",
        "Address and port of the HTTP server. Put a TLS-terminating proxy before it for anything but loopback.",
    ),
    (
        "public_url",
        "URL under which people reach the server; no trailing slash. Default: http:// and `listen`.",
    ),
    (
        "hostname",
        "Name that people write into the `cloud` block. Default: the authority of `public_url`.",
    ),
    (
        "connections_max",
        "Most open connections of the HTTP server. Over it, those that wait for no request are closed, longest first. No address and no credential gets all of them. Leave the process some 200 file descriptors more.",
    ),
    (
        "database_url",
        "PostgreSQL 14 or newer. Without it a private cluster is started in `data_dir`.",
    ),
    (
        "migration_database_url",
        "URL of a role that owns the schema, when `database_url` names one that does not.",
    ),
    (
        "postgres_bin_dir",
        "Directory with `postgres` and `initdb` for the private cluster; found by itself otherwise.",
    ),
    (
        "default_tofu_version",
        "Exact OpenTofu release of new workspaces.",
    ),
    (
        "default_region",
        "Region of new workspaces; runs are offered to runners of their region.",
    ),
    ("log_format", "`text` or `json`."),
    (
        "log_filter",
        "What is logged: `info`, `debug`, or directives such as `stackship_api=debug,info`.",
    ),
    (
        "lease_seconds",
        "How long a runner may be silent before its attempt counts as lost, in seconds.",
    ),
    (
        "ready_lag_seconds",
        "How far the read models may be behind while /readyz answers 200, in seconds.",
    ),
    (
        "shutdown_grace_seconds",
        "How long a shutdown waits for running phases, in seconds.",
    ),
    ("runner.enabled", "Whether `serve` also runs a runner."),
    (
        "runner.name",
        "Names this runner and its control groups; stays the same over restarts.",
    ),
    (
        "runner.control_plane_url",
        "Where `stackship runner` finds the control plane.",
    ),
    (
        "runner.token_file",
        "File with the runner token for `stackship runner`.",
    ),
    (
        "runner.region",
        "Region this runner serves. Default: `default_region`.",
    ),
    ("runner.slots", "How many phases run at the same time."),
    (
        "runner.egress_allow",
        "Hosts a run may reach, as `host`, `*.suffix` or `host:port`. Empty: none.",
    ),
    (
        "runner.provider_mirror",
        "Directory with providers, HOST/NAMESPACE/TYPE; the only source of those it has. Checked at start.",
    ),
    ("runner.plan_seconds_max", "Longest plan, in seconds."),
    ("runner.apply_seconds_max", "Longest apply, in seconds."),
    (
        "runner.memory_mib",
        "Memory of one sandbox, its files included, in MiB.",
    ),
    (
        "runner.cpu_millis",
        "CPU of one sandbox, in thousandths of a core.",
    ),
    ("runner.pids", "Most processes of one sandbox."),
    (
        "runner.workspace_mib",
        "Size of a sandbox's work directory, in MiB.",
    ),
    (
        "runner.interrupt_grace_seconds",
        "How long an interrupted phase may take to end by itself, in seconds; a plan gets 5 at most.",
    ),
    (
        "runner.snapshot_interval_seconds",
        "How often a long apply uploads its state on the way, in seconds.",
    ),
    (
        "tofu.mirror",
        "Directory with verified OpenTofu releases: VERSION/tofu and VERSION/SHA256SUMS.",
    ),
    (
        "tofu.release_url",
        "Base URL of OpenTofu releases, for versions that the mirror lacks.",
    ),
    (
        "tofu.release_sha256",
        "Pinned SHA-256 of release archives by version; nothing else is downloaded.",
    ),
];

/// How alike two names are, of 1, for one to be taken for a misspelt other.
const ALIKE_MIN: f64 = 0.6;

/// Whether an environment name, without prefix and in figment's dotted form, is a setting.
pub(super) fn is_setting(key: &str) -> bool {
    let lower = key.to_ascii_lowercase().replace("__", ".");
    TABLE.iter().any(|(name, _)| *name == lower)
}

/// The setting that was probably meant.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    // One underscore for the dot is the commonest mistake of all.
    let plain = |name: &str| {
        let lower = name.to_ascii_lowercase();
        lower.replace("__", "_").replace('.', "_")
    };
    let meant = plain(name);
    let alike = |setting: &str| strsim::normalized_damerau_levenshtein(&meant, &plain(setting));
    let settings = TABLE.iter().map(|(setting, _)| *setting);
    let (setting, alike) = settings
        .map(|setting| (setting, alike(setting)))
        .max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    (alike >= ALIKE_MIN).then_some(setting)
}

/// The table as text.
pub fn describe() -> String {
    let defaults = serde_json::to_value(super::Settings::default()).unwrap_or_default();
    let mut text = String::from(
        "Every setting stands in the TOML file under its name and in the environment in upper case with\n\
         the prefix STACKSHIP_ and `__` for the dot: runner.slots is STACKSHIP_RUNNER__SLOTS.\n\n",
    );
    for (name, meaning) in TABLE {
        let default = name
            .split('.')
            .try_fold(&defaults, |value, part| value.get(part));
        let default = default.map_or_else(|| "none".to_owned(), ToString::to_string);
        writeln!(text, "{name} = {default}\n    {meaning}")
            .expect("writing to a string cannot fail");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(prefix: &str, value: &serde_json::Value, out: &mut Vec<String>) {
        let Some(members) = value.as_object() else {
            return;
        };
        for (key, member) in members {
            let name = if prefix.is_empty() {
                key.clone()
            } else {
                format!("{prefix}.{key}")
            };
            let is_part = member.is_object() && matches!(name.as_str(), "runner" | "tofu");
            if is_part {
                names(&name, member, out);
            } else {
                out.push(name);
            }
        }
    }

    #[test]
    fn a_misspelt_name_leads_to_the_setting_that_was_meant() {
        for (name, setting) in [
            ("runner_slots", Some("runner.slots")),
            ("RUNNER__SLOT", Some("runner.slots")),
            ("data_dirr", Some("data_dir")),
            ("tofu.miror", Some("tofu.mirror")),
            ("database", Some("database_url")),
            ("colour", None),
        ] {
            assert_eq!(nearest(name), setting, "{name}");
        }
    }

    #[test]
    fn every_setting_is_described_and_every_description_is_a_setting() {
        let mut settings = Vec::new();
        names(
            "",
            &serde_json::to_value(super::super::Settings::default()).unwrap(),
            &mut settings,
        );
        let mut described: Vec<String> = TABLE.iter().map(|(name, _)| (*name).to_owned()).collect();
        settings.sort();
        described.sort();
        assert_eq!(settings, described);
    }
}
