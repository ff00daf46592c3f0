//! One driver for the whole test process, a control plane per test, and short ways to say what a
//! test is about.

mod control_plane;
mod leases;
mod state;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use stackship_runner::{Runner, RunnerError, RunnerSettings, ToolSettings};
use stackship_runner_protocol::{PhaseResult, Secret};
use stackship_sandbox::bubblewrap::{Bubblewrap, Settings};
use stackship_sandbox::{
    Capabilities, LaunchError, Limits, Sandbox, SandboxDriver, SandboxSpec, SweepError, Unavailable,
};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use control_plane::ControlPlane;
pub use leases::{Pinned, snapshot, text_variable};

/// How long a test waits for what must happen.
pub const PATIENCE: Duration = Duration::from_mins(2);
/// How long an interrupted phase may take at most: longer than any test waits.
pub const INTERRUPT_GRACE: Duration = Duration::from_mins(5);
pub const HOSTNAME: &str = "stackship.test";
pub const RUNNER_TOKEN: &str = "ssr_the-runners-own-token";

/// The one driver of this process. Tests run side by side, so it is swept and probed once.
struct Shared {
    driver: Bubblewrap,
    _runtime: TempDir,
}

#[async_trait]
impl SandboxDriver for Shared {
    fn id(&self) -> &'static str {
        self.driver.id()
    }

    async fn probe(&self) -> Result<Capabilities, Unavailable> {
        static FOUND: tokio::sync::OnceCell<Capabilities> = tokio::sync::OnceCell::const_new();
        FOUND.get_or_try_init(|| self.driver.probe()).await.cloned()
    }

    async fn launch(&self, spec: SandboxSpec) -> Result<Box<dyn Sandbox>, LaunchError> {
        self.driver.launch(spec).await
    }

    async fn sweep(&self) -> Result<u32, SweepError> {
        Ok(0)
    }
}

fn driver() -> Arc<dyn SandboxDriver> {
    static DRIVER: OnceLock<Arc<Shared>> = OnceLock::new();
    let shared = DRIVER.get_or_init(|| {
        let runtime = tempfile::tempdir().unwrap();
        let name = format!("runner-test-{}", std::process::id());
        let mut settings = Settings::new(name, runtime.path().join("run")).unwrap();
        settings.helper = PathBuf::from(env!("CARGO_BIN_EXE_runner-sandbox-init"));
        settings.slots = 2;
        let driver = Bubblewrap::new(settings).unwrap_or_else(|error| panic!("{error}"));
        Arc::new(Shared {
            driver,
            _runtime: runtime,
        })
    });
    Arc::clone(shared) as Arc<dyn SandboxDriver>
}

/// A directory that scripts/bootstrap fills. A test without it fails and says where it looked.
#[expect(
    clippy::disallowed_methods,
    reason = "a test binary has no configuration but its environment"
)]
fn bootstrapped(variable: &str, in_cache: &str, holds: &str) -> PathBuf {
    let named = std::env::var_os(variable).map(PathBuf::from);
    let cache = || {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache
            .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
        cache.unwrap().join("stackship").join(in_cache)
    };
    let directory = named.unwrap_or_else(cache);
    let inside = directory.join(holds);
    assert!(
        inside.exists(),
        "{} is missing; run scripts/bootstrap test",
        inside.display()
    );
    directory
}

/// The directory with verified releases.
pub fn mirror() -> PathBuf {
    bootstrapped("STACKSHIP_TOFU_MIRROR", "mirror", "1.12.6/tofu")
}

/// The mirror with the providers for tests.
pub fn providers() -> PathBuf {
    bootstrapped(
        "STACKSHIP_TEST_PROVIDERS",
        "providers/mirror",
        "registry.opentofu.org/stackship/fixture",
    )
}

/// A runner at work for a control plane.
pub struct World {
    pub control_plane: Arc<ControlPlane>,
    stop: CancellationToken,
    running: JoinHandle<Result<(), RunnerError>>,
    work: TempDir,
}

impl World {
    pub async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// With other settings than usual.
    pub async fn with(change: impl FnOnce(&mut RunnerSettings)) -> Self {
        Self::again(change, tempfile::tempdir().unwrap()).await
    }

    /// A runner that has its OpenTofu from there.
    pub async fn with_tools(tools: ToolSettings) -> Self {
        Self::with(|settings| settings.tools = tools).await
    }

    /// Another life of a runner, in the directory of the one before.
    pub async fn again(change: impl FnOnce(&mut RunnerSettings), work: TempDir) -> Self {
        let control_plane = ControlPlane::start().await;
        let mut settings = RunnerSettings {
            control_plane_url: control_plane.url.clone(),
            runner_token: Secret::new(RUNNER_TOKEN.to_owned()),
            hostname: HOSTNAME.to_owned(),
            region: "test".to_owned(),
            slots: 1,
            tools: ToolSettings {
                mirror: Some(mirror()),
                release_base_url: "http://127.0.0.1:9/never-asked".to_owned(),
                pinned: std::collections::BTreeMap::new(),
            },
            provider_mirror: None,
            egress: None,
            work_directory: work.path().join("work"),
            limits: Limits {
                memory_bytes: 1 << 30,
                workspace_bytes: 64 << 20,
                tmp_bytes: 64 << 20,
                interrupt_grace: INTERRUPT_GRACE,
                ..Limits::default()
            },
            shutdown_grace: Duration::from_mins(2),
        };
        change(&mut settings);
        let runner = Runner::new(settings, driver()).unwrap();
        let stop = CancellationToken::new();
        let token = stop.clone();
        let running = tokio::spawn(async move { runner.run(token).await });
        Self {
            control_plane,
            stop,
            running,
            work,
        }
    }

    /// Offers a lease and waits for its result.
    pub async fn execute(&self, lease: stackship_runner_protocol::Lease) -> PhaseResult {
        self.control_plane.offer(lease);
        self.control_plane.result().await
    }

    /// Where downloaded tools are kept.
    pub fn tools(&self) -> PathBuf {
        self.work.path().join("work/tools")
    }

    /// Stops the runner and waits until it is done.
    pub async fn stop(self) -> Arc<ControlPlane> {
        self.end().await.0
    }

    /// Stops the runner and keeps its directory.
    pub async fn end(self) -> (Arc<ControlPlane>, TempDir) {
        self.stop.cancel();
        tokio::time::timeout(PATIENCE, self.running)
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        (self.control_plane, self.work)
    }
}
