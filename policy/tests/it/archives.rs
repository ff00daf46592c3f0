//! Archives as they arrive, the canonical form, and the digest.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use serde_json::json;
use stackship_policy::bundle::{ARCHIVE_BYTES_MAX, CONTENT_BYTES_MAX, FILES_MAX};
use stackship_policy::{Bundle, BundleError};
use tar::{EntryType, Header};

use crate::support::{archive, bundle_of, manifest, policy};

fn rego(id: &str) -> String {
    format!("package stackship.{id}\ndeny contains \"x\" if false\n")
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// An archive of one good policy and one more entry of the given kind.
fn with_entry(kind: EntryType, path: &str) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    let manifest = manifest(&[policy("a", "advisory")]);
    for (name, text) in [("./manifest.json", manifest), ("./a.rego", rego("a"))] {
        let mut header = Header::new_gnu();
        header.set_size(u64::try_from(text.len()).unwrap());
        tar.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(0);
    // Written by hand: the builder would refuse a path that climbs.
    header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
    header.as_gnu_mut().unwrap().linkname[..4].copy_from_slice(b"/etc");
    header.set_cksum();
    tar.append(&header, &[][..]).unwrap();
    compressed(&tar.into_inner().unwrap())
}

#[test]
fn directories_are_passed_over_and_everything_else_that_is_no_file_is_refused() {
    Bundle::from_archive(&with_entry(EntryType::Directory, "./")).unwrap();
    for kind in [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Fifo,
        EntryType::Char,
        EntryType::Block,
        EntryType::Continuous,
        EntryType::new(b'?'),
    ] {
        let refused = Bundle::from_archive(&with_entry(kind, "data.json")).unwrap_err();
        assert!(
            refused.to_string().contains("only regular files"),
            "{kind:?}: {refused}"
        );
    }
    assert!(Bundle::from_archive(&with_entry(EntryType::GNUSparse, "data.json")).is_err());
    for path in [
        "/data.json",
        "../data.json",
        "a/../data.json",
        "a//b",
        ".git/config",
        "a\\b",
        "a\tb",
    ] {
        let refused = Bundle::from_archive(&with_entry(EntryType::Regular, path)).unwrap_err();
        assert!(
            refused.to_string().contains("its name is not allowed"),
            "{path}: {refused}"
        );
    }
}

#[test]
fn what_is_no_archive_is_refused_with_how_to_make_one() {
    for upload in [&b""[..], b"text", b"PK\x03\x04", &compressed(b"not a tar")] {
        let refused = Bundle::from_archive(upload).unwrap_err();
        let known = matches!(
            refused,
            BundleError::Archive { .. } | BundleError::File { .. }
        );
        assert!(known, "{refused}");
    }
    let whole = archive(&[
        ("manifest.json", &manifest(&[policy("a", "advisory")])),
        ("a.rego", &rego("a")),
    ]);
    assert!(Bundle::from_archive(&whole[..whole.len() - 20]).is_err());
    // Cut off inside the tar, with a gzip trailer that fits.
    let mut tar = Vec::new();
    std::io::copy(&mut flate2::read::GzDecoder::new(&whole[..]), &mut tar).unwrap();
    let last = tar
        .windows(7)
        .rposition(|bytes| bytes == b"package")
        .unwrap();
    let refused = Bundle::from_archive(&compressed(&tar[..last + 10])).unwrap_err();
    assert!(refused.to_string().contains("cut off"), "{refused}");
    Bundle::from_archive(&whole).unwrap();
}

#[test]
fn bounds_hold_before_and_after_unpacking() {
    let too_large = |upload: &[u8]| {
        let refused = Bundle::from_archive(upload).unwrap_err();
        assert!(matches!(refused, BundleError::TooLarge { .. }), "{refused}");
    };
    too_large(&vec![0; ARCHIVE_BYTES_MAX + 1]);
    // A megabyte that unpacks to a gigabyte is not unpacked.
    too_large(&compressed(&vec![0; 64 * 1024 * 1024]));
    let manifest = manifest(&[policy("a", "advisory")]);
    let data = |length: usize| {
        let data = format!("{{\"a\":\"{}\"}}", "x".repeat(length));
        archive(&[
            ("manifest.json", &manifest),
            ("a.rego", &rego("a")),
            ("data.json", &data),
        ])
    };
    Bundle::from_archive(&data(CONTENT_BYTES_MAX - 1_000)).unwrap();
    too_large(&data(CONTENT_BYTES_MAX));

    let ids: Vec<_> = (0..FILES_MAX).map(|number| format!("p{number}")).collect();
    let files = |count: usize| {
        let entries: Vec<_> = ids[..count]
            .iter()
            .map(|id| policy(id, "advisory"))
            .collect();
        let mut files = vec![(
            "manifest.json".to_owned(),
            crate::support::manifest(&entries),
        )];
        files.extend(
            ids[..count]
                .iter()
                .map(|id| (format!("{id}.rego"), rego(id))),
        );
        let files: Vec<_> = files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        Bundle::from_archive(&archive(&files))
    };
    files(FILES_MAX - 2).unwrap();
    assert_eq!(
        files(FILES_MAX),
        Err(BundleError::TooManyFiles { limit: FILES_MAX })
    );
}

#[test]
fn two_archives_of_the_same_policies_are_the_same_bundle() {
    let (a, b) = (policy("a", "advisory"), policy("b", "hard_mandatory"));
    let one = archive(&[
        ("manifest.json", &manifest(&[a.clone(), b.clone()])),
        ("a.rego", &rego("a")),
        ("b.rego", &rego("b")),
    ]);
    let spaced =
        serde_json::to_string_pretty(&json!({"policies": [b, a], "version": "1"})).unwrap();
    let other = archive(&[
        ("./b.rego", &rego("b")),
        ("./a.rego", &rego("a")),
        ("./manifest.json", &spaced),
    ]);
    let (one, other) = (
        Bundle::from_archive(&one).unwrap(),
        Bundle::from_archive(&other).unwrap(),
    );
    assert_eq!(one.to_stored(), other.to_stored());
    assert_eq!(one.digest(), other.digest());
}

#[test]
fn whatever_matters_changes_the_digest() {
    let base = || vec![(policy("a", "advisory"), "deny contains \"x\"")];
    let mut digests = vec![bundle_of(&base(), None).digest()];
    let mut note = |bundle: &Bundle| digests.push(bundle.digest());
    note(&bundle_of(&base(), Some("{}")));
    note(&bundle_of(&base(), Some("{ }")));
    note(&bundle_of(
        &[(policy("a", "advisory"), "deny contains \"y\"")],
        None,
    ));
    for (key, value) in [
        ("level", json!("soft_mandatory")),
        ("enabled", json!(false)),
        ("title", json!("T")),
        ("description", json!("D")),
        ("file", json!("b.rego")),
    ] {
        let mut changed = base();
        changed[0].0[key] = value;
        note(&bundle_of(&changed, None));
    }
    let newer = json!({"version": "2", "policies": [policy("a", "advisory")]}).to_string();
    let text = "package stackship.a\ndeny contains \"x\"\n";
    note(&Bundle::from_archive(&archive(&[("manifest.json", &newer), ("a.rego", text)])).unwrap());
    let count = digests.len();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!((count, digests.len()), (10, 10));
}

#[test]
fn the_stored_form_and_the_digest_stay_what_they_are() {
    let bundle = bundle_of(
        &[(policy("a", "hard_mandatory"), "deny contains \"ü\"")],
        Some("{\"n\": 1.5}"),
    );
    let stored = String::from_utf8(bundle.to_stored()).unwrap();
    assert_eq!(
        stored,
        r#"{"files":{"a.rego":"package stackship.a\ndeny contains \"ü\"\n","data.json":"{\"n\": 1.5}"},"manifest":{"policies":[{"enabled":true,"file":"a.rego","id":"a","level":"hard_mandatory"}],"version":"1"},"schema":"stackship.policy-bundle/v1"}"#
    );
    assert_eq!(
        bundle.digest().to_string(),
        "6378c0b9dc5916fd94eb8cf7cf196eff513ca814decced604a2b36717bae4139"
    );
}

#[test]
fn only_the_canonical_stored_form_is_read_back() {
    let bundle = bundle_of(&[(policy("a", "advisory"), "deny contains \"x\"")], None);
    let stored = String::from_utf8(bundle.to_stored()).unwrap();
    assert_eq!(Bundle::from_stored(stored.as_bytes()), Ok(bundle));
    for other in [
        format!(" {stored}"),
        format!("{stored}\n"),
        stored.replace("policy-bundle/v1", "policy-bundle/v2"),
        stored.replace("\"enabled\":true", "\"enabled\":1"),
        stored.replace("\"a.rego\":\"p", "\"b.rego\":\"p"),
        stored.replace("\"advisory\"", "\"none\""),
        stored.replace("deny contains", "deny contains [[[[[[[[["),
        stored.replace("{\"files\"", "{\"more\":1,\"files\""),
    ] {
        assert_ne!(other, stored);
        assert!(Bundle::from_stored(other.as_bytes()).is_err(), "{other}");
    }
}

/// Texts that are sometimes what a file of a bundle holds.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(manifest(&[
            policy("a", "advisory"),
            policy("b", "soft_mandatory")
        ])),
        Just("package stackship.a\ndeny contains \"x\"".to_owned()),
        Just("{\"a\": [1.5]}".to_owned()),
        "(?s).{0,80}",
        "[\\[\\]{}\"`#\\\\\n]{0,60}",
    ]
}

fn path() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("manifest.json".to_owned()),
        Just("a.rego".to_owned()),
        Just("b.rego".to_owned()),
        Just("data.json".to_owned()),
        "[a-z./]{1,12}",
    ]
}

proptest! {
    #[test]
    fn a_bundle_that_is_read_reads_back_the_same(
        version in "[a-z0-9.]{1,10}",
        ids in proptest::collection::btree_set("[a-z][a-z0-9_]{0,8}x", 1..6),
        rules in "[a-z \n\"ü#]{0,60}",
        data in proptest::option::of("[ a-z0-9]{0,20}"),
    ) {
        let entries: Vec<_> = ids.iter().map(|id| policy(id, "soft_mandatory")).collect();
        let mut files = vec![("manifest.json".to_owned(), json!({"version": version, "policies": entries}).to_string())];
        files.extend(ids.iter().map(|id| (format!("{id}.rego"), rules.clone())));
        files.extend(data.map(|data| ("data.json".to_owned(), json!({"k": data}).to_string())));
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let bundle = Bundle::from_archive(&archive(&files)).unwrap();
        let read = Bundle::from_stored(&bundle.to_stored()).unwrap();
        prop_assert_eq!(read.to_stored(), bundle.to_stored());
        prop_assert_eq!(read.digest(), bundle.digest());
        prop_assert_eq!(read, bundle);
    }

    #[test]
    fn arbitrary_archives_never_panic(files in proptest::collection::vec((path(), text()), 0..6)) {
        let mut tar = tar::Builder::new(Vec::new());
        for (path, text) in &files {
            let mut header = Header::new_gnu();
            header.set_size(u64::try_from(text.len()).unwrap());
            header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_cksum();
            tar.append(&header, text.as_bytes()).unwrap();
        }
        let upload = compressed(&tar.into_inner().unwrap());
        if let Ok(bundle) = Bundle::from_archive(&upload) {
            prop_assert_eq!(Bundle::from_stored(&bundle.to_stored()).unwrap(), bundle);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        prop_assert!(Bundle::from_archive(&bytes).is_err());
        prop_assert!(Bundle::from_archive(&compressed(&bytes)).is_err());
        prop_assert!(Bundle::from_stored(&bytes).is_err());
    }

    #[test]
    fn a_damaged_archive_never_panics(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut tar = tar::Builder::new(Vec::new());
        let text = rego("a");
        let mut header = Header::new_gnu();
        header.set_size(u64::try_from(text.len()).unwrap());
        tar.append_data(&mut header, "a.rego", text.as_bytes()).unwrap();
        let mut tar = tar.into_inner().unwrap();
        let at = at.index(tar.len());
        tar[at] = byte;
        prop_assert!(Bundle::from_archive(&compressed(&tar)).is_err());
    }
}
