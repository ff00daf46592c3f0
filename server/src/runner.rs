//! The runner of this process: embedded in `serve`, or alone on a host of its own.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use stackship_runner::{
    ProviderMirrorError, Runner, RunnerSettings, ToolSettings, mirrored_providers,
};
use stackship_runner_protocol::Secret;
use stackship_sandbox::bubblewrap::{Bubblewrap, Settings as DriverSettings};
use stackship_sandbox::egress::EgressPolicy;
use stackship_sandbox::{Limits, SandboxDriver};
use stackship_store::records::runners;
use stackship_store::{Store, clock};
use tokio_util::sync::CancellationToken;

use crate::Failure;
use crate::settings::{Settings, names_the_scripts_mirror};

/// Bytes in a MiB.
const MIB: u64 = 1 << 20;
/// How long a runner that could not start waits before it tries again.
const RESTART_AFTER: Duration = Duration::from_secs(30);

/// Runs would find no provider, or not the ones that are meant.
#[derive(Debug, thiserror::Error)]
#[error("setting `runner.provider_mirror`: it has to name a provider mirror")]
struct NoProviderMirror(#[source] ProviderMirrorError);

/// Every run would end for want of an OpenTofu, and the first to notice would be a user.
#[derive(Debug, thiserror::Error)]
#[error(
    "setting `tofu.mirror`: {} is no directory; name the one that holds VERSION/tofu and VERSION/SHA256SUMS",
    .0.display()
)]
struct NoMirror(std::path::PathBuf);

/// The scripts' variable and not the setting, which differ by one underscore.
#[derive(Debug, thiserror::Error)]
#[error(
    "environment variable `STACKSHIP_TOFU_MIRROR`: only the scripts read it; did you mean STACKSHIP_TOFU__MIRROR, \
     which is the setting `tofu.mirror`?"
)]
struct ScriptsMirror;

/// Looks at what the settings of a runner name on this machine, before anything is started.
pub fn check(settings: &Settings) -> Result<(), Failure> {
    if !settings.runner.enabled {
        return Ok(());
    }
    match &settings.tofu.mirror {
        Some(mirror) if !mirror.is_dir() => return Err(NoMirror(mirror.clone()).into()),
        None if names_the_scripts_mirror() => return Err(ScriptsMirror.into()),
        Some(_) | None => {}
    }
    egress(settings)?;
    if let Some(mirror) = &settings.runner.provider_mirror {
        mirrored_providers(mirror).map_err(NoProviderMirror)?;
    }
    Ok(())
}

/// Starts the embedded runner, unless the settings say not to. It speaks to the server over loopback
/// like any other runner: it has no other way in.
pub async fn embedded(
    settings: &Settings,
    store: &Store,
    address: SocketAddr,
    stop: CancellationToken,
) -> Result<Option<tokio::task::JoinHandle<()>>, Failure> {
    if !settings.runner.enabled {
        return Ok(None);
    }
    let token = embedded_token(settings, store).await?;
    let reachable = match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => {
            SocketAddr::from(([127, 0, 0, 1], v4.port()))
        }
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => {
            SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], v6.port()))
        }
        other => other,
    };
    let runner_settings = runner_settings(settings, &format!("http://{reachable}"), token)?;
    let driver = driver(settings)?;
    Ok(Some(tokio::spawn(keep_running(
        runner_settings,
        driver,
        stop,
    ))))
}

/// `stackship runner`: this process is a runner and nothing else.
pub async fn alone(settings: Settings) -> Result<(), Failure> {
    check(&settings)?;
    let url = settings
        .runner
        .control_plane_url
        .clone()
        .ok_or("setting `runner.control_plane_url` is needed")?;
    let file = settings
        .runner
        .token_file
        .clone()
        .ok_or("setting `runner.token_file` is needed")?;
    let token = std::fs::read_to_string(&file)
        .map_err(|error| format!("setting `runner.token_file`: {}: {error}", file.display()))?;
    let runner_settings = runner_settings(&settings, &url, token.trim().to_owned())?;
    let driver = driver(&settings)?;
    let stop = CancellationToken::new();
    let ending = stop.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            ending.cancel();
        }
    });
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let terminated = stop.clone();
    tokio::spawn(async move {
        terminate.recv().await;
        terminated.cancel();
    });
    Runner::new(runner_settings, driver)?.run(stop).await?;
    Ok(())
}

/// A runner that cannot isolate runs nothing, says why, and tries again: the server goes on, so that
/// people can still read what happened.
async fn keep_running(
    settings: RunnerSettings,
    driver: Arc<dyn SandboxDriver>,
    stop: CancellationToken,
) {
    while !stop.is_cancelled() {
        let outcome = match Runner::new(settings.clone(), Arc::clone(&driver)) {
            Ok(runner) => runner.run(stop.clone()).await,
            Err(error) => Err(error),
        };
        let Err(error) = outcome else { return };
        tracing::error!(
            error = %error,
            cause = std::error::Error::source(&error).map(tracing::field::display),
            retry_seconds = RESTART_AFTER.as_secs(),
            "The runner cannot run; runs wait until it can"
        );
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(RESTART_AFTER) => {}
        }
    }
}

fn driver(settings: &Settings) -> Result<Arc<dyn SandboxDriver>, Failure> {
    let mut driver =
        DriverSettings::new(settings.runner.name.clone(), sandbox_directory(settings))?;
    driver.slots = settings.runner.slots;
    Ok(Arc::new(Bubblewrap::new(driver)?))
}

fn sandbox_directory(settings: &Settings) -> PathBuf {
    settings.data_dir.join("runner").join("sandbox")
}

/// Where runs may connect to; nothing where no host is named.
fn egress(settings: &Settings) -> Result<Option<EgressPolicy>, Failure> {
    let allowed = &settings.runner.egress_allow;
    if allowed.is_empty() {
        return Ok(None);
    }
    let policy = EgressPolicy::parse(allowed)
        .map_err(|error| format!("setting `runner.egress_allow`: {error}"))?;
    Ok(Some(policy))
}

fn runner_settings(
    settings: &Settings,
    url: &str,
    token: String,
) -> Result<RunnerSettings, Failure> {
    let part = &settings.runner;
    let egress = egress(settings)?;
    let mut pinned = BTreeMap::new();
    for (version, sum) in &settings.tofu.release_sha256 {
        pinned.insert(version.parse()?, sum.parse()?);
    }
    Ok(RunnerSettings {
        control_plane_url: url.trim_end_matches('/').to_owned(),
        runner_token: Secret::new(token),
        hostname: settings.hostname(),
        region: part
            .region
            .clone()
            .unwrap_or_else(|| settings.default_region.clone()),
        slots: part.slots,
        tools: ToolSettings {
            mirror: settings.tofu.mirror.clone(),
            release_base_url: settings.tofu.release_url.clone(),
            pinned,
        },
        provider_mirror: part.provider_mirror.clone(),
        egress,
        work_directory: settings.data_dir.join("runner").join("work"),
        limits: Limits {
            memory_bytes: part.memory_mib * MIB,
            pids: part.pids,
            cpu_millis: part.cpu_millis,
            workspace_bytes: part.workspace_mib * MIB,
            interrupt_grace: Duration::from_secs(u64::from(part.interrupt_grace_seconds)),
            ..Limits::default()
        },
        shutdown_grace: Duration::from_secs(u64::from(settings.shutdown_grace_seconds)),
    })
}

/// The embedded runner's token, made at the first start and kept beside the keys.
async fn embedded_token(settings: &Settings, store: &Store) -> Result<String, Failure> {
    let file = settings.data_dir.join("keys").join("runner.token");
    if let Ok(token) = std::fs::read_to_string(&file)
        && runners::authenticate(store, token.trim()).await?.is_some()
    {
        return Ok(token.trim().to_owned());
    }
    // A database that does not know the token is another one: this runner is new to it.
    let name = format!("{}-{}", settings.runner.name, clock::fresh_text());
    let (_, secret) = runners::create(store, &name).await?;
    write_private(&file, secret.expose())
        .map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(secret.expose().to_owned())
}

fn write_private(file: &Path, text: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(file)?.write_all(text.as_bytes())
}
