use std::fs;

use stackship_embedded_postgres::{Cluster, Error};

use crate::support::{Home, script, sql};

#[test]
fn what_a_killed_initdb_left_is_removed_and_does_not_hinder_a_start() {
    let home = Home::new();
    let left_over = home.path().join("pg.tmp-killed");
    fs::create_dir_all(left_over.join("base")).unwrap();
    fs::write(left_over.join("PG_VERSION"), "15\n").unwrap();
    let neighbour = home.path().join("pg.template");
    fs::create_dir(&neighbour).unwrap();

    let cluster = home.start();
    assert_eq!(sql(&cluster, "select 1"), "1");
    assert!(!left_over.exists());
    assert!(
        neighbour.exists(),
        "only our own temporary names are removed"
    );
}

#[test]
fn a_cluster_that_could_not_be_made_leaves_nothing_behind() {
    let home = Home::new();
    let bin = home.path().join("bin");
    fs::create_dir(&bin).unwrap();
    script(&bin.join("postgres"), "echo 'postgres (PostgreSQL) 15.1'");
    script(
        &bin.join("initdb"),
        "touch \"$2/PG_VERSION\"; echo 'no space left' >&2; exit 1",
    );
    let mut settings = home.settings();
    settings.bin_dir = Some(bin);

    let error = Cluster::start(&settings).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Initialize {
                program: "initdb",
                ..
            }
        ),
        "{error:?}"
    );
    assert!(error.to_string().contains("no space left"), "{error}");
    assert!(!home.data_dir().exists());
    let names = fs::read_dir(home.path()).unwrap();
    let half_made = names
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name.to_string_lossy().starts_with("pg.tmp-"))
        .count();
    assert_eq!(half_made, 0);
}

#[test]
fn a_directory_with_other_content_is_left_alone() {
    let home = Home::new();
    fs::create_dir(home.data_dir()).unwrap();
    fs::write(home.data_dir().join("thesis.txt"), "precious").unwrap();
    let error = Cluster::start(&home.settings()).unwrap_err();
    assert!(matches!(error, Error::NotACluster(_)), "{error:?}");
    assert_eq!(
        fs::read_to_string(home.data_dir().join("thesis.txt")).unwrap(),
        "precious"
    );
}
