use std::fs;

use stackship_embedded_postgres::{Cluster, Error};

use crate::support::Home;

#[test]
fn a_data_directory_of_another_major_is_refused_in_plain_words() {
    let home = Home::new();
    fs::create_dir(home.data_dir()).unwrap();
    fs::write(home.data_dir().join("PG_VERSION"), "12\n").unwrap();

    let error = Cluster::start(&home.settings()).unwrap_err();
    assert!(matches!(&error, Error::OtherMajor { recorded, .. } if recorded == "12"));
    let text = error.to_string();
    assert!(text.contains("was made by PostgreSQL 12"), "{text}");
    assert!(
        text.contains("/usr/lib/postgresql/12/bin"),
        "where it looked: {text}"
    );
    assert!(text.contains("pg_upgrade"), "the remedy: {text}");
}
