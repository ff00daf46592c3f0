//! PostgreSQL refuses root and a uid without a name. The tests take these identities inside a user
//! namespace, so they run as any user.

use std::process::{Command, Output};

use crate::support::{Home, stderr, stdout};

const QUERY: &str = r#"id -u; psql -qtA "$DATABASE_URL" -c 'select 1'"#;

/// Runs a script in a user namespace in which our uid is `uid`. `$WITH` is `with-postgres`.
fn as_uid(uid: u32, script: &str, home: &Home) -> Output {
    Command::new("unshare")
        .args([
            "--user",
            &format!("--map-user={uid}"),
            &format!("--map-group={uid}"),
        ])
        .args(["sh", "-c", script])
        .env("WITH", env!("CARGO_BIN_EXE_with-postgres"))
        .env("QUERY", QUERY)
        .env("TMPDIR", home.path())
        .output()
        .expect("unshare is part of util-linux")
}

#[test]
fn a_cluster_runs_for_root_for_a_user_without_a_name_and_for_an_ordinary_user() {
    for uid in [0, 12_345, 65_534] {
        let home = Home::new();
        let output = as_uid(uid, r#"exec "$WITH" -- sh -c "$QUERY""#, &home);
        assert!(output.status.success(), "uid {uid}: {output:?}");
        assert_eq!(
            stdout(&output),
            format!("{uid}\n1"),
            "the command keeps its uid"
        );
    }
}

#[test]
fn where_user_namespaces_are_forbidden_the_error_names_the_remedies() {
    let home = Home::new();
    let script = r#"echo 0 > /proc/sys/user/max_user_namespaces && exec "$WITH" -- true"#;
    let output = as_uid(0, script, &home);
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    let text = stderr(&output);
    for needed in [
        "as root",
        "ordinary user",
        "user.max_user_namespaces",
        "DATABASE_URL",
    ] {
        assert!(text.contains(needed), "`{needed}` in: {text}");
    }
}
