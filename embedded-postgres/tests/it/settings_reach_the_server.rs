use stackship_embedded_postgres::{Cluster, Error};

use crate::support::{Home, sql};

#[test]
fn the_server_is_private_and_a_setting_of_the_caller_cannot_open_it() {
    let home = Home::with_stopped_cluster();
    let mut settings = home.settings();
    settings.extra = vec![
        ("listen_addresses".into(), "*".into()),
        ("work_mem".into(), "5MB".into()),
    ];
    let cluster = Cluster::start(&settings).unwrap();
    assert_eq!(sql(&cluster, "show listen_addresses"), "");
    assert_eq!(sql(&cluster, "show work_mem"), "5MB");
    assert_eq!(sql(&cluster, "show fsync"), "off");
    assert_eq!(sql(&cluster, "show max_connections"), "200");
    assert_eq!(sql(&cluster, "show max_prepared_transactions"), "0");
}

#[test]
fn a_server_that_dies_while_starting_is_reported_with_its_last_words() {
    let home = Home::with_stopped_cluster();
    let mut settings = home.settings();
    settings.extra = vec![("no_such_setting".into(), "1".into())];
    let error = Cluster::start(&settings).unwrap_err();
    assert!(matches!(error, Error::DiedStarting { .. }), "{error:?}");
    assert!(error.to_string().contains("no_such_setting"), "{error}");
    // Nothing of the failed start hinders the next one.
    home.start().stop().unwrap();
}
