//! Packed configurations.

use std::io::{Read, repeat};

use flate2::Compression;
use flate2::write::GzEncoder;

/// These files as `tofu` would pack them.
pub fn packed(files: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, content) in files {
        append(&mut archive, name, content.len() as u64, content.as_bytes());
    }
    finish(archive)
}

/// A file that is this large unpacked, and next to nothing packed.
pub fn bomb(bytes: u64) -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    append(&mut archive, "bomb.tf", bytes, repeat(b'\n').take(bytes));
    finish(archive)
}

fn append(
    archive: &mut tar::Builder<GzEncoder<Vec<u8>>>,
    name: &str,
    bytes: u64,
    content: impl Read,
) {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes);
    header.set_mode(0o644);
    archive
        .append_data(&mut header, name, content)
        .expect("memory");
}

fn finish(archive: tar::Builder<GzEncoder<Vec<u8>>>) -> Vec<u8> {
    archive
        .into_inner()
        .and_then(GzEncoder::finish)
        .expect("memory")
}
