//! The dependency bundle: the lock file, every file of every installed module and of every installed
//! provider package, as one digest. A lock file alone would not tell which package was used: it may list
//! several hashes for one provider.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;

use serde_json::json;
use stackship_domain::{Sha256Digest, canonical};

/// The largest listing of modules and provider packages, in bytes.
pub(crate) const LISTING_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Lists the files of the installed modules and provider packages with their digests. A package of a
/// mirror is a link, which is followed. The working copies' version control data is left out: it differs
/// from one download to the next.
pub(crate) const LISTING_SCRIPT: &str = "if [ -d .terraform/providers ]; then
find -L .terraform/providers -type f -exec sha256sum {} +; fi || exit 1
[ -d .terraform/modules ] || exit 0
find .terraform/modules -name .git -prune -o -type f -exec sha256sum {} +
find .terraform/modules -name .git -prune -o -type l -printf '%l -> %p\\n'";

/// The digest of the bundle.
pub(crate) fn bundle_digest(
    lock_file: Option<Sha256Digest>,
    listing: &Path,
) -> io::Result<Sha256Digest> {
    let file = BufReader::new(File::open(listing)?.take(LISTING_BYTES_MAX));
    let mut files = file.split(b'\n').collect::<io::Result<Vec<_>>>()?;
    // The order in which a directory is read is not part of what is in it.
    files.sort_unstable();
    let files: Vec<_> = files
        .iter()
        .map(|line| String::from_utf8_lossy(line))
        .collect();
    let bundle = json!({ "lock_file": lock_file, "files": files });
    let bytes = canonical::to_bytes(&bundle).expect("a bundle holds texts only");
    Ok(Sha256Digest::of(&bytes))
}
