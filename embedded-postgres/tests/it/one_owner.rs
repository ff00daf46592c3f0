use std::fs;
use std::time::Duration;

use stackship_embedded_postgres::{Cluster, Error};

use crate::support::{Home, sql};

#[test]
fn a_second_start_is_refused_with_the_pid_of_the_owner() {
    let home = Home::with_stopped_cluster();
    let cluster = home.start();
    let error = Cluster::start(&home.settings()).unwrap_err();
    let us = std::process::id();
    assert!(matches!(error, Error::Locked { owner: Some(owner), .. } if owner == us));
    assert!(error.to_string().contains(&us.to_string()), "{error}");
    assert_eq!(sql(&cluster, "select 1"), "1", "the owner is undisturbed");
}

#[test]
fn a_server_without_an_owner_is_never_joined_by_a_second_one() {
    let home = Home::with_stopped_cluster();
    let cluster = home.start();
    // As if the lock were lost: another file under the same name is another lock.
    fs::remove_file(home.path().join("pg.lock")).unwrap();
    let mut settings = home.settings();
    settings.start_limit = Duration::from_millis(200);
    let error = Cluster::start(&settings).unwrap_err();
    let Error::StillRunning { pid, .. } = error else {
        panic!("{error:?}");
    };
    assert!(crate::support::processes_in(&home.data_dir()).contains(&pid));
    assert_eq!(sql(&cluster, "select 1"), "1", "its pid file is untouched");
}
