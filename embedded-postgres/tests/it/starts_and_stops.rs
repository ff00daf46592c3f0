use stackship_embedded_postgres::{DATABASE, ROLE};

use crate::support::{Home, is_alive, processes_in, sql};

#[test]
fn a_cluster_starts_and_stops_and_starts_again_with_its_data() {
    let home = Home::new();
    let first = home.start();
    let pid = first.pid();
    assert!(is_alive(pid));
    assert_eq!(sql(&first, "select current_database()"), DATABASE);
    assert_eq!(sql(&first, "select current_user"), ROLE);
    sql(
        &first,
        "create table kept (n int); insert into kept values (7)",
    );
    first.stop().unwrap();
    assert!(!is_alive(pid));
    assert!(!home.data_dir().join("postmaster.pid").exists());

    let second = home.start();
    assert_eq!(sql(&second, "select n from kept"), "7");
    second.stop().unwrap();
}

#[test]
fn a_dropped_cluster_leaves_no_process() {
    let home = Home::new();
    let cluster = home.start();
    assert!(processes_in(&home.data_dir()).contains(&cluster.pid()));
    drop(cluster);
    assert_eq!(processes_in(&home.data_dir()), []);
}
