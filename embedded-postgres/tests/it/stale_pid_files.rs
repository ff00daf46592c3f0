use std::fs;
use std::process::{Command, Stdio};

use stackship_embedded_postgres::{Cluster, Error};

use crate::support::{Home, Killed, eventually, is_alive, sql};

/// Starts a cluster in whose data and socket directories `pid` is recorded as the running server.
fn starts_in_spite_of(pid: u32) {
    let home = Home::with_stopped_cluster();
    let data_dir = home.data_dir();
    let file = format!(
        "{pid}\n{}\n1700000000\n5432\n{}\n\n  1  1\nready   \n",
        data_dir.display(),
        home.path().join("pg.socket").display()
    );
    fs::write(data_dir.join("postmaster.pid"), &file).unwrap();
    let socket_dir = home.path().join("pg.socket");
    fs::create_dir(&socket_dir).unwrap();
    fs::write(socket_dir.join(".s.PGSQL.5432.lock"), &file).unwrap();
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

#[test]
fn the_socket_of_another_cluster_in_a_given_directory_is_left_alone() {
    let ours = Home::with_stopped_cluster();
    let theirs = Home::with_stopped_cluster();
    let shared = ours.path().join("shared");
    let [mut our_settings, mut their_settings] = [ours.settings(), theirs.settings()];
    our_settings.socket_dir = Some(shared.clone());
    their_settings.socket_dir = Some(shared);
    let running = Cluster::start(&their_settings).unwrap();
    let error = Cluster::start(&our_settings).unwrap_err();
    assert!(matches!(error, Error::DiedStarting { .. }), "{error:?}");
    assert!(error.to_string().contains(".s.PGSQL.5432.lock"), "{error}");
    assert_eq!(sql(&running, "select 1"), "1");
}
