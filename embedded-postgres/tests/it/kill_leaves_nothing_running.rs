use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

use stackship_embedded_postgres::{Cluster, Durability, Settings};

use crate::support::{
    Home, Killed, eventually, is_alive, kill_9, processes_in, script, sql, with_postgres,
};

/// Starts `with-postgres`, whose command prints its pid and waits for ever.
fn supervisor(home: &Home, options: &[&str]) -> (Killed, u32) {
    let mut supervisor = with_postgres(home.path())
        .args(options)
        .args(["--", "sh", "-c", "echo $$; exec cat"])
        .stdin(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .map(Killed)
        .unwrap();
    let mut line = String::new();
    BufReader::new(supervisor.0.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let command = line.trim().parse().unwrap();
    (supervisor, command)
}

/// The data directory below `home` of the only `with-postgres` that runs there.
fn data_dir(home: &Home) -> PathBuf {
    let mut entries = fs::read_dir(home.path()).unwrap();
    entries.next().unwrap().unwrap().path().join("pg")
}

#[test]
fn kill_9_of_the_supervisor_ends_server_and_command_and_the_next_call_removes_the_files() {
    let home = Home::new();
    let (mut supervisor, command) = supervisor(&home, &[]);
    let data_dir = data_dir(&home);
    assert!(!processes_in(&data_dir).is_empty());

    kill_9(supervisor.0.id());
    eventually("the server's end", || {
        processes_in(&data_dir).is_empty().then_some(())
    });
    eventually("the command's end", || (!is_alive(command)).then_some(()));
    assert!(
        !data_dir.join("postmaster.pid").exists(),
        "the server shut down in good order"
    );

    supervisor.0.wait().unwrap();
    let next = with_postgres(home.path())
        .args(["--", "true"])
        .output()
        .unwrap();
    assert!(next.status.success(), "{next:?}");
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn a_start_right_after_kill_9_waits_for_the_server_that_is_leaving() {
    let home = Home::new();
    let (mut killed, _) = supervisor(&home, &["--keep"]);
    let settings = Settings::new(data_dir(&home), Durability::Throwaway);
    killed.0.kill().unwrap();
    killed.0.wait().unwrap();
    let cluster = Cluster::start(&settings).unwrap();
    assert_eq!(sql(&cluster, "select 1"), "1");
}

#[test]
fn kill_9_of_the_supervisor_ends_initdb_too() {
    let home = Home::new();
    let bin = tempfile::tempdir().unwrap();
    let pid_file = bin.path().join("pid");
    script(
        &bin.path().join("postgres"),
        "echo 'postgres (PostgreSQL) 15.1'",
    );
    let endless = format!("echo $$ > '{}'; exec sleep 600", pid_file.display());
    script(&bin.path().join("initdb"), &endless);
    let supervisor = with_postgres(home.path())
        .args(["--", "true"])
        .env("STACKSHIP_PG_BIN", bin.path())
        .spawn()
        .map(Killed)
        .unwrap();
    let initdb = eventually("initdb", || {
        fs::read_to_string(&pid_file).ok()?.trim().parse().ok()
    });
    assert!(is_alive(initdb));
    kill_9(supervisor.0.id());
    eventually("the end of initdb", || (!is_alive(initdb)).then_some(()));
}
