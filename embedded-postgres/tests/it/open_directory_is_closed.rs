use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use stackship_embedded_postgres::{Cluster, Error};

use crate::support::{Home, sql};

#[test]
fn a_data_directory_that_a_copy_left_open_is_closed_and_used() {
    let home = Home::with_stopped_cluster();
    fs::set_permissions(home.data_dir(), Permissions::from_mode(0o755)).unwrap();
    let cluster = home.start();
    assert_eq!(sql(&cluster, "select 1"), "1");
    let mode = fs::metadata(home.data_dir()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn nobody_else_can_enter_the_socket_directory() {
    let home = Home::with_stopped_cluster();
    let cluster = home.start();
    let mode = fs::metadata(cluster.socket_dir())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_given_socket_directory_that_others_can_enter_is_refused_and_not_changed() {
    let home = Home::with_stopped_cluster();
    let open = home.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, Permissions::from_mode(0o755)).unwrap();
    let mut settings = home.settings();
    settings.socket_dir = Some(open.clone());
    let error = Cluster::start(&settings).unwrap_err();
    assert!(
        matches!(error, Error::SocketDirNotPrivate { .. }),
        "{error:?}"
    );
    let mode = fs::metadata(&open).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
}
