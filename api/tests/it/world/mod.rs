//! A world with two organizations and one member of each role, behind the whole router.

mod people;
pub mod policies;
pub mod runs;

pub use people::{Tenant, new_user, new_workspace, origin, token};

use std::time::Duration;

use axum::Router;
use sqlx::postgres::PgPoolOptions;
use sqlx::{Executor as _, PgPool};
use stackship_api::signed_path::{KEY_LABEL, SignedPaths};
use stackship_api::{ApiSettings, App, AppInner, Platform};
use stackship_domain::Timestamp;
use stackship_projections::{CursorKey, Projector, ViewWaiter, Views};
use stackship_store::notify::Nudges;
use stackship_store::objects::{KeyRing, Objects};
use stackship_store::{Store, clock};
use tokio_util::sync::CancellationToken;

use crate::http::{Answer, Call};

/// How long something that must come true may take, on a machine that does much else. The log's
/// reader can be held back by other databases of the same cluster.
pub const SOON: Duration = Duration::from_secs(90);
/// A lag that no test waits for.
const READY_LAG_SECONDS: u32 = 600;
const CONNECTIONS_MAX: u32 = 8;

pub struct World {
    /// Superuser connections, for counting what the API wrote.
    pub owner: PgPool,
    pub store: Store,
    pub views: Views,
    pub nudges: Nudges,
    pub router: Router,
    /// The same for who takes no read model that is behind at all.
    pub router_ready_without_lag: Router,
    pub acme: Tenant,
    pub umbrella: Tenant,
    pub stop: CancellationToken,
    _directory: tempfile::TempDir,
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl World {
    pub async fn new(owner: PgPool) -> Self {
        Self::reached_at(owner, "https://ship.test").await
    }

    /// A world whose answers name this address.
    pub async fn reached_at(owner: PgPool, url: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let pool = pool_as(&owner, "set role stackship_api");
        let keys = KeyRing::load_or_create(&directory.path().join("keys/key")).unwrap();
        let objects = Objects::open(&directory.path().join("objects"), keys, pool.clone()).unwrap();
        let store = Store::new(pool.clone(), objects);
        let (nudges, stop) = (Nudges::default(), CancellationToken::new());
        let projector = Projector::new(
            pool_as(&owner, "set role stackship_projector"),
            nudges.clone(),
        );
        tokio::spawn(nudges.clone().listen(pool.clone(), stop.clone()));
        tokio::spawn(projector.run(stop.clone()));
        let views = Views::new(pool, CursorKey::new([7; 32]));
        Self {
            acme: Tenant::new(&store, "acme").await,
            umbrella: Tenant::new(&store, "umbrella").await,
            router: stackship_api::router(app(&store, &views, &nudges, url, READY_LAG_SECONDS)),
            router_ready_without_lag: stackship_api::router(app(&store, &views, &nudges, url, 0)),
            owner,
            store,
            views,
            nudges,
            stop,
            _directory: directory,
        }
    }

    /// Sends a request of acme's owner.
    pub async fn send(&self, method: &str, path: &str, body: &serde_json::Value) -> Answer {
        Call::new(method, path, &self.acme.owner.token)
            .json(body)
            .send(&self.router)
            .await
    }

    pub async fn count(&self, table: &str) -> i64 {
        let query = format!("select count(*) from {table}");
        sqlx::query_scalar(&query)
            .fetch_one(&self.owner)
            .await
            .unwrap()
    }
}

/// Waits for a condition that must come true.
pub async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let waiting = async {
        let mut tick = tokio::time::interval(Duration::from_millis(5));
        while !condition().await {
            tick.tick().await;
        }
    };
    assert!(
        tokio::time::timeout(SOON, waiting).await.is_ok(),
        "it did not come true that {what}"
    );
}

pub fn in_an_hour() -> Timestamp {
    clock::now() + Duration::from_hours(1)
}

fn app(store: &Store, views: &Views, nudges: &Nudges, url: &str, ready_lag_seconds: u32) -> App {
    let pool = store.pool.clone();
    let signer = SignedPaths::new(store.objects.keys().derive(KEY_LABEL));
    App::new(AppInner {
        store: store.clone(),
        views: views.clone(),
        waiter: ViewWaiter::new(pool, nudges.clone()),
        nudges: nudges.clone(),
        evaluator: policies::evaluator(),
        signer,
        settings: ApiSettings {
            public_url: url.to_owned(),
            hostname: "ship.test".to_owned(),
            gateway_url: url.to_owned(),
            default_tofu_version: "1.12.6".parse().unwrap(),
            default_region: "local".to_owned(),
            ready_lag_seconds,
            default_platform: Platform::LinuxAmd64,
            lease_seconds: 30,
            plan_seconds_max: 3600,
            apply_seconds_max: 3600,
            snapshot_interval_seconds: 20,
        },
    })
}

fn pool_as(owner: &PgPool, set_role: &'static str) -> PgPool {
    PgPoolOptions::new()
        .max_connections(CONNECTIONS_MAX)
        .after_connect(move |connection, _| {
            Box::pin(async move { connection.execute(set_role).await.map(drop) })
        })
        .connect_lazy_with((*owner.connect_options()).clone())
}
