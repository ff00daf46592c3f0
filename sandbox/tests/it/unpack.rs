//! Archives of strangers.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use stackship_sandbox::unpack::{Rule, SlugLimits, SlugRefusal, SlugSummary, inspect, unpack};
use tar::{EntryType, Header};

/// One entry as raw bytes.
pub type Bytes = Vec<u8>;

fn entry(kind: EntryType, name: &[u8], link: &[u8], mode: u32, content: &[u8]) -> Bytes {
    let mut header = Header::new_gnu();
    let raw = header.as_old_mut();
    raw.name[..name.len()].copy_from_slice(name);
    raw.linkname[..link.len()].copy_from_slice(link);
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(content.len() as u64);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

pub fn file_entry(name: &str, content: &[u8]) -> Bytes {
    entry(EntryType::Regular, name.as_bytes(), b"", 0o644, content)
}

fn link(name: &str, target: &str) -> Bytes {
    entry(
        EntryType::Symlink,
        name.as_bytes(),
        target.as_bytes(),
        0o777,
        b"",
    )
}

fn special(kind: EntryType, name: &str) -> Bytes {
    entry(kind, name.as_bytes(), b"main.tf", 0o644, b"")
}

fn gzip(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn archive(entries: &[Bytes]) -> Bytes {
    gzip(&[entries.concat(), vec![0; 1024]].concat())
}

/// Both ways must agree; gives what the writing one said.
fn both(bytes: &[u8], limits: SlugLimits) -> (Result<SlugSummary, SlugRefusal>, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let written = unpack(bytes, directory.path(), limits);
    let inspected = inspect(bytes, limits);
    assert_eq!(format!("{written:?}"), format!("{inspected:?}"));
    (written, directory)
}

fn refused(entries: &[Bytes]) -> Rule {
    match both(&archive(entries), SlugLimits::default()).0 {
        Err(SlugRefusal::Entry { rule, .. } | SlugRefusal::Archive(rule)) => rule,
        other => panic!("{other:?}"),
    }
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_sound_archive_is_unpacked() {
    let entries = [
        entry(EntryType::Directory, b"./", b"", 0o755, b""),
        entry(EntryType::Directory, b"modules/a/", b"", 0o700, b""),
        file_entry("./main.tf", b"content"),
        file_entry("modules/a/b/main.tf", b""),
        entry(EntryType::Regular, b"run.sh", b"", 0o4755, b"#!/bin/sh\n"),
        link("modules/c", "a/b"),
        link("modules/a/up", "../../main.tf"),
    ];
    let (unpacked, directory) = both(&archive(&entries), SlugLimits::default());
    let summary = unpacked.unwrap();
    assert_eq!(
        (
            summary.files,
            summary.directories,
            summary.symlinks,
            summary.dropped
        ),
        (3, 3, 2, 0)
    );
    let at = |path: &str| directory.path().join(path);
    assert_eq!(std::fs::read(at("main.tf")).unwrap(), b"content");
    assert_eq!(std::fs::read(at("modules/a/up")).unwrap(), b"content");
    assert!(at("modules/c/main.tf").exists());
    assert_eq!(
        (mode(&at("main.tf")) & 0o7111, mode(&at("run.sh")) & 0o7100),
        (0, 0o100)
    );
}

#[test]
fn a_way_out_is_refused() {
    for (entries, rule) in [
        (vec![file_entry("../x", b"")], Rule::Climbs),
        (vec![file_entry("a/../../x", b"")], Rule::Climbs),
        (vec![file_entry("/etc/x", b"")], Rule::Absolute),
        (
            vec![link("out", "/tmp"), file_entry("out/x", b"")],
            Rule::LinkAbsolute,
        ),
        (vec![link("out", "../../etc/shadow")], Rule::LinkClimbs),
        (
            vec![link("a/e", ".."), link("a/x", "e/../..")],
            Rule::LinkClimbsLate,
        ),
        (
            vec![link("d", "e"), file_entry("d/x", b"")],
            Rule::ThroughFile,
        ),
        (
            vec![file_entry("d/x", b""), link("d", "e")],
            Rule::Duplicate,
        ),
        (
            vec![file_entry("d", b""), file_entry("d/x", b"")],
            Rule::ThroughFile,
        ),
    ] {
        assert_eq!(refused(&entries), rule);
    }
}

#[test]
fn other_kinds_of_entry_are_refused() {
    for (kind, rule) in [
        (EntryType::Link, Rule::HardLink),
        (EntryType::Char, Rule::Kind),
        (EntryType::Block, Rule::Kind),
        (EntryType::Fifo, Rule::Kind),
        (EntryType::Continuous, Rule::Kind),
        (EntryType::GNUSparse, Rule::Sparse),
        (EntryType::new(b'V'), Rule::Kind),
    ] {
        assert_eq!(refused(&[special(kind, "x")]), rule, "{kind:?}");
    }
}

#[test]
fn bad_names_are_refused_and_shown_safely() {
    assert_eq!(
        refused(&[file_entry("a", b""), file_entry("a", b"")]),
        Rule::Duplicate
    );
    assert_eq!(
        refused(&[entry(EntryType::Regular, b"\xff", b"", 0o644, b"")]),
        Rule::NotUtf8
    );
    let bytes = archive(&[file_entry("a\u{1b}[2J", b"")]);
    let refusal = inspect(&*bytes, SlugLimits::default()).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        r"entry `a\u{1b}[2J`: the name contains control characters"
    );
}

#[test]
fn names_from_extended_headers_obey_the_same_rules() {
    let pax = |record: &str| entry(EntryType::XHeader, b"x", b"", 0o644, record.as_bytes());
    let long = |name: &[u8]| entry(EntryType::GNULongName, b"././@LongLink", b"", 0o644, name);
    assert_eq!(
        refused(&[pax("13 path=../x\n"), file_entry("good", b"")]),
        Rule::Climbs
    );
    assert_eq!(
        refused(&[long(b"/etc/x\0"), file_entry("good", b"")]),
        Rule::Absolute
    );
    assert_eq!(
        refused(&[pax("21 linkpath=/etc/pas\n"), link("a", "b")]),
        Rule::LinkAbsolute
    );
    assert_eq!(
        refused(&[pax("10 size=9\n"), file_entry("good", b"")]),
        Rule::ExtendedHeader
    );
    assert_eq!(
        refused(&[pax("22 GNU.sparse.major=1\n"), file_entry("a", b"")]),
        Rule::Sparse
    );
    assert_eq!(
        refused(&[long(&vec![b'a'; 70_000]), file_entry("a", b"")]),
        Rule::ExtendedHeader
    );
    let name = format!("{}/main.tf", "d".repeat(200));
    let (unpacked, directory) = both(
        &archive(&[long(name.as_bytes()), file_entry("cut", b"x")]),
        SlugLimits::default(),
    );
    assert_eq!(unpacked.unwrap().files, 1);
    assert!(directory.path().join(name).exists());
}

#[test]
fn what_a_run_must_not_bring_is_dropped_whatever_it_is() {
    let plan = [
        b"PK\x03\x04".to_vec(),
        vec![0; 22],
        vec![6, 0, 0, 0],
        b"tfplan...".to_vec(),
    ]
    .concat();
    let entries = [
        file_entry("main.tf", b""),
        file_entry("terraform.tfstate", b"{}"),
        file_entry(".git/config", b""),
        special(EntryType::Fifo, ".git/pipe"),
        file_entry(".terraform/providers/x", b""),
        file_entry(".terraform/modules/m/main.tf", b""),
        file_entry("._main.tf", b""),
        file_entry("old.tfplan", b""),
        file_entry("saved", &plan),
    ];
    let (unpacked, directory) = both(&archive(&entries), SlugLimits::default());
    let summary = unpacked.unwrap();
    assert_eq!((summary.files, summary.dropped), (2, 7));
    let mut names: Vec<_> = std::fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, [".terraform", "main.tf"]);
}

/// Small limits of every kind, so that a test need not write much to meet them.
fn small() -> SlugLimits {
    SlugLimits {
        packed_bytes: 1 << 20,
        unpacked_bytes: 16 << 20,
        entries: 500,
        ..SlugLimits::default()
    }
}

fn stopped(bytes: &[u8]) -> (Rule, tempfile::TempDir) {
    let (stopped, directory) = both(bytes, small());
    match stopped {
        Err(SlugRefusal::Archive(rule)) => (rule, directory),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_bomb_stops_at_the_limit_of_inflated_bytes() {
    let bomb = gzip(&file_entry("zeros", &vec![0; 40 << 20]));
    assert!(bomb.len() < 1 << 20, "the control: it is small");
    let (rule, directory) = stopped(&bomb);
    assert_eq!(rule, Rule::UnpackedSize);
    assert!(directory.path().join("zeros").metadata().unwrap().len() <= 16 << 20);
}

#[test]
fn a_bomb_behind_the_end_of_the_archive_is_seen() {
    let bytes = gzip(&[file_entry("a", b""), vec![0; 40 << 20]].concat());
    assert_eq!(stopped(&bytes).0, Rule::UnpackedSize);
}

#[test]
fn entries_are_counted_with_the_directories_they_need() {
    let many = |count: u32| -> Vec<Bytes> {
        (0..count)
            .map(|number| file_entry(&format!("f{number}"), b""))
            .collect()
    };
    assert!(
        both(&archive(&many(500)), small()).0.is_ok(),
        "the control: just enough"
    );
    assert_eq!(stopped(&archive(&many(501))).0, Rule::TooMany);
    let deep = |number: u32| file_entry(&format!("{number}/{}x", "a/".repeat(40)), b"");
    let deep: Vec<Bytes> = (0..20).map(deep).collect();
    assert_eq!(stopped(&archive(&deep)).0, Rule::TooMany);
}

#[test]
fn packed_bytes_are_limited() {
    let noise = |number: u32| {
        number
            .wrapping_mul(2_654_435_761)
            .rotate_left(number % 31)
            .to_le_bytes()
    };
    let noise: Vec<u8> = (0..400_000).flat_map(noise).collect();
    let bytes = archive(&[file_entry("a", &noise)]);
    assert!(bytes.len() > 1 << 20, "the control: it does not shrink");
    assert_eq!(stopped(&bytes).0, Rule::PackedSize);
}

#[test]
fn the_limits_in_force_are_the_documented_ones() {
    let limits = SlugLimits::default();
    let found = (
        limits.packed_bytes >> 20,
        limits.unpacked_bytes >> 20,
        limits.entries,
        limits.depth,
    );
    assert_eq!(found, (100, 256, 20_000, 64));
}

#[test]
fn a_damaged_archive_is_refused() {
    let sound = archive(&[file_entry("a", &vec![7; 5000])]);
    let mut flipped = sound.clone();
    let end = flipped.len() - 6;
    flipped[end] ^= 1;
    for bytes in [
        &sound[..sound.len() - 12],
        &flipped,
        b"not gzip",
        b"",
        &gzip(b"not tar, but long enough"),
    ] {
        let (stopped, _directory) = both(bytes, SlugLimits::default());
        assert!(
            matches!(stopped, Err(SlugRefusal::Unreadable(_))),
            "{stopped:?}"
        );
    }
}
