//! The dependency bundle: the lock file and every file of every installed module, as one digest. The
//! lock file pins the provider packages by their own hashes.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;

use serde_json::json;
use stackship_domain::{Sha256Digest, canonical};

/// The largest listing of modules, in bytes.
pub(crate) const LISTING_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Lists the files of the installed modules with their digests. The working copies' version control
/// data is left out: it differs from one download to the next.
pub(crate) const LISTING_SCRIPT: &str = "[ -d .terraform/modules ] || exit 0
find .terraform/modules -name .git -prune -o -type f -exec sha256sum {} +
find .terraform/modules -name .git -prune -o -type l -printf '%l -> %p\\n'";

/// The digest of the bundle.
pub(crate) fn bundle_digest(
    lock_file: Option<Sha256Digest>,
    listing: &Path,
) -> io::Result<Sha256Digest> {
    let file = BufReader::new(File::open(listing)?.take(LISTING_BYTES_MAX));
    let mut modules = file.split(b'\n').collect::<io::Result<Vec<_>>>()?;
    // The order in which a directory is read is not part of what is in it.
    modules.sort_unstable();
    let modules: Vec<_> = modules
        .iter()
        .map(|line| String::from_utf8_lossy(line))
        .collect();
    let bundle = json!({ "lock_file": lock_file, "modules": modules });
    let bytes = canonical::to_bytes(&bundle).expect("a bundle holds texts only");
    Ok(Sha256Digest::of(&bytes))
}
