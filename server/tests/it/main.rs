//! The command line, as people meet it.

mod mistakes;
mod routes;

use std::process::{Command, Output};

fn stackship(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stackship"));
    command
        .args(arguments)
        .env_clear()
        .envs(environment.iter().copied());
    command.output().expect("the binary starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn help_teaches_the_first_steps() {
    let output = stackship(&["--help"], &[]);
    assert!(output.status.success());
    let help = text(&output.stdout);
    assert!(
        help.contains("stackship admin bootstrap --organization"),
        "{help}"
    );
}

#[test]
fn a_wrong_setting_is_named_before_anything_starts() {
    let output = stackship(&["serve"], &[("STACKSHIP_RUNNER__SLOTS", "0")]);
    assert!(!output.status.success());
    let error = text(&output.stderr);
    assert!(
        error.contains("setting `runner.slots`: must be between 1 and 64"),
        "{error}"
    );
}

#[test]
fn a_directory_that_is_no_provider_mirror_is_named_before_anything_starts() {
    let setting = (
        "STACKSHIP_RUNNER__PROVIDER_MIRROR",
        env!("CARGO_MANIFEST_DIR"),
    );
    for command in ["serve", "runner"] {
        let output = stackship(&[command], &[setting]);
        assert!(!output.status.success());
        let error = text(&output.stderr);
        assert!(
            error.contains("setting `runner.provider_mirror`"),
            "{error}"
        );
        let cause = format!("`{}` holds no provider", setting.1);
        assert!(error.contains(&cause), "{error}");
    }
}

#[test]
fn an_unknown_key_in_the_file_is_refused() {
    let file = std::env::temp_dir().join(format!("stackship-settings-{}.toml", std::process::id()));
    std::fs::write(&file, "lisen = \"127.0.0.1:1\"\n").expect("the file is written");
    let output = stackship(&["--config", &file.display().to_string(), "settings"], &[]);
    std::fs::remove_file(&file).expect("the file is removed");
    assert!(!output.status.success());
    let error = text(&output.stderr);
    assert!(error.contains("lisen"), "{error}");
}

#[test]
fn settings_lists_names_defaults_and_meanings() {
    let output = stackship(&["settings"], &[]);
    assert!(output.status.success());
    let table = text(&output.stdout);
    assert!(
        table.contains("runner.slots = 4\n    How many phases run at the same time."),
        "{table}"
    );
}

#[test]
fn openapi_prints_the_document() {
    let output = stackship(&["openapi"], &[]);
    assert!(output.status.success());
    let document = text(&output.stdout);
    assert!(
        document.contains("\"/v1/runs/{run}/approve\""),
        "the document lacks the approval"
    );
}

/// Runs a command whose reader goes away before it answers.
fn unread(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let (reader, writer) = std::io::pipe().expect("a pipe is made");
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_stackship"));
    command
        .args(arguments)
        .env_clear()
        .envs(environment.iter().copied())
        .stdout(writer);
    command.output().expect("the binary starts")
}

#[test]
fn a_command_ends_quietly_when_nobody_reads_its_answer() {
    for command in ["openapi", "settings"] {
        let output = unread(&[command], &[]);
        assert_eq!(text(&output.stderr), "", "{command}");
        assert_eq!(output.status.code(), Some(141), "{command}");
    }
}

#[test]
fn a_command_that_fails_says_so_with_its_exit_code_when_nobody_reads_why() {
    let (reader, writer) = std::io::pipe().expect("a pipe is made");
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_stackship"));
    command.arg("serve").env_clear().stderr(writer);
    command.env("STACKSHIP_RUNNER__SLOTS", "0");
    let status = command.status().expect("the binary starts");
    assert_eq!(status.code(), Some(1));
}

#[test]
fn a_log_that_nobody_reads_ends_no_command() {
    let place = tempfile::tempdir().expect("a directory is made");
    let cluster = place.path().join("postgres");
    std::fs::create_dir(&cluster).expect("a directory is made");
    std::fs::write(cluster.join("notes"), "no cluster").expect("the file is written");
    let (reader, writer) = std::io::pipe().expect("a pipe is made");
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_stackship"));
    command
        .args(["audit", "verify"])
        .env_clear()
        .env("STACKSHIP_DATA_DIR", place.path())
        .stderr(writer);
    let status = command.status().expect("the binary starts");
    assert_eq!(status.code(), Some(1));
}
