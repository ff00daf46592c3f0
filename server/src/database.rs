//! The database: the operator's, or a private cluster that lives and dies with this process.

use std::path::PathBuf;

use sqlx::PgPool;
use stackship_embedded_postgres::{
    Cluster, DATABASE, Durability, Error as ClusterError, Settings as ClusterSettings,
};
use stackship_store::Store;
use stackship_store::objects::{KeyRing, Objects};
use stackship_store::pool::{self, DbRole};

use crate::Failure;
use crate::answer::answer;
use crate::settings::Settings;

/// A database that is reachable, migrated, and stays so until [`Database::close`].
pub struct Database {
    url: String,
    owner_url: String,
    cluster: Option<Cluster>,
}

impl Database {
    /// Starts the private cluster when none is named, and brings the schema up to date.
    pub async fn open(
        settings: &Settings,
        on_loss: Option<tokio::sync::oneshot::Sender<()>>,
    ) -> Result<Self, Failure> {
        let database = Self::reach(settings, on_loss).await?;
        pool::migrate(&database.owner_url).await?;
        Ok(database)
    }

    async fn reach(
        settings: &Settings,
        on_loss: Option<tokio::sync::oneshot::Sender<()>>,
    ) -> Result<Self, Failure> {
        if let Some(url) = &settings.database_url {
            let owner_url = settings
                .migration_database_url
                .clone()
                .unwrap_or_else(|| url.clone());
            return Ok(Self {
                url: url.clone(),
                owner_url,
                cluster: None,
            });
        }
        let cluster_settings = cluster_settings(settings);
        tracing::info!(directory = %cluster_settings.data_dir.display(), "Starting the private PostgreSQL");
        let cluster =
            tokio::task::spawn_blocking(move || Cluster::start(&cluster_settings)).await??;
        if let Some(on_loss) = on_loss {
            cluster.on_exit(move |exit| {
                // A receiver that is gone means that the server is ending anyway.
                if !exit.asked && on_loss.send(()).is_err() {
                    tracing::debug!(
                        "The private PostgreSQL ended after the server had stopped watching"
                    );
                }
            });
        }
        let url = cluster.url(DATABASE);
        write_url(settings, &url)?;
        Ok(Self {
            owner_url: url.clone(),
            url,
            cluster: Some(cluster),
        })
    }

    /// Joins the database of an installation that is there, or opens it. Whoever forgot to say which
    /// installation is meant must not be answered by a new and empty one.
    pub async fn join(settings: &Settings) -> Result<Self, Failure> {
        let directory = cluster_settings(settings).data_dir;
        if settings.database_url.is_none() && !directory.is_dir() {
            let place = settings.data_dir.display();
            return Err(format!(
                "there is no installation in `{place}`; name its configuration file with --config, or its \
                 directory with STACKSHIP_DATA_DIR"
            )
            .into());
        }
        Self::join_or_make(settings).await
    }

    /// As [`Database::join`], or makes the installation.
    pub async fn join_or_make(settings: &Settings) -> Result<Self, Failure> {
        match Self::open(settings, None).await {
            Ok(database) => Ok(database),
            Err(error) => match (error.downcast_ref::<ClusterError>(), read_url(settings)) {
                (Some(ClusterError::Locked { .. }), Some(url)) => Ok(Self {
                    owner_url: url.clone(),
                    url,
                    cluster: None,
                }),
                _ => Err(error),
            },
        }
    }

    /// The write side.
    pub fn store(&self, settings: &Settings) -> Result<Store, Failure> {
        let pool = pool::open(&self.url, DbRole::Api)?;
        let keys = KeyRing::load_or_create(&settings.data_dir.join("keys").join("objects.key"))?;
        let objects = Objects::open(&settings.data_dir.join("objects"), keys, pool.clone())?;
        Ok(Store::new(pool, objects))
    }

    /// Connections that write read models.
    pub fn projector(&self) -> Result<PgPool, Failure> {
        Ok(pool::open(&self.url, DbRole::Projector)?)
    }

    /// Connections that only read, for looking into the history.
    pub fn auditor(&self) -> Result<PgPool, Failure> {
        Ok(pool::open(&self.url, DbRole::Auditor)?)
    }

    /// Connections of the schema's owner, for rebuilding.
    pub fn owner(&self) -> Result<PgPool, Failure> {
        Ok(pool::open(&self.owner_url, DbRole::Owner)?)
    }

    /// Stops the private cluster, after every pool was closed.
    pub async fn close(self) -> Result<(), Failure> {
        if let Some(cluster) = self.cluster {
            tokio::task::spawn_blocking(move || cluster.stop()).await??;
        }
        Ok(())
    }
}

/// Where a running server says how its private cluster is reached. It holds no secret: only the
/// user whose cluster it is can open the socket.
fn url_file(settings: &Settings) -> PathBuf {
    settings.data_dir.join("postgres.url")
}

fn write_url(settings: &Settings, url: &str) -> Result<(), Failure> {
    let file = url_file(settings);
    std::fs::write(&file, url).map_err(|error| format!("{}: {error}", file.display()).into())
}

fn read_url(settings: &Settings) -> Option<String> {
    std::fs::read_to_string(url_file(settings)).ok()
}

fn cluster_settings(settings: &Settings) -> ClusterSettings {
    let mut cluster = ClusterSettings::new(settings.data_dir.join("postgres"), Durability::Durable);
    cluster.bin_dir.clone_from(&settings.postgres_bin_dir);
    cluster.runtime_dir = runtime_dir();
    cluster
}

#[expect(
    clippy::disallowed_methods,
    reason = "the server is where the environment is read"
)]
fn runtime_dir() -> Option<PathBuf> {
    std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from)
}

/// Brings the schema up to date and nothing else.
pub async fn migrate_only(settings: &Settings) -> Result<(), Failure> {
    let database = Database::open(settings, None).await?;
    database.close().await?;
    answer("The schema is up to date.")
}
