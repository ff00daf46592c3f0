//! Connections, with the rights of one role each.

use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, Connection as _, Executor, PgConnection, PgPool};
use tokio::time::timeout;

use crate::{MIGRATOR, StoreError, log};

/// The most connections a pool opens.
pub const POOL_CONNECTIONS_MAX: u32 = 20;
/// How long a caller waits for a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// What PostgreSQL answers while it starts, and while it has no connection left.
const SOON: [&str; 2] = ["57P03", "53300"];
/// How long a connection may have been idle and still be taken for alive without asking it. Asking costs
/// as much as a small query; a connection that ended within this time fails the one query that meets it.
const ALIVE_UNASKED: Duration = Duration::from_secs(1);
/// The longest a statement may run, in milliseconds.
const STATEMENT_TIMEOUT_MS: &str = "30000";
/// The longest a transaction may stay idle, in milliseconds: an idle one holds back projections.
const IDLE_IN_TRANSACTION_TIMEOUT_MS: &str = "10000";

/// Whose rights a pool's connections have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DbRole {
    /// Appends to the log and writes records.
    Api,
    /// Writes projections.
    Projector,
    /// Reads only.
    Auditor,
    /// Changes the schema; no running part of the server connects as this.
    Owner,
}

impl DbRole {
    const fn set_role(self) -> Option<&'static str> {
        match self {
            Self::Api => Some("set role stackship_api"),
            Self::Projector => Some("set role stackship_projector"),
            Self::Auditor => Some("set role stackship_auditor"),
            Self::Owner => None,
        }
    }
}

/// Opens a pool. Connections are made when first needed, so a wrong URL shows at the first query.
pub fn open(url: &str, role: DbRole) -> Result<PgPool, StoreError> {
    let options = PgConnectOptions::from_str(url)?
        .application_name("stackship")
        .options([
            ("statement_timeout", STATEMENT_TIMEOUT_MS),
            (
                "idle_in_transaction_session_timeout",
                IDLE_IN_TRANSACTION_TIMEOUT_MS,
            ),
        ])
        .disable_statement_logging();
    let pool = PgPoolOptions::new()
        .max_connections(POOL_CONNECTIONS_MAX)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .test_before_acquire(false)
        .before_acquire(|connection, met| {
            Box::pin(async move {
                if met.idle_for >= ALIVE_UNASKED {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
        .after_connect(move |connection, _| {
            Box::pin(async move {
                if let Some(statement) = role.set_role() {
                    connection.execute(statement).await?;
                }
                Ok(())
            })
        })
        .connect_lazy_with(options);
    Ok(pool)
}

/// Looks once whether a database can be connected to. A pool would try a server that refuses for as long
/// as it waits for connections, and then say no more than that it waited.
pub async fn reach(url: &str) -> Result<(), Unreachable> {
    let options = PgConnectOptions::from_str(url).map_err(|error| Unreachable {
        place: "this URL".to_owned(),
        why: error.to_string(),
    })?;
    let why = match timeout(ACQUIRE_TIMEOUT, PgConnection::connect_with(&options)).await {
        Ok(Ok(connection)) => {
            // It has told what it was made for, however its end goes.
            drop(connection.close().await);
            return Ok(());
        }
        // It takes connections soon; whoever opens a pool waits for it.
        Ok(Err(sqlx::Error::Database(error)))
            if error
                .code()
                .is_some_and(|code| SOON.contains(&code.as_ref())) =>
        {
            return Ok(());
        }
        Ok(Err(sqlx::Error::Database(error))) => error.message().to_owned(),
        Ok(Err(sqlx::Error::Io(error))) => error.to_string(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {} s", ACQUIRE_TIMEOUT.as_secs()),
    };
    Err(Unreachable {
        place: place(&options),
        why,
    })
}

/// Where a database is, without the password that a URL may have.
fn place(options: &PgConnectOptions) -> String {
    options.get_socket().map_or_else(
        || format!("{}:{}", options.get_host(), options.get_port()),
        |socket| socket.display().to_string(),
    )
}

/// Brings the schema up to date, as the owner, and sees to it that its log can go on in this cluster.
pub async fn migrate(url: &str) -> Result<(), MigrationError> {
    reach(url).await?;
    let options = PgConnectOptions::from_str(url).map_err(sqlx::migrate::MigrateError::from)?;
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .connect_with(options)
        .await
        .map_err(sqlx::migrate::MigrateError::from)?;
    MIGRATOR.run(&pool).await?;
    let is_at_home = log::written_here(&pool).await?;
    pool.close().await;
    if is_at_home {
        Ok(())
    } else {
        Err(MigrationError::WrittenElsewhere)
    }
}

/// No connection to a database.
#[derive(Debug, thiserror::Error)]
#[error("no connection to PostgreSQL at {place}: {why}")]
pub struct Unreachable {
    place: String,
    why: String,
}

/// The database cannot be worked with yet.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    /// There is nobody to ask.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// The schema could not be brought up to date.
    #[error("the database schema could not be brought up to date")]
    Schema(#[from] sqlx::migrate::MigrateError),
    /// The log could not be looked at.
    #[error(transparent)]
    Log(#[from] StoreError),
    /// The log was restored from another cluster, and its epoch was not raised.
    #[error(
        "the event log was written in another PostgreSQL cluster. As the owner of the schema, run once: \
         update log.store_epoch set epoch = epoch + 1"
    )]
    WrittenElsewhere,
}
