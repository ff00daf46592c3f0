//! Names in the environment. One that looks like a setting and is none is a mistake that nobody would
//! notice, so it is refused.

use figment::providers::Env;

use super::InvalidSetting;
use super::table;

/// What every name of ours begins with.
pub(super) const PREFIX: &str = "STACKSHIP_";

/// Names of ours that are no settings, after the prefix.
const OTHERS: &[&str] = &[
    // --config, which is read before any setting.
    "config",
    // Where `with-postgres` finds PostgreSQL; commands run below it.
    "pg_bin",
    // What the scripts tell each other, the tests and `bench`; the demo starts the server among them.
    "bin",
    "tofu",
    SCRIPTS_MIRROR,
    "test_providers",
    "demo_port",
    "faults_trials",
    "faults_seed",
    "faults_only",
];

/// The scripts' mirror. One underscore more, and it is a setting.
const SCRIPTS_MIRROR: &str = "tofu_mirror";

/// Refuses names with our prefix that nobody reads.
pub(super) fn check() -> Result<(), InvalidSetting> {
    let unknown = Env::prefixed(PREFIX)
        .iter()
        .find(|(name, value)| !is_read(name.as_str(), value));
    unknown.map_or(Ok(()), |(name, _)| Err(refused(name.as_str())))
}

/// Whether the mirror is set for the scripts alone: then whoever starts a server meant it.
pub fn names_the_scripts_mirror() -> bool {
    Env::prefixed(PREFIX)
        .iter()
        .any(|(name, _)| name == SCRIPTS_MIRROR)
}

fn is_read(name: &str, value: &str) -> bool {
    table::is_setting(name) || OTHERS.contains(&name) || is_of_a_cluster(name, value)
}

/// Kubernetes tells every container of the services around it: of one that is called `stackship` under
/// these names.
fn is_of_a_cluster(name: &str, value: &str) -> bool {
    let is_address = name == "port" && value.contains("://");
    is_address || name.starts_with("port_") || name.starts_with("service_")
}

fn refused(name: &str) -> InvalidSetting {
    let instead = table::nearest(name).map(|setting| {
        let variable = setting.replace('.', "__").to_ascii_uppercase();
        format!("did you mean {PREFIX}{variable}? ")
    });
    InvalidSetting::of(
        format!(
            "environment variable `{PREFIX}{}`",
            name.to_ascii_uppercase()
        ),
        format!(
            "there is no such setting; {}`stackship settings` lists all",
            instead.unwrap_or_default()
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_what_others_read_pass() {
        for (name, value) in [
            ("runner__slots", "3"),
            ("listen", "127.0.0.1:1"),
            ("config", "x.toml"),
            ("tofu_mirror", "/m"),
            ("port", "tcp://10.0.0.1:8300"),
            ("port_8300_tcp_addr", "10.0.0.1"),
            ("service_host", "10.0.0.1"),
        ] {
            assert!(is_read(name, value), "{name}");
        }
        for (name, value) in [
            ("runner_slots", "3"),
            ("port", "8300"),
            ("lisen", "127.0.0.1:1"),
            ("faults", "1"),
        ] {
            assert!(!is_read(name, value), "{name}");
        }
    }
}
