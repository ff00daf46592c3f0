//! The parts under test: a database, a server and a runner, each a process of its own that can be
//! killed and started again, and a way between the last two that can be held.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sqlx::{Connection as _, PgConnection};
use stackship_embedded_postgres::{Cluster, DATABASE, Durability, Settings};
use tempfile::TempDir;

use super::turnstile::Turnstile;
use crate::support::{RemoteRunner, World, eventually, runtime};

/// A lease is short, as it is waited for, and outlasts everything that comes back at once.
const SERVER: &[(&str, &str)] = &[
    ("STACKSHIP_RUNNER__ENABLED", "false"),
    ("STACKSHIP_LEASE_SECONDS", "10"),
];
/// One phase at a time, so that a lease is asked for only when the last phase is over.
const RUNNER: &[(&str, &str)] = &[
    ("STACKSHIP_RUNNER__SLOTS", "1"),
    ("STACKSHIP_RUNNER__INTERRUPT_GRACE_SECONDS", "5"),
];

/// One installation. What is first here ends first.
pub struct Bench {
    pub runner: RemoteRunner,
    pub turnstile: Turnstile,
    pub world: World,
    pub database: Database,
}

impl Bench {
    pub fn new(lane: usize) -> Self {
        let database = Database::new();
        let world = World::on(&database.url, SERVER);
        let turnstile = Turnstile::before(world.server.url());
        let name = format!("it-{}-faults-{lane}", std::process::id());
        let runner = RemoteRunner::through(&world.server, turnstile.url(), &name, RUNNER);
        Self {
            runner,
            turnstile,
            world,
            database,
        }
    }
}

/// A PostgreSQL that keeps what was committed over every end of its processes.
pub struct Database {
    url: String,
    settings: Settings,
    cluster: Option<Cluster>,
    _home: TempDir,
}

impl Database {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        // Processes are killed here, and never the machine: what was handed to it stays. Only what a
        // commit has not handed over yet must not count as committed.
        let mut settings = Settings::new(home.path().join("pg"), Durability::Throwaway);
        settings.extra = vec![("synchronous_commit".to_owned(), "on".to_owned())];
        let cluster = Cluster::start(&settings).expect("PostgreSQL starts");
        Self {
            url: cluster.url(DATABASE),
            settings,
            cluster: Some(cluster),
            _home: home,
        }
    }

    /// Ends the server as a crash would; its other processes notice by themselves.
    pub fn kill(&mut self) {
        let cluster = self.cluster.take().expect("a running database");
        let id = i32::try_from(cluster.pid()).expect("process ids are small");
        kill(Pid::from_raw(id), Signal::SIGKILL).expect("one may kill one's own child");
        eventually("the database's end", || cluster.try_wait());
    }

    pub fn stop(&mut self) {
        let cluster = self.cluster.take().expect("a running database");
        cluster.stop().expect("PostgreSQL stops");
    }

    pub fn start(&mut self) {
        self.cluster = Some(Cluster::start(&self.settings).expect("PostgreSQL starts again"));
    }

    fn connect(&self) -> PgConnection {
        let connected = runtime().block_on(PgConnection::connect(&self.url));
        connected.expect("the database answers")
    }

    /// What is written about `subject`, as a superuser finds it: rows of one text each.
    pub fn rows(&self, sql: &str, subject: &str) -> Vec<String> {
        let mut connection = self.connect();
        let rows = sqlx::query_scalar(sql).bind(subject);
        let rows = runtime().block_on(rows.fetch_all(&mut connection));
        rows.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Lets nobody append an event for as long as the value lives.
    pub fn hold_log(&self) -> HeldLog {
        let mut connection = self.connect();
        for sql in ["begin", "lock table log.events in share row exclusive mode"] {
            let done = runtime().block_on(sqlx::query(sql).execute(&mut connection));
            done.expect("a superuser locks a table");
        }
        HeldLog {
            _transaction: connection,
        }
    }
}

/// A log to which nothing can be appended.
pub struct HeldLog {
    /// It ends with its connection.
    _transaction: PgConnection,
}
