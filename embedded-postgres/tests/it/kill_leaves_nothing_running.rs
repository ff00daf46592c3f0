use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

use crate::support::{Home, Killed, eventually, is_alive, kill_9, processes_in, with_postgres};

/// The data directory below `home` of the only `with-postgres` that runs there.
fn data_dir(home: &Home) -> PathBuf {
    let mut entries = fs::read_dir(home.path()).unwrap();
    entries.next().unwrap().unwrap().path().join("pg")
}

#[test]
fn kill_9_of_the_supervisor_ends_server_and_command_and_the_next_call_removes_the_files() {
    let home = Home::new();
    let mut supervisor = with_postgres(home.path())
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
    let command: u32 = line.trim().parse().unwrap();
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
