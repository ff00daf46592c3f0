use std::os::unix::process::ExitStatusExt;
use std::sync::mpsc::channel;

use stackship_embedded_postgres::Error;

use crate::support::{Home, LIMIT, kill_9};

#[test]
fn a_server_that_dies_by_itself_is_reported_as_such() {
    let home = Home::with_stopped_cluster();
    let cluster = home.start();
    assert_eq!(cluster.try_wait(), None);
    let (sender, receiver) = channel();
    cluster.on_exit(move |exit| sender.send(exit).unwrap());
    kill_9(cluster.pid());

    let exit = receiver.recv_timeout(LIMIT).unwrap();
    assert!(!exit.asked);
    assert_eq!(exit.status.signal(), Some(9));
    assert_eq!(cluster.try_wait(), Some(exit));
    assert!(matches!(cluster.stop(), Err(Error::UncleanStop { .. })));
}

#[test]
fn a_server_that_we_stop_is_reported_as_asked() {
    let home = Home::with_stopped_cluster();
    let cluster = home.start();
    let (sender, receiver) = channel();
    cluster.on_exit(move |exit| sender.send(exit).unwrap());
    cluster.stop().unwrap();
    let exit = receiver.recv_timeout(LIMIT).unwrap();
    assert!(exit.asked);
    assert!(exit.status.success());
}
