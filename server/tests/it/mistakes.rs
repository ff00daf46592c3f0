//! What the command line says of the mistakes that are made in the first hour.

use std::fs::File;
use std::path::Path;

use crate::{stackship, text};

/// A command that fails; what it says.
fn refused(arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let output = stackship(arguments, environment);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
    said
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a temporary path is UTF-8")
}

fn expect(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "`{part}` is not in: {said}");
    }
}

#[test]
fn a_misspelt_variable_is_refused_with_the_one_that_was_meant() {
    let said = refused(&["serve"], &[("STACKSHIP_RUNNER_SLOTS", "3")]);
    expect(
        &said,
        &[
            "`STACKSHIP_RUNNER_SLOTS`",
            "did you mean STACKSHIP_RUNNER__SLOTS?",
        ],
    );
    let said = refused(
        &["admin", "create-runner", "--name", "x"],
        &[("STACKSHIP_COLOUR", "1")],
    );
    expect(&said, &["`STACKSHIP_COLOUR`", "there is no such setting"]);
}

#[test]
fn the_mirror_of_the_scripts_is_not_taken_for_the_setting() {
    let mirror = ("STACKSHIP_TOFU_MIRROR", "/mirror");
    let said = refused(&["serve"], &[mirror]);
    expect(&said, &["did you mean STACKSHIP_TOFU__MIRROR"]);
    assert!(stackship(&["settings"], &[mirror]).status.success());
}

#[test]
fn what_is_wrong_in_a_file_is_said_with_the_file_and_in_words() {
    let place = tempfile::tempdir().expect("a directory is made");
    let file = place.path().join("stackship.toml");
    for (content, parts) in [
        (
            "data_dirr = \"x\"\n",
            &["setting `data_dirr` in `", "did you mean `data_dir`?"][..],
        ),
        (
            "[runner]\nslots = \"many\"\n",
            &[
                "setting `runner.slots` in `",
                "must be a whole number from 0 to 65535, and is \"many\"",
            ],
        ),
        (
            "[runner]\nslots = 70000\n",
            &[
                "setting `runner.slots` in `",
                "from 0 to 65535, and is 70000",
            ],
        ),
        (
            "listen = \"8300\"\n",
            &[
                "setting `listen` in `",
                "an address with a port, such as `127.0.0.1:8300`",
            ],
        ),
        (
            "log_format = \"xml\"\n",
            &[
                "setting `log_format` in `",
                "must be `text` or `json`, and is `xml`",
            ],
        ),
        ("data_dir = \n", &["TOML parse error at line 1"]),
    ] {
        std::fs::write(&file, content).expect("the file is written");
        let said = refused(&["--config", path(&file), "serve"], &[]);
        expect(&said, parts);
        expect(&said, &[path(&file)]);
    }
}

#[test]
fn a_host_with_a_scheme_is_refused_before_anything_starts() {
    let place = tempfile::tempdir().expect("a directory is made");
    let data = place.path().join("data");
    let said = refused(
        &["serve"],
        &[
            ("STACKSHIP_DATA_DIR", path(&data)),
            (
                "STACKSHIP_RUNNER__EGRESS_ALLOW",
                "[\"https://registry.opentofu.org\"]",
            ),
        ],
    );
    expect(&said, &["setting `runner.egress_allow`"]);
    assert!(!data.exists(), "the data directory was made");
}

#[test]
fn a_data_directory_that_cannot_be_made_is_named_with_its_setting() {
    let file = tempfile::NamedTempFile::new().expect("a file is made");
    let data = file.path().join("data");
    let own = ("STACKSHIP_DATA_DIR", path(&data));
    let said = refused(&["serve"], &[own]);
    expect(
        &said,
        &[
            "setting `data_dir`",
            path(&data),
            "Not a directory",
            "it has to be",
        ],
    );
}

#[test]
fn a_database_that_refuses_is_named_at_once_with_its_setting_and_without_its_password() {
    let place = tempfile::tempdir().expect("a directory is made");
    let elsewhere = "postgres://ship:hunter2@127.0.0.1:1/ship";
    for command in [&["serve"][..], &["migrate"], &["audit", "verify"]] {
        let said = refused(
            command,
            &[
                ("STACKSHIP_DATA_DIR", path(place.path())),
                ("STACKSHIP_DATABASE_URL", elsewhere),
            ],
        );
        expect(
            &said,
            &[
                "setting `database_url`",
                "127.0.0.1:1",
                "Connection refused",
            ],
        );
        assert!(!said.contains("hunter2"), "{said}");
        assert!(!said.contains("because"), "{said}");
    }
}

#[test]
fn only_the_first_start_makes_an_installation() {
    let place = tempfile::tempdir().expect("a directory is made");
    let data = place.path().join("data");
    let own = ("STACKSHIP_DATA_DIR", path(&data));
    for command in [
        &["migrate"][..],
        &["projections", "rebuild"],
        &["audit", "verify"],
    ] {
        let said = refused(command, &[own]);
        expect(&said, &["there is no installation in", path(&data)]);
    }
    let said = refused(&["audit", "public-key"], &[own]);
    expect(&said, &["audit-heads.key", "--config"]);
    assert!(!data.exists(), "something was made");
}

/// A directory whose private cluster another process runs: this one.
fn held() -> (tempfile::TempDir, File) {
    let place = tempfile::tempdir().expect("a directory is made");
    std::fs::create_dir(place.path().join("postgres")).expect("a directory is made");
    let lock = place.path().join("postgres.lock");
    std::fs::write(&lock, "4242\n").expect("the file is written");
    let lock = File::open(lock).expect("the file is there");
    lock.try_lock().expect("nobody else has it");
    (place, lock)
}

#[test]
fn a_second_server_is_told_of_the_first_and_what_to_do() {
    let (place, _lock) = held();
    let said = refused(&["serve"], &[("STACKSHIP_DATA_DIR", path(place.path()))]);
    expect(
        &said,
        &[
            "setting `data_dir`",
            "(pid 4242)",
            "Stop that process first",
        ],
    );
}

#[test]
fn a_command_beside_a_server_does_not_claim_to_start_postgresql() {
    let (place, _lock) = held();
    let url = place.path().join("postgres.url");
    std::fs::write(url, "postgres://ship@%2Fnowhere/ship").expect("the file is written");
    let own = ("STACKSHIP_DATA_DIR", path(place.path()));
    for command in [
        &["audit", "verify"][..],
        &["projections", "rebuild"],
        &["admin", "create-runner", "--name", "x"],
    ] {
        let said = refused(command, &[own]);
        assert!(!said.contains("Starting the private PostgreSQL"), "{said}");
        assert!(
            !said.contains("Stop that process"),
            "it did not join: {said}"
        );
    }
}
