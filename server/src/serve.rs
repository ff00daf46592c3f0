//! `stackship serve`: everything on one machine, started in order and stopped in the reverse one.

use std::time::Duration;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use stackship_api::serving::{self, Limits};
use stackship_api::signed_path::SignedPaths;
use stackship_api::{ApiSettings, App, AppInner, Platform};
use stackship_policy::Evaluator;
use stackship_projections::{CursorKey, Projector, ViewWaiter, Views, lag};
use stackship_store::Store;
use stackship_store::notify::Nudges;
use stackship_workflow::engine::Engine;
use stackship_workflow::policy::Checker;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Failure;
use crate::audit::Keeper;
use crate::database::Database;
use crate::settings::Settings;

/// Where OpenTofu inside a sandbox finds the control plane.
const GATEWAY_URL: &str = "http://127.0.0.1:8080";
/// How long requests that have begun may take to end once nobody else needs the server.
const HTTP_DRAIN: Duration = Duration::from_secs(30);
/// This very program, also after its file was replaced by a newer release's.
const OWN_PROGRAM: &str = "/proc/self/exe";
/// How long background work may take to end once everything else has stopped.
const BACKGROUND_DRAIN: Duration = Duration::from_secs(10);
/// What the runner may need after its own two graces: to upload the last state and report.
const RUNNER_MARGIN: Duration = Duration::from_secs(30);
/// How long a scrape waits for the database.
const LAG_ANSWER_LIMIT: Duration = Duration::from_secs(2);
/// How often objects without a record are looked for.
const OBJECT_SWEEP_EVERY: Duration = Duration::from_hours(1);

/// Serves until a signal, or until the private database is lost.
pub async fn serve(settings: Settings) -> Result<(), Failure> {
    crate::runner::check(&settings)?;
    let metrics = PrometheusBuilder::new().install_recorder()?;
    let (lost_sender, lost) = tokio::sync::oneshot::channel();
    let database = Database::open(&settings, Some(lost_sender)).await?;
    let store = database.store(&settings)?;
    let projector_pool = database.projector()?;
    let listener = TcpListener::bind(settings.listen).await.map_err(|error| {
        format!(
            "setting `listen`: {} cannot be bound: {error}",
            settings.listen
        )
    })?;
    let address = listener.local_addr()?;

    let nudges = Nudges::default();
    let background = CancellationToken::new();
    let tasks = TaskTracker::new();
    tasks.spawn(
        nudges
            .clone()
            .listen(store.pool.clone(), background.clone()),
    );
    tasks.spawn(Projector::new(projector_pool.clone(), nudges.clone()).run(background.clone()));
    let limits = Limits {
        connections_max: usize::try_from(settings.connections_max)?,
        ..Limits::default()
    };
    // One for all: it bounds how many policies are evaluated at once.
    let evaluator = Evaluator::new(OWN_PROGRAM.into());
    let checker = Checker::new(evaluator.clone());
    tasks.spawn(Engine::new(store.clone(), nudges.clone(), checker).run(background.clone()));
    keep_heads(&settings, &store, &tasks, &background);
    tasks.spawn(sweep_objects(store.clone(), background.clone()));
    let app = app(&settings, &store, nudges, evaluator)?;
    let (mut http, http_stop) = serve_http(listener, app, limits, metrics);
    let runner_stop = CancellationToken::new();
    let runner = crate::runner::embedded(&settings, &store, address, runner_stop.clone()).await?;
    tracing::info!(url = %settings.public_url(), listen = %address, "StackShip serves");

    let ended = wait_for_the_end(lost, &mut http).await;
    tracing::info!("Shutting down: no new leases; running phases are handed back or ended");
    runner_stop.cancel();
    // The runner first waits, then interrupts what still runs; both need the API until the end.
    let grace = Duration::from_secs(u64::from(
        settings.shutdown_grace_seconds + settings.runner.interrupt_grace_seconds,
    )) + RUNNER_MARGIN;
    if let Some(runner) = runner
        && tokio::time::timeout(grace, runner).await.is_err()
    {
        tracing::warn!(
            grace_seconds = grace.as_secs(),
            "Phases were still running at the end of the grace"
        );
    }
    http_stop.cancel();
    if !http.is_finished() && tokio::time::timeout(HTTP_DRAIN, http).await.is_err() {
        tracing::warn!("Requests were cut off that did not end in time");
    }
    background.cancel();
    tasks.close();
    if tokio::time::timeout(BACKGROUND_DRAIN, tasks.wait())
        .await
        .is_err()
    {
        tracing::warn!("Background work did not end in time");
    }
    projector_pool.close().await;
    store.pool.close().await;
    database.close().await?;
    tracing::info!("Stopped");
    ended
}

/// Signs where audits end. Without it everything else works, so a file that cannot be continued is an
/// alarm and no reason to stand still.
fn keep_heads(settings: &Settings, store: &Store, tasks: &TaskTracker, stop: &CancellationToken) {
    match Keeper::open(&settings.data_dir, store.pool.clone()) {
        Ok(keeper) => {
            tasks.spawn(keeper.run(stop.clone()));
        }
        Err(error) => {
            let cause = error.source().map(ToString::to_string);
            tracing::error!(
                error = %error,
                error.cause = cause,
                alarm = "audit_heads_unkept",
                "Heads of the audit are not signed"
            );
        }
    }
}

/// Removes what an upload left behind when its process died between the object and its record.
async fn sweep_objects(store: Store, stop: CancellationToken) {
    let mut clock = tokio::time::interval(OBJECT_SWEEP_EVERY);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = clock.tick() => {}
        }
        match store.objects.sweep(stackship_store::clock::now()).await {
            Ok(0) => {}
            Ok(removed) => tracing::info!(removed, "Removed objects that no record names"),
            Err(error) => {
                tracing::error!(error = %error, "Objects without a record could not be removed");
            }
        }
    }
}

/// The state of the API over a store.
pub fn app(
    settings: &Settings,
    store: &Store,
    nudges: Nudges,
    evaluator: Evaluator,
) -> Result<App, Failure> {
    let keys = store.objects.keys();
    Ok(App::new(AppInner {
        views: Views::new(
            store.pool.clone(),
            CursorKey::new(keys.derive("run-list-cursor/v1")),
        ),
        waiter: ViewWaiter::new(store.pool.clone(), nudges.clone()),
        nudges,
        evaluator,
        signer: SignedPaths::new(keys.derive("signed-paths/v1")),
        settings: ApiSettings {
            public_url: settings.public_url(),
            hostname: settings.hostname(),
            gateway_url: GATEWAY_URL.to_owned(),
            default_tofu_version: settings.default_tofu_version.parse()?,
            default_region: settings.default_region.clone(),
            ready_lag_seconds: settings.ready_lag_seconds,
            default_platform: Platform::OWN,
            lease_seconds: settings.lease_seconds,
            plan_seconds_max: settings.runner.plan_seconds_max,
            apply_seconds_max: settings.runner.apply_seconds_max,
            snapshot_interval_seconds: settings.runner.snapshot_interval_seconds,
        },
        store: store.clone(),
    }))
}

type Http = tokio::task::JoinHandle<()>;

fn serve_http(
    listener: TcpListener,
    app: App,
    limits: Limits,
    metrics: PrometheusHandle,
) -> (Http, CancellationToken) {
    let stop = CancellationToken::new();
    let pool = app.store.pool.clone();
    let router = stackship_api::router(app).route(
        "/metrics",
        axum::routing::get(async move || {
            // A projector that has died no longer moves the gauge of its lag. What cannot be
            // measured now keeps its last value, and other gauges are shown all the same.
            drop(tokio::time::timeout(LAG_ANSWER_LIMIT, lag(&pool)).await);
            metrics.render()
        }),
    );
    let server = serving::serve(listener, router, limits, stop.clone());
    (tokio::spawn(server), stop)
}

/// Waits for SIGINT, SIGTERM, or a loss that makes going on pointless.
async fn wait_for_the_end(
    lost: tokio::sync::oneshot::Receiver<()>,
    http: &mut Http,
) -> Result<(), Failure> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    // Without a private cluster nobody ever sends, and the receiver must not end the server.
    let lost = async {
        if lost.await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
        () = lost => Err("the private PostgreSQL ended by itself; its log is in the data directory".into()),
        ended = http => ended.map_err(Into::into),
    }
}
