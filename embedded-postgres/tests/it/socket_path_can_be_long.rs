use std::fs;

use stackship_embedded_postgres::{Cluster, Durability, Settings};

use crate::support::{Home, sql};

#[test]
fn a_data_directory_too_deep_for_a_socket_gets_a_short_one_elsewhere() {
    let home = Home::new();
    let runtime = home.path().join("run");
    fs::create_dir(&runtime).unwrap();
    let deep = home.path().join("d".repeat(100)).join("pg");
    let mut settings = Settings::new(&deep, Durability::Throwaway);
    settings.runtime_dir = Some(runtime.clone());

    let cluster = Cluster::start(&settings).unwrap();
    assert_eq!(cluster.socket_dir().parent(), Some(runtime.as_path()));
    assert_eq!(sql(&cluster, "select 1"), "1");
    cluster.stop().unwrap();
    let left = fs::read_dir(&runtime).unwrap().count();
    assert_eq!(left, 0, "the short directory is removed with the server");
}

#[test]
fn a_path_with_spaces_and_quotes_works() {
    let home = Home::new();
    let odd = home.path().join("a \"b\" & c%");
    let cluster = Cluster::start(&Settings::new(odd.join("pg"), Durability::Throwaway)).unwrap();
    assert!(cluster.socket_dir().starts_with(&odd));
    assert_eq!(sql(&cluster, "select 1"), "1");
}
