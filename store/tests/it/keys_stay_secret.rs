//! The key file is made once, for its owner alone; what is sealed opens in one place only.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use stackship_store::objects::{KeyError, KeyRing};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn the_first_start_makes_a_key_that_later_starts_find() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys/key");
    let sealed = KeyRing::load_or_create(&path)
        .unwrap()
        .seal("here", b"value")
        .unwrap();
    assert_eq!((mode(path.parent().unwrap()), mode(&path)), (0o700, 0o600));
    let later = KeyRing::load_or_create(&path).unwrap();
    assert_eq!(
        later
            .open("here", &sealed.key_id, &sealed.bytes)
            .unwrap()
            .as_slice(),
        b"value"
    );
}

#[test]
fn starts_at_the_same_moment_agree_on_one_key() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key");
    let derived: Vec<[u8; 32]> = std::thread::scope(|scope| {
        let start = || KeyRing::load_or_create(&path).unwrap().derive("urls");
        let starts: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
        starts
            .into_iter()
            .map(|start| start.join().unwrap())
            .collect()
    });
    assert!(derived.iter().all(|key| *key == derived[0]));
    assert_eq!(
        fs::read_dir(directory.path()).unwrap().count(),
        1,
        "a losing start left its file"
    );
}

#[test]
fn a_key_file_that_others_can_read_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key");
    KeyRing::load_or_create(&path).unwrap();
    for exposed in [0o640, 0o604, 0o660, 0o644] {
        fs::set_permissions(&path, Permissions::from_mode(exposed)).unwrap();
        let error = KeyRing::load_or_create(&path).unwrap_err();
        assert!(
            matches!(error, KeyError::Exposed { mode, .. } if mode == exposed),
            "{error:?}"
        );
        assert!(error.to_string().contains("chmod 600"), "{error}");
    }
}

#[test]
fn a_file_without_keys_is_refused_and_stays_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key");
    for text in ["", "not a key\n", "abcd\n", &"f".repeat(63)] {
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        let error = KeyRing::load_or_create(&path).unwrap_err();
        assert!(matches!(error, KeyError::Malformed { .. }), "{error:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn an_older_key_still_opens_and_the_first_one_seals() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key");
    let before = KeyRing::load_or_create(&path).unwrap();
    let sealed = before.seal("here", b"value").unwrap();
    let rotated = format!(
        "{}\n{}",
        "11".repeat(32),
        fs::read_to_string(&path).unwrap()
    );
    fs::write(&path, rotated).unwrap();
    let after = KeyRing::load_or_create(&path).unwrap();
    assert_eq!(
        after
            .open("here", &sealed.key_id, &sealed.bytes)
            .unwrap()
            .as_slice(),
        b"value"
    );
    assert_ne!(after.seal("here", b"value").unwrap().key_id, sealed.key_id);
}

#[test]
fn a_sealed_value_opens_unchanged_in_its_place_only() {
    let directory = tempfile::tempdir().unwrap();
    let keys = KeyRing::load_or_create(&directory.path().join("key")).unwrap();
    let sealed = keys.seal("variable/a", b"value").unwrap();
    let elsewhere = keys.open("variable/b", &sealed.key_id, &sealed.bytes);
    assert!(
        matches!(elsewhere, Err(KeyError::Unauthentic)),
        "{elsewhere:?}"
    );
    for at in 0..sealed.bytes.len() {
        let mut changed = sealed.bytes.clone();
        changed[at] ^= 1;
        let outcome = keys.open("variable/a", &sealed.key_id, &changed);
        assert!(
            matches!(outcome, Err(KeyError::Unauthentic)),
            "byte {at}: {outcome:?}"
        );
    }
    let short = keys.open("variable/a", &sealed.key_id, &sealed.bytes[..5]);
    assert!(matches!(short, Err(KeyError::Unauthentic)), "{short:?}");
    let unknown = keys.open("variable/a", "kek-0000000000000000", &sealed.bytes);
    assert!(
        matches!(unknown, Err(KeyError::Unknown { .. })),
        "{unknown:?}"
    );
}

#[test]
fn derived_keys_differ_by_label_and_no_debug_text_tells_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key");
    let keys = KeyRing::load_or_create(&path).unwrap();
    assert_ne!(keys.derive("urls"), keys.derive("cursors"));
    assert_eq!(
        keys.derive("urls"),
        KeyRing::load_or_create(&path).unwrap().derive("urls")
    );
    let secret = fs::read_to_string(&path).unwrap();
    assert!(!format!("{keys:?}").contains(&secret[..16]));
}
