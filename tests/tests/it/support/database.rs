//! A database for each server, in the cluster that the tests were given.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::{Connection as _, PgConnection};

use super::environment;

/// What names of databases begin with; the rest is the process and a number.
const PREFIX: &str = "stackship_it_";

/// Makes an empty database and says its URL; what dead test programs have left goes.
pub async fn fresh() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let url = environment::cluster_url();
    let mut cluster = PgConnection::connect(&url)
        .await
        .expect("the cluster answers");
    sweep(&mut cluster).await;
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("{PREFIX}{}_{number}", std::process::id());
    create(&mut cluster, &name).await;
    named(&url, &name)
}

async fn create(cluster: &mut PgConnection, name: &str) {
    sqlx::query(&format!("CREATE DATABASE {name}"))
        .execute(cluster)
        .await
        .expect("a superuser makes databases");
}

async fn sweep(cluster: &mut PgConnection) {
    let names: Vec<String> =
        sqlx::query_scalar("SELECT datname FROM pg_database WHERE starts_with(datname, $1)")
            .bind(PREFIX)
            .fetch_all(&mut *cluster)
            .await
            .expect("the catalog can be read");
    for name in names {
        let process = name.trim_start_matches(PREFIX).split('_').next();
        let alive = process.is_some_and(|id| Path::new("/proc").join(id).exists());
        if !alive {
            // Another test program may be faster.
            let statement = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
            drop(sqlx::query(&statement).execute(&mut *cluster).await);
        }
    }
}

fn named(url: &str, name: &str) -> String {
    let (address, query) = url.split_once('?').unwrap_or((url, ""));
    let (server, _) = address.rsplit_once('/').expect("a URL with a path");
    format!("{server}/{name}?{query}")
}

#[test]
fn the_url_of_a_database_keeps_everything_but_the_name() {
    let url = "postgres://a@localhost/postgres?host=/tmp/x";
    assert_eq!(named(url, "b"), "postgres://a@localhost/b?host=/tmp/x");
}
