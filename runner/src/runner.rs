//! The loop that leases.

use std::sync::Arc;
use std::time::Duration;

use stackship_runner_protocol::{LEASE_WAIT_MS_MAX, Lease, LeaseRequest};
use stackship_sandbox::{Capabilities, SandboxDriver, SweepError, Unavailable};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::RunnerSettings;
use crate::attempt::{Shared, execute};
use crate::control_plane::{CallError, ControlPlane};
use crate::tools::Tools;

/// How long to wait after the first lease request that failed; doubled after each.
const LEASE_AFTER: Duration = Duration::from_millis(100);
/// The longest pause between two lease requests.
const LEASE_AFTER_MAX: Duration = Duration::from_secs(5);
/// What this build can execute, as OpenTofu names it.
#[cfg(target_arch = "x86_64")]
pub(crate) const PLATFORM: &str = "linux_amd64";
#[cfg(target_arch = "aarch64")]
pub(crate) const PLATFORM: &str = "linux_arm64";

/// Why a runner cannot work.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// Runs cannot be isolated here, so none are taken.
    #[error("runs cannot be isolated on this machine")]
    Isolation(#[from] Unavailable),
    /// What an earlier life left could not be removed.
    #[error("what an earlier life of this runner left cannot be removed")]
    Sweep(#[from] SweepError),
    /// A directory of the runner cannot be used.
    #[error("the runner's work directory cannot be used")]
    WorkDirectory(#[source] std::io::Error),
    /// The HTTP client cannot be set up.
    #[error("the client of the control plane cannot be set up")]
    Client(#[source] reqwest::Error),
    /// The control plane does not know this runner.
    #[error("the control plane does not take this runner's requests")]
    Refused(#[source] CallError),
}

/// A runner.
pub struct Runner {
    shared: Arc<Shared>,
}

impl Runner {
    /// Sets a runner up; it does nothing before [`Runner::run`].
    pub fn new(
        settings: RunnerSettings,
        driver: Arc<dyn SandboxDriver>,
    ) -> Result<Self, RunnerError> {
        std::fs::create_dir_all(&settings.work_directory).map_err(RunnerError::WorkDirectory)?;
        let control_plane =
            ControlPlane::new(&settings.control_plane_url, settings.runner_token.clone());
        let shared = Shared {
            control_plane: Arc::new(control_plane.map_err(RunnerError::Client)?),
            tools: Tools::new(settings.tools.clone(), &settings.work_directory),
            driver,
            settings,
            stop: CancellationToken::new(),
            force: CancellationToken::new(),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Removes what an earlier life left and shows that runs are isolated here. Nothing is leased
    /// before this has passed.
    pub async fn probe(&self) -> Result<Capabilities, RunnerError> {
        let swept = self.shared.driver.sweep().await? + self.sweep_work_directory()?;
        if swept > 0 {
            tracing::info!(swept, "Removed what an earlier life of this runner left");
        }
        Ok(self.shared.driver.probe().await?)
    }

    /// Leases and executes until `stop`, then lets started applies end and hands the rest back.
    pub async fn run(&self, stop: CancellationToken) -> Result<(), RunnerError> {
        let capabilities = self.probe().await?;
        tracing::info!(driver = capabilities.driver, version = %capabilities.version, slots = self.shared.settings.slots,
            region = %self.shared.settings.region, "The runner can isolate and begins to lease");
        let mut attempts = JoinSet::new();
        let outcome = self.lease_until(&stop, &capabilities, &mut attempts).await;
        self.shared.stop.cancel();
        let grace = self.shared.settings.shutdown_grace;
        let all_ended = async { while attempts.join_next().await.is_some() {} };
        if tokio::time::timeout(grace, all_ended).await.is_err() {
            tracing::warn!("The grace for started applies is over; interrupting them");
            self.shared.force.cancel();
            while attempts.join_next().await.is_some() {}
        }
        outcome
    }

    async fn lease_until(
        &self,
        stop: &CancellationToken,
        capabilities: &Capabilities,
        attempts: &mut JoinSet<()>,
    ) -> Result<(), RunnerError> {
        let request = self.request(capabilities);
        let places = Arc::new(Semaphore::new(usize::from(self.shared.settings.slots)));
        let mut pause = LEASE_AFTER;
        loop {
            let place = tokio::select! {
                () = stop.cancelled() => return Ok(()),
                place = Arc::clone(&places).acquire_owned() => place.expect("the semaphore is never closed"),
            };
            let leased = tokio::select! {
                () = stop.cancelled() => return Ok(()),
                leased = self.shared.control_plane.lease(&request) => leased,
            };
            match leased {
                Ok(lease) => {
                    pause = LEASE_AFTER;
                    if let Some(lease) = lease {
                        self.start(lease, place, attempts);
                    }
                }
                Err(error @ CallError::Refused { .. }) if !error.may_pass() => {
                    return Err(RunnerError::Refused(error));
                }
                Err(error) => {
                    tracing::warn!(error = %error, "A lease request failed");
                    tokio::select! {
                        () = stop.cancelled() => return Ok(()),
                        () = tokio::time::sleep(pause) => pause = (pause * 2).min(LEASE_AFTER_MAX),
                    }
                }
            }
            // Attempts that ended are taken out, so that the set holds the live ones only.
            while attempts.try_join_next().is_some() {}
        }
    }

    fn start(
        &self,
        lease: Lease,
        place: tokio::sync::OwnedSemaphorePermit,
        attempts: &mut JoinSet<()>,
    ) {
        let shared = Arc::clone(&self.shared);
        attempts.spawn(async move {
            execute(&shared, lease).await;
            drop(place);
        });
    }

    fn request(&self, capabilities: &Capabilities) -> LeaseRequest {
        LeaseRequest {
            region: self.shared.settings.region.clone(),
            platform: PLATFORM.to_owned(),
            wait_ms: LEASE_WAIT_MS_MAX,
            release: env!("CARGO_PKG_VERSION").to_owned(),
            isolation: capabilities.driver.to_owned(),
        }
    }

    fn sweep_work_directory(&self) -> Result<u32, RunnerError> {
        let mut swept = 0;
        for entry in std::fs::read_dir(&self.shared.settings.work_directory)
            .map_err(RunnerError::WorkDirectory)?
        {
            let entry = entry.map_err(RunnerError::WorkDirectory)?;
            if entry
                .file_name()
                .to_string_lossy()
                .starts_with(crate::inputs::DIRECTORY_PREFIX)
            {
                std::fs::remove_dir_all(entry.path()).map_err(RunnerError::WorkDirectory)?;
                swept += 1;
            }
        }
        Ok(swept)
    }
}
