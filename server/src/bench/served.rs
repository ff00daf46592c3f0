//! The API alone, in this process, over a private database that can be filled past the log: no
//! workflow, no projector and no runner are there to look at what was filled in.

use std::future::IntoFuture as _;
use std::time::{Duration, Instant};

use axum::serve::ListenerExt as _;
use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, PgPool};
use stackship_api::App;
use stackship_policy::Evaluator;
use stackship_store::Store;
use stackship_store::notify::Nudges;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::product::ORGANIZATION;
use crate::admin::{Made, Owner, set_up};
use crate::database::Database;
use crate::settings::Settings;
use crate::{Failure, serve};

/// How many workspaces the runs are spread over.
pub const WORKSPACES: i32 = 100;

/// The API over a filled database.
pub struct Served {
    /// What its handlers reach.
    pub app: App,
    /// The write side.
    pub store: Store,
    /// The organization that everything belongs to.
    pub made: Made,
    /// The same rights and connections as the API's, for the baseline.
    pub bare: PgPool,
    database: Database,
    owner: PgPool,
    client: reqwest::Client,
    url: String,
    server: JoinHandle<std::io::Result<()>>,
    stop: CancellationToken,
    _home: TempDir,
}

impl Served {
    /// Starts an API with an organization and [`WORKSPACES`] workspaces.
    pub async fn start() -> Result<Self, Failure> {
        let home = tempfile::tempdir()?;
        let settings = Settings {
            data_dir: home.path().join("data"),
            ..Settings::default()
        };
        let database = Database::open(&settings, None).await?;
        let store = database.store(&settings)?;
        let owner = Owner {
            login: "bench".to_owned(),
            display_name: "Bench".to_owned(),
        };
        let made = set_up(&store, &ORGANIZATION.parse()?, &owner, &"default".parse()?).await?;
        let evaluator = Evaluator::new(std::env::current_exe()?);
        let app = serve::app(&settings, &store, Nudges::default(), evaluator)?;
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let stop = CancellationToken::new();
        let listener = listener.tap_io(|connection| {
            // A connection that cannot be told to send at once only measures worse.
            drop(connection.set_nodelay(true));
        });
        let server = axum::serve(listener, stackship_api::router(app.clone()))
            .with_graceful_shutdown(stop.clone().cancelled_owned());
        let api = Self {
            bare: store.pool.clone(),
            owner: database.owner()?,
            client: reqwest::Client::new(),
            server: tokio::spawn(server.into_future()),
            app,
            store,
            made,
            database,
            url,
            stop,
            _home: home,
        };
        api.workspaces().await?;
        Ok(api)
    }

    async fn workspaces(&self) -> Result<(), Failure> {
        let mut connection = self.filler().await?;
        sqlx::query(
            "insert into record.workspaces (workspace_id, organization_id, project_id, name, tofu_version, region) \
             select 'ws-' || lpad(n::text, 26, '0'), $1, $2, 'bench-' || n, '1.12.6', 'local' \
             from generate_series(0, $3 - 1) n",
        )
        .bind(self.made.organization.to_string())
        .bind(self.made.project.to_string())
        .bind(WORKSPACES)
        .execute(&mut connection)
        .await?;
        Ok(())
    }

    /// A connection of the schema's owner that follows no trigger and no foreign key: for rows that
    /// the log would have written one by one.
    pub async fn filler(&self) -> Result<PgConnection, Failure> {
        let mut connection = PgConnection::connect_with(&self.owner.connect_options()).await?;
        for setting in [
            "set statement_timeout = 0",
            "set session_replication_role = replica",
        ] {
            sqlx::query(setting).execute(&mut connection).await?;
        }
        Ok(connection)
    }

    /// Reads a path as the owner of the organization; how long until the last byte, and how many
    /// bytes.
    pub async fn read(&self, path: &str) -> Result<(Duration, Vec<u8>), Failure> {
        let began = Instant::now();
        let request = self.client.get(format!("{}{path}", self.url));
        let answer = request.bearer_auth(self.made.token.expose()).send().await?;
        let status = answer.status();
        let body = answer.bytes().await?;
        let took = began.elapsed();
        if !status.is_success() {
            let body = String::from_utf8_lossy(&body);
            return Err(format!("{path} was answered with {status}: {body}").into());
        }
        Ok((took, body.to_vec()))
    }

    /// Stops everything, and removes it.
    pub async fn stop(self) -> Result<(), Failure> {
        self.stop.cancel();
        self.server.await??;
        self.owner.close().await;
        self.store.pool.close().await;
        self.database.close().await
    }
}
