//! What the tests are told by their environment.
#![expect(
    clippy::disallowed_methods,
    reason = "the environment says where the programs under test are"
)]

use std::env;
use std::path::{Path, PathBuf};

/// The OpenTofu release that the mirror holds.
pub const TOFU_VERSION: &str = "1.12.6";

/// The server's program.
pub fn stackship() -> PathBuf {
    let told = env::var_os("STACKSHIP_BIN").map(PathBuf::from);
    let program = told.unwrap_or_else(|| target().join("stackship"));
    assert!(
        program.is_file(),
        "no server at {}: run `make test`, or name it in STACKSHIP_BIN",
        program.display()
    );
    program
}

/// The profile's directory: this program runs in its `deps`.
fn target() -> PathBuf {
    let program = env::current_exe().expect("a running program has a path");
    let profile = program.parent().and_then(Path::parent);
    profile
        .expect("cargo puts tests two levels deep")
        .to_owned()
}

/// The directory of verified OpenTofu releases.
pub fn mirror() -> PathBuf {
    let told = env::var_os("STACKSHIP_TOFU_MIRROR").map(PathBuf::from);
    told.unwrap_or_else(|| cache().join("mirror"))
}

/// What scripts/bootstrap fills.
fn cache() -> PathBuf {
    let home = env::var_os("HOME").expect("a home directory");
    let cache = env::var_os("XDG_CACHE_HOME")
        .map_or_else(|| Path::new(&home).join(".cache"), PathBuf::from);
    cache.join("stackship")
}

/// The mirror with the providers for tests.
pub fn providers() -> PathBuf {
    let told = env::var_os("STACKSHIP_TEST_PROVIDERS").map(PathBuf::from);
    let mirror = told.unwrap_or_else(|| cache().join("providers/mirror"));
    assert!(
        mirror.is_dir(),
        "no providers at {}: run scripts/bootstrap test",
        mirror.display()
    );
    mirror
}

/// The CLI that people use.
pub fn tofu() -> PathBuf {
    let program = mirror().join(TOFU_VERSION).join("tofu");
    assert!(
        program.is_file(),
        "no OpenTofu at {}: run `make test`, or name its mirror in STACKSHIP_TOFU_MIRROR",
        program.display()
    );
    program
}

/// A cluster in which databases may be made.
pub fn cluster_url() -> String {
    env::var("DATABASE_URL").expect("DATABASE_URL names a cluster: run `make test`")
}

/// Seed, number of trials and the only trial of a campaign of faults, as far as they are told.
pub fn campaign() -> Option<[Option<u64>; 3]> {
    let number = |name: &str| {
        let told = env::var(format!("STACKSHIP_FAULTS_{name}")).ok()?;
        let number = || {
            told.parse()
                .unwrap_or_else(|_| panic!("{name}={told}: no number"))
        };
        (!told.is_empty()).then(number)
    };
    let told = ["SEED", "TRIALS", "ONLY"].map(number);
    told.iter().any(Option::is_some).then_some(told)
}

/// The search path for programs of the system.
pub fn path() -> String {
    env::var("PATH").expect("a search path")
}
