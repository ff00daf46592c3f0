use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::process::ExitStatus;

use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};

use crate::support::{Home, Killed, bin_dir, eventually, script, stderr, stdout, with_postgres};

fn exit(running: &mut Killed) -> ExitStatus {
    eventually("the end of with-postgres", || running.0.try_wait().unwrap())
}

#[test]
fn the_command_finds_its_database_and_may_create_others() {
    let home = Home::new();
    let script =
        r#"psql -qtA "$DATABASE_URL" -c 'create database mine' -c 'select current_database()'"#;
    let output = with_postgres(home.path())
        .args(["--", "sh", "-c", script])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(stdout(&output), "stackship");
}

#[test]
fn the_exit_code_is_the_commands_and_nothing_is_left() {
    let home = Home::new();
    let output = with_postgres(home.path())
        .args(["--", "sh", "-c", "exit 9"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(9), "{output:?}");
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn a_command_that_does_not_exist_is_127() {
    let home = Home::new();
    let output = with_postgres(home.path())
        .args(["--", "no-such-command"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(127));
    assert!(stderr(&output).contains("no-such-command"));
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn a_termination_is_passed_on_and_the_command_decides() {
    let home = Home::new();
    let script = "sleep 600 & child=$!; trap 'kill $child; exit 7' TERM; echo up; wait";
    let mut running = with_postgres(home.path())
        .args(["--", "sh", "-c", script])
        .spawn()
        .map(Killed)
        .unwrap();
    let mut line = String::new();
    let mut lines = BufReader::new(running.0.stdout.take().unwrap());
    lines.read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
    kill(Pid::from_raw(running.0.id().cast_signed()), Signal::SIGTERM).unwrap();
    assert_eq!(exit(&mut running).code(), Some(7));
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn a_termination_during_the_start_means_that_the_command_is_not_run() {
    let home = Home::new();
    let bin = tempfile::tempdir().unwrap();
    let real = bin_dir(&Home::with_stopped_cluster().start());
    symlink(real.join("postgres"), bin.path().join("postgres")).unwrap();
    let [begun, go_on, ran] = ["begun", "go-on", "ran"].map(|name| bin.path().join(name));
    mkfifo(&go_on, Mode::S_IRWXU).unwrap();
    let slow = format!(
        "touch '{}'; read go < '{}'; exec '{}' \"$@\"",
        begun.display(),
        go_on.display(),
        real.join("initdb").display()
    );
    script(&bin.path().join("initdb"), &slow);
    let mut running = with_postgres(home.path())
        .arg("--")
        .arg("touch")
        .arg(&ran)
        .env("STACKSHIP_PG_BIN", bin.path())
        .spawn()
        .map(Killed)
        .unwrap();
    eventually("initdb", || begun.exists().then_some(()));
    kill(Pid::from_raw(running.0.id().cast_signed()), Signal::SIGTERM).unwrap();
    fs::write(&go_on, "go\n").unwrap();
    assert_eq!(exit(&mut running).code(), Some(143));
    assert!(!ran.exists());
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn kept_files_stay_and_their_place_is_told() {
    let home = Home::new();
    let output = with_postgres(home.path())
        .args(["--keep", "--", "true"])
        .output()
        .unwrap();
    assert!(output.status.success());
    let kept = fs::read_dir(home.path())
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    assert!(stderr(&output).contains(&kept.display().to_string()));
    assert!(kept.join("pg/PG_VERSION").exists());
    assert!(kept.join("postgres.log").exists());

    let next = with_postgres(home.path())
        .args(["--", "true"])
        .output()
        .unwrap();
    assert!(next.status.success());
    assert!(kept.exists(), "a later call does not sweep it away");
}

#[test]
fn the_help_shows_an_example_and_a_call_without_a_command_points_to_it() {
    let home = Home::new();
    let help = with_postgres(home.path()).arg("--help").output().unwrap();
    assert!(help.status.success());
    assert!(stdout(&help).contains("with-postgres -- cargo test"));
    let wrong = with_postgres(home.path()).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("--help"));
}
