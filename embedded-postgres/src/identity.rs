//! As whom PostgreSQL can run.
//!
//! It refuses root, and it refuses a uid without a name (containers with a random uid). Both are
//! solved by a user namespace in which our uid has another number: no second account, no `chown`,
//! and every file stays ours outside.

use std::fs;
use std::process::{Command, Stdio};

/// The uid that PostgreSQL sees inside the namespace: `nobody`, which has a name everywhere.
pub(crate) const MAPPED_ID: u32 = 65534;

/// How the server's processes get a user that PostgreSQL accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity {
    /// We are an ordinary user; run as that.
    Own,
    /// Run in a user namespace.
    Mapped {
        /// Why, for the error text.
        who: &'static str,
    },
}

impl Identity {
    /// What this process needs.
    pub(crate) fn of_this_process() -> Self {
        let uid = nix::unistd::geteuid();
        if uid.is_root() {
            Self::Mapped { who: "root" }
        } else if has_name(uid.as_raw()) {
            Self::Own
        } else {
            Self::Mapped {
                who: "a user without a name",
            }
        }
    }
}

/// Directories of users other than `/etc/passwd` are asked through `getent`, as the server's own
/// libc would.
fn has_name(uid: u32) -> bool {
    let local = fs::read_to_string("/etc/passwd").is_ok_and(|passwd| lists(&passwd, uid));
    local
        || Command::new("getent")
            .args(["passwd", &uid.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
}

fn lists(passwd: &str, uid: u32) -> bool {
    passwd
        .lines()
        .filter_map(|line| line.split(':').nth(2))
        .any(|field| field.parse() == Ok(uid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_uid_field_counts() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:2000:4000:/home/ann:/bin/sh\n";
        assert!(lists(passwd, 1000));
        assert!(!lists(passwd, 2000));
        assert!(!lists(passwd, 4000));
    }
}
