//! The database: the operator's, or a private cluster that lives and dies with this process.

use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use sqlx::PgPool;
use stackship_embedded_postgres::{
    Cluster, DATABASE, Durability, Error as ClusterError, Settings as ClusterSettings,
};
use stackship_store::Store;
use stackship_store::objects::{KeyRing, Objects};
use stackship_store::pool::{self, DbRole, MigrationError, Unreachable};

use crate::Failure;
use crate::answer::answer;
use crate::settings::Settings;

/// Nobody but its owner enters the data directory.
const PRIVATE_DIR: u32 = 0o700;

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
        let opened = Self::open_or_locked(settings, on_loss).await;
        opened.map_err(with_the_remedy)
    }

    /// As [`Database::open`]. That another process runs the private cluster is no mistake yet.
    async fn open_or_locked(
        settings: &Settings,
        on_loss: Option<tokio::sync::oneshot::Sender<()>>,
    ) -> Result<Self, Failure> {
        let database = Self::reach(settings, on_loss).await?;
        let owner = owner_setting(settings);
        pool::migrate(&database.owner_url)
            .await
            .map_err(|error| match error {
                MigrationError::Unreachable(error) if settings.database_url.is_some() => {
                    unreachable_at(owner, &error)
                }
                other => other.into(),
            })?;
        if database.url != database.owner_url {
            let reached = pool::reach(&database.url).await;
            reached.map_err(|error| unreachable_at("database_url", &error))?;
        }
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
        prepare(&settings.data_dir)?;
        let cluster_settings = cluster_settings(settings);
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

    /// Joins the database of an installation that is there, or opens it.
    pub async fn join(settings: &Settings) -> Result<Self, Failure> {
        expect_installation(settings)?;
        Self::join_or_make(settings).await
    }

    /// As [`Database::join`], or makes the installation.
    pub async fn join_or_make(settings: &Settings) -> Result<Self, Failure> {
        match Self::open_or_locked(settings, None).await {
            Ok(database) => Ok(database),
            Err(error) => match (error.downcast_ref::<ClusterError>(), read_url(settings)) {
                (Some(ClusterError::Locked { .. }), Some(url)) => Ok(Self {
                    owner_url: url.clone(),
                    url,
                    cluster: None,
                }),
                _ => Err(with_the_remedy(error)),
            },
        }
    }

    /// The write side.
    pub fn store(&self, settings: &Settings) -> Result<Store, Failure> {
        prepare(&settings.data_dir)?;
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

/// Makes the data directory if need be, and sees whether this process can write there.
fn prepare(data_dir: &Path) -> Result<(), Failure> {
    let mut made = DirBuilder::new();
    let made = made.recursive(true).mode(PRIVATE_DIR).create(data_dir);
    let tried = made.and_then(|()| tempfile::tempfile_in(data_dir).map(drop));
    tried.map_err(|error| {
        format!(
            "setting `data_dir`: cannot write in `{}`: {error}; it has to be a directory of the user that runs this, \
             on a disk with room",
            data_dir.display()
        )
        .into()
    })
}

/// Whoever forgot to say which installation is meant must not be answered by a new and empty one.
fn expect_installation(settings: &Settings) -> Result<(), Failure> {
    if settings.database_url.is_some() {
        return Ok(());
    }
    let place = settings.data_dir.display();
    match std::fs::metadata(cluster_settings(settings).data_dir) {
        Ok(found) if found.is_dir() => Ok(()),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(format!(
            "setting `data_dir`: cannot look into `{place}`: {error}; run this as the user of `stackship serve`"
        )
        .into()),
        Ok(_) | Err(_) => Err(format!(
            "there is no installation in `{place}`; name its configuration file with --config, or its \
             directory with STACKSHIP_DATA_DIR"
        )
        .into()),
    }
}

/// The setting whose database the schema's owner works in.
fn owner_setting(settings: &Settings) -> &'static str {
    if settings.migration_database_url.is_some() {
        "migration_database_url"
    } else {
        "database_url"
    }
}

fn unreachable_at(setting: &str, error: &Unreachable) -> Failure {
    format!(
        "setting `{setting}`: {error}; see that PostgreSQL runs there and lets this user in, or leave \
         `database_url` out for a private PostgreSQL"
    )
    .into()
}

/// What to do where two processes want the same private cluster.
fn with_the_remedy(failure: Failure) -> Failure {
    match failure.downcast_ref::<ClusterError>() {
        Some(ClusterError::Locked { .. }) => format!(
            "setting `data_dir`: {failure}. Stop that process first, or give this one a `data_dir` and a `listen` of \
             its own"
        )
        .into(),
        _ => failure,
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
    expect_installation(settings)?;
    let database = Database::open(settings, None).await?;
    database.close().await?;
    answer("The schema is up to date.")
}
