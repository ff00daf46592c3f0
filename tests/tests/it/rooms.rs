//! Which room may know which: dependencies point one way.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use crate::support::text;

/// What the names of our own crates begin with.
const OURS: &str = "stackship-";

/// What a room may depend on.
struct Room {
    name: &'static str,
    ours: &'static [&'static str],
    never: &'static [&'static str],
}

const ROOMS: &[Room] = &[
    Room {
        name: "domain",
        ours: &[],
        never: &["tokio", "sqlx", "axum"],
    },
    Room {
        name: "runner-protocol",
        ours: &["domain"],
        never: &["sqlx", "axum"],
    },
    Room {
        name: "plan-diff",
        ours: &["domain"],
        never: &["tokio", "sqlx", "axum"],
    },
    // It judges others, so it must not share their ideas.
    Room {
        name: "planted",
        ours: &[],
        never: &["tokio", "sqlx", "axum"],
    },
    Room {
        name: "store",
        ours: &["domain"],
        never: &["axum"],
    },
    Room {
        name: "projections",
        ours: &["domain", "store"],
        never: &["axum"],
    },
    Room {
        name: "workflow",
        ours: &["domain", "policy", "store", "runner-protocol"],
        never: &["sqlx", "axum"],
    },
    Room {
        name: "policy",
        ours: &["domain"],
        never: &["sqlx", "axum"],
    },
    Room {
        name: "api",
        ours: &[
            "domain",
            "policy",
            "store",
            "policy",
            "projections",
            "workflow",
            "runner-protocol",
        ],
        never: &["sqlx"],
    },
    Room {
        name: "sandbox",
        ours: &[],
        never: &["sqlx", "axum"],
    },
    Room {
        name: "runner",
        ours: &["domain", "plan-diff", "runner-protocol", "sandbox"],
        never: &["sqlx", "axum"],
    },
    Room {
        name: "embedded-postgres",
        ours: &[],
        never: &["sqlx", "axum"],
    },
    // The tests look from outside: nothing depends on them, and they are allowed nothing at run time.
    Room {
        name: "tests",
        ours: &[],
        never: &[],
    },
];

#[test]
fn dependencies_between_rooms_point_one_way() {
    let mut seen = BTreeSet::new();
    for package in packages() {
        let name = text(&package["name"]);
        // The server puts the rooms together and may know them all.
        let Some(name) = name.strip_prefix(OURS) else {
            assert_eq!(
                name, "stackship",
                "a crate whose name does not say that it is ours"
            );
            continue;
        };
        let room = ROOMS.iter().find(|room| room.name == name);
        let room = room.unwrap_or_else(|| panic!("`{name}` has no row in ROOMS"));
        seen.insert(room.name);
        for dependency in run_time_dependencies(&package) {
            let known = dependency
                .strip_prefix(OURS)
                .is_none_or(|ours| room.ours.contains(&ours));
            assert!(known, "`{name}` must not know `{dependency}`");
            assert!(
                !room.never.contains(&dependency.as_str()),
                "`{name}` must not use {dependency}"
            );
        }
    }
    let rows: BTreeSet<_> = ROOMS.iter().map(|room| room.name).collect();
    assert_eq!(seen, rows, "a row without a crate");
}

fn packages() -> Vec<Value> {
    let arguments = [
        "metadata",
        "--offline",
        "--no-deps",
        "--format-version",
        "1",
    ];
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = cargo.output().expect("cargo starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    metadata["packages"]
        .as_array()
        .expect("a list of packages")
        .clone()
}

fn run_time_dependencies(package: &Value) -> Vec<String> {
    let all = package["dependencies"]
        .as_array()
        .expect("a list of dependencies");
    let run_time = all.iter().filter(|dependency| dependency["kind"] != "dev");
    run_time
        .map(|dependency| text(&dependency["name"]))
        .collect()
}
