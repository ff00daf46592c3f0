use std::fs;
use std::process::{Command, Stdio};

use crate::support::{Home, Killed, eventually, is_alive, sql};

/// Starts a cluster in whose data directory `pid` is recorded as the running server.
fn starts_in_spite_of(pid: u32) {
    let home = Home::with_stopped_cluster();
    let data_dir = home.data_dir();
    let file = format!(
        "{pid}\n{}\n1700000000\n5432\n{}\n\n  1  1\nready   \n",
        data_dir.display(),
        home.path().join("pg.socket").display()
    );
    fs::write(data_dir.join("postmaster.pid"), file).unwrap();
    let cluster = home.start();
    assert_ne!(cluster.pid(), pid);
    assert_eq!(sql(&cluster, "select 1"), "1");
}

#[test]
fn the_pid_file_of_a_dead_server_does_not_hinder_a_start() {
    let mut child = Command::new("true").spawn().unwrap();
    let pid = child.id();
    child.wait().unwrap();
    starts_in_spite_of(pid);
}

#[test]
fn the_pid_file_of_a_server_that_nobody_reaped_does_not_hinder_a_start() {
    let zombie = Killed(Command::new("true").spawn().unwrap());
    eventually("the child's end", || {
        (!is_alive(zombie.0.id())).then_some(())
    });
    assert!(fs::exists(format!("/proc/{}", zombie.0.id())).unwrap());
    starts_in_spite_of(zombie.0.id());
}

#[test]
fn the_pid_file_whose_number_is_now_another_programs_does_not_hinder_a_start() {
    let stranger = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let stranger = Killed(stranger);
    starts_in_spite_of(stranger.0.id());
    assert!(is_alive(stranger.0.id()), "the stranger is not touched");
}
