//! A directory of provider packages, laid out as OpenTofu's filesystem mirrors are:
//! `HOST/NAMESPACE/TYPE`, and in it unpacked versions or archives.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use stackship_sandbox::spec::PROVIDERS_DIR;
use thiserror::Error;

use crate::variables::quoted;

/// The most providers of a mirror, and the most entries of a directory in it that are looked at.
pub const PROVIDERS_MAX: usize = 5_000;

/// Why a directory cannot be a provider mirror.
#[derive(Debug, Error)]
pub enum ProviderMirrorError {
    /// A directory cannot be read.
    #[error("`{path}` cannot be read")]
    Unreadable {
        /// The directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Most likely it is a level too high or too low.
    #[error("`{0}` holds no provider as HOST/NAMESPACE/TYPE, where HOST has a dot or a port")]
    Empty(PathBuf),
    /// More than are ever written into a configuration.
    #[error(
        "`{0}` holds more than {PROVIDERS_MAX} providers, or that many entries in one directory"
    )]
    TooMany(PathBuf),
}

/// The providers that a mirror holds, as `HOST/NAMESPACE/TYPE`, in order.
pub fn mirrored_providers(mirror: &Path) -> Result<Vec<String>, ProviderMirrorError> {
    let mut found = Vec::new();
    for host in directories(mirror)?
        .into_iter()
        .filter(|name| is_host(name))
    {
        for namespace in directories(&mirror.join(&host))? {
            let below = format!("{host}/{namespace}");
            let kinds = directories(&mirror.join(&below))?;
            found.extend(kinds.into_iter().map(|kind| format!("{below}/{kind}")));
            if found.len() > PROVIDERS_MAX {
                return Err(ProviderMirrorError::TooMany(mirror.to_owned()));
            }
        }
    }
    if found.is_empty() {
        return Err(ProviderMirrorError::Empty(mirror.to_owned()));
    }
    found.sort_unstable();
    Ok(found)
}

/// The block of OpenTofu's CLI configuration that says where providers come from. Without egress that
/// is the mirror alone. With it, a provider that the mirror has comes from the mirror alone too:
/// OpenTofu would otherwise ask its registry as well, which may be out of reach or know newer ones.
pub(crate) fn provider_installation(
    mirror: Option<&Path>,
    has_egress: bool,
) -> Result<String, ProviderMirrorError> {
    let path = format!("    path = {}\n", quoted(PROVIDERS_DIR));
    let methods = match (mirror, has_egress) {
        (None, _) => "  direct {}\n".to_owned(),
        (Some(_), false) => format!("  filesystem_mirror {{\n{path}  }}\n"),
        (Some(mirror), true) => {
            let names: Vec<_> = mirrored_providers(mirror)?
                .iter()
                .map(|name| quoted(name))
                .collect();
            let names = names.join(", ");
            format!(
                "  filesystem_mirror {{\n{path}    include = [{names}]\n  }}\n  direct {{\n    exclude = [{names}]\n  }}\n"
            )
        }
    };
    Ok(format!("provider_installation {{\n{methods}}}\n"))
}

/// Names of the directories here that can be part of a provider's address; links to directories are
/// none, because where they lead is not shown in a sandbox.
fn directories(path: &Path) -> Result<Vec<String>, ProviderMirrorError> {
    let unreadable = |source| ProviderMirrorError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let mut names = Vec::new();
    for (seen, entry) in fs::read_dir(path).map_err(unreadable)?.enumerate() {
        if seen >= PROVIDERS_MAX {
            return Err(ProviderMirrorError::TooMany(path.to_owned()));
        }
        let entry = entry.map_err(unreadable)?;
        let name = entry
            .file_name()
            .into_string()
            .ok()
            .filter(|name| is_part(name));
        if entry.file_type().map_err(unreadable)?.is_dir() {
            names.extend(name);
        }
    }
    Ok(names)
}

/// No pattern and nothing hidden; which names OpenTofu takes beyond that is its own affair.
fn is_part(name: &str) -> bool {
    let is_usual = |letter: char| letter.is_alphanumeric() || "-_.:".contains(letter);
    !name.starts_with('.') && name.chars().all(is_usual)
}

fn is_host(name: &str) -> bool {
    name.contains(['.', ':'])
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    fn mirror(directories: &[&str]) -> TempDir {
        let mirror = tempfile::tempdir().expect("a temporary directory");
        for name in directories {
            fs::create_dir_all(mirror.path().join(name)).expect("a writable directory");
        }
        mirror
    }

    #[test]
    fn what_can_be_no_provider_is_not_listed() {
        let mirror = mirror(&[
            "registry.example/acme/net/1.0.0/linux_amd64",
            "registry.example/acme/.hidden",
            "registry.example/ac*me/net",
            "localhost:8443/acme/dns",
            "lost+found",
            "backup/acme/net",
        ]);
        fs::write(mirror.path().join("registry.example/acme/index.json"), "{}").expect("writable");
        symlink("net", mirror.path().join("registry.example/acme/linked")).expect("writable");
        let found = mirrored_providers(mirror.path()).expect("a mirror");
        assert_eq!(
            found,
            ["localhost:8443/acme/dns", "registry.example/acme/net"]
        );
    }

    #[test]
    fn a_directory_that_is_no_mirror_is_named() {
        let mirror = mirror(&["acme/net/1.0.0"]);
        let refused = mirrored_providers(mirror.path()).expect_err("no host");
        assert!(matches!(&refused, ProviderMirrorError::Empty(path) if path == mirror.path()));
        let absent = mirror.path().join("absent");
        let refused = mirrored_providers(&absent).expect_err("nothing there");
        assert!(
            matches!(&refused, ProviderMirrorError::Unreadable { path, .. } if *path == absent)
        );
    }

    #[test]
    fn what_the_mirror_has_comes_from_the_mirror_alone() {
        let mirror = mirror(&["registry.example/acme/net", "registry.example/acme/dns"]);
        let block = |mirror, egress| provider_installation(mirror, egress).expect("a mirror");
        assert_eq!(
            block(Some(mirror.path()), true),
            "provider_installation {\n  filesystem_mirror {\n    path = \"/providers\"\n    \
             include = [\"registry.example/acme/dns\", \"registry.example/acme/net\"]\n  }\n  direct {\n    \
             exclude = [\"registry.example/acme/dns\", \"registry.example/acme/net\"]\n  }\n}\n"
        );
        assert_eq!(
            block(Some(mirror.path()), false),
            "provider_installation {\n  filesystem_mirror {\n    path = \"/providers\"\n  }\n}\n"
        );
        assert_eq!(
            block(None, true),
            "provider_installation {\n  direct {}\n}\n"
        );
    }
}
