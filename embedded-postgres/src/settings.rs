//! What a caller decides about a cluster.

use std::path::PathBuf;
use std::time::Duration;

/// A loaded two-core machine took 9 s for `initdb` alone; five seconds would be a flake.
pub(crate) const START_LIMIT: Duration = Duration::from_mins(1);

/// How long a server may take to finish its transactions and write its checkpoint.
pub(crate) const STOP_LIMIT: Duration = Duration::from_secs(30);

/// Whether the data has to survive a crash of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// PostgreSQL's own defaults: what was committed stays committed.
    Durable,
    /// For tests only: nothing is flushed to disk, and a crash may lose everything.
    Throwaway,
}

/// Where a cluster lives and how it runs.
///
/// Beside the data directory `DIR` the supervisor keeps `DIR.lock`, `DIR.socket`, `DIR.tmp-*` (only
/// while a cluster is made) and `postgres.log`. `DIR` itself may be missing but should not be
/// a mount point, because a finished cluster is moved to that name.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The cluster's data directory; made when it does not exist.
    pub data_dir: PathBuf,
    /// Whether the data has to survive a crash.
    pub durability: Durability,
    /// The directory of the server's socket. Default: `DIR.socket`. It must be ours alone (0700).
    pub socket_dir: Option<PathBuf>,
    /// Where a short socket directory is made when the wanted path is too long for a socket
    /// (or no UTF-8, or has a comma):
    /// callers pass `XDG_RUNTIME_DIR`. Default: `/tmp`.
    pub runtime_dir: Option<PathBuf>,
    /// The directory of `postgres` and `initdb`. When given, no other place is looked at.
    pub bin_dir: Option<PathBuf>,
    /// Further server settings, name and value. They override this crate's choices except for
    /// those that keep the server private.
    pub extra: Vec<(String, String)>,
    /// The longest a start may take, from waiting for a predecessor to "ready".
    pub start_limit: Duration,
    /// The longest a stop may take before open transactions are cut off.
    pub stop_limit: Duration,
}

impl Settings {
    /// Settings with every default for a cluster in `data_dir`.
    pub fn new(data_dir: impl Into<PathBuf>, durability: Durability) -> Self {
        Self {
            data_dir: data_dir.into(),
            durability,
            socket_dir: None,
            runtime_dir: None,
            bin_dir: None,
            extra: Vec::new(),
            start_limit: START_LIMIT,
            stop_limit: STOP_LIMIT,
        }
    }

    /// The `-c name=value` arguments of the server, without those about its socket.
    pub(crate) fn server_settings(&self) -> Vec<(String, String)> {
        let ours: &[(&str, &str)] = match self.durability {
            Durability::Durable => &[("max_connections", "100")],
            Durability::Throwaway => &[
                ("max_connections", "200"),
                ("fsync", "off"),
                ("synchronous_commit", "off"),
                ("full_page_writes", "off"),
                ("autovacuum", "off"),
                // Its default shrinks with the segments that a throwaway cluster is made with.
                ("max_wal_size", "1GB"),
            ],
        };
        let common: &[(&str, &str)] = &[
            ("max_prepared_transactions", "0"),
            ("cluster_name", "stackship"),
            ("timezone", "UTC"),
            ("log_timezone", "UTC"),
        ];
        let own = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        common
            .iter()
            .chain(ours)
            .map(own)
            .chain(self.extra.iter().cloned())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extra_settings_come_last_because_the_server_takes_the_last_one() {
        let mut settings = Settings::new("/data/pg", Durability::Throwaway);
        settings.extra = vec![("max_connections".into(), "7".into())];
        let all = settings.server_settings();
        let last = all.iter().rfind(|(name, _)| name == "max_connections");
        assert_eq!(last.map(|(_, value)| value.as_str()), Some("7"));
    }

    #[test]
    fn a_durable_cluster_never_touches_a_durability_setting() {
        let all = Settings::new("/data/pg", Durability::Durable).server_settings();
        for name in ["fsync", "synchronous_commit", "full_page_writes"] {
            assert!(!all.iter().any(|(other, _)| other == name), "{name}");
        }
    }
}
