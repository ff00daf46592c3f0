use stackship_embedded_postgres::{Cluster, Durability, Settings};

use crate::support::{Home, eventually, kill_9, sql};

#[test]
fn a_killed_server_comes_back_with_every_committed_row() {
    let home = Home::with_stopped_cluster();
    let settings = Settings::new(home.data_dir(), Durability::Durable);
    let cluster = Cluster::start(&settings).unwrap();
    assert_eq!(sql(&cluster, "show fsync"), "on");
    sql(&cluster, "create table kept (n int)");
    sql(&cluster, "insert into kept select generate_series(1, 1000)");
    kill_9(cluster.pid());
    eventually("the server's end", || cluster.try_wait());
    assert!(
        home.data_dir().join("postmaster.pid").exists(),
        "it had no time to tidy up"
    );
    drop(cluster);

    let cluster = Cluster::start(&settings).unwrap();
    assert_eq!(sql(&cluster, "select count(*) from kept"), "1000");
}
