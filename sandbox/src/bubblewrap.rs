//! The default driver: `bwrap` for namespaces and mounts, cgroups for limits, a system call
//! filter, and our own supervisor inside.
//!
//! Between this process and `bwrap` stands a helper stage, the host binary re-executed: it enters
//! the cgroups, drops to the slot's user, sets resource limits and ties its life to this process,
//! all with safe system call wrappers, and then becomes `bwrap`. That keeps privileged setup out
//! of a forked child of a threaded process.
//!
//! A launch, in order: take a slot; make its cgroups; spawn the helper on the one thread that
//! lives as long as the driver, because the parent-death signal follows that thread; hand it the
//! plan; receive fresh sockets from the supervisor inside; hand it the job. Then one thread
//! receives what comes out ([`receiver`]) and one task decides about time, commands and the end
//! ([`conductor`]).
//!
//! When a tree is killed, `bwrap`'s PID 1 can become a child of the machine's or container's first
//! process, which must collect its dead children; in a container, run the server under an init.
//!
//! As root, each slot runs as its own unprivileged host user. As a plain user, the sandbox runs
//! as that user and needs a delegated cgroup v2 subtree; this path is implemented but not covered
//! by the tests.

mod arguments;
mod cgroup;
mod conductor;
mod helper;
mod inputs;
mod launch;
mod probe;
mod receiver;
mod seccomp;
mod settings;
mod slots;
mod spawner;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use async_trait::async_trait;

pub(crate) use helper::main as launch_main;
pub use settings::Settings;

use crate::driver::{Capabilities, LaunchError, Sandbox, SandboxDriver, SweepError, Unavailable};
use crate::spec::SandboxSpec;
use cgroup::Hierarchy;
use slots::Slots;
use spawner::Spawner;

/// Id of this driver in evidence.
const DRIVER: &str = "bubblewrap";
/// System directories inside are the host's own `/usr`, read-only.
const BASE_PROFILE: &str = "host-usr";

/// The driver. One for each process; a second one with the same runtime directory is refused.
#[derive(Debug)]
pub struct Bubblewrap {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    settings: Settings,
    bwrap: std::path::PathBuf,
    root: bool,
    filter: Vec<u8>,
    hierarchy: Hierarchy,
    slots: Slots,
    spawner: Spawner,
    launched: AtomicU64,
    _lock: std::fs::File,
}

impl Bubblewrap {
    /// Finds `bwrap` and the cgroups, and takes the runtime directory. Launches nothing yet.
    pub fn new(settings: Settings) -> Result<Self, Unavailable> {
        settings.check()?;
        let lock = settings.lock_runtime_directory()?;
        let inner = Inner {
            bwrap: settings.find_bwrap()?,
            root: rustix::process::geteuid().is_root(),
            filter: seccomp::filter()?,
            hierarchy: Hierarchy::discover(&settings.group_name()?)?,
            slots: Slots::new(settings.slots),
            spawner: Spawner::start()?,
            launched: AtomicU64::new(0),
            _lock: lock,
            settings,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }
}

#[async_trait]
impl SandboxDriver for Bubblewrap {
    fn id(&self) -> &'static str {
        DRIVER
    }

    async fn probe(&self) -> Result<Capabilities, Unavailable> {
        probe::run(&self.inner).await
    }

    async fn launch(&self, spec: SandboxSpec) -> Result<Box<dyn Sandbox>, LaunchError> {
        let inner = Arc::clone(&self.inner);
        // On a task of its own, a caller that goes away cannot leave a half-made sandbox behind.
        let launched = tokio::spawn(launch::launch(inner, spec)).await;
        let sandbox = launched.map_err(|_| LaunchError::Setup {
            detail: "the launch was abandoned".to_owned(),
        })??;
        Ok(Box::new(sandbox))
    }

    async fn sweep(&self) -> Result<u32, SweepError> {
        let inner = Arc::clone(&self.inner);
        let swept = tokio::task::spawn_blocking(move || {
            Ok(inner.hierarchy.sweep()? + inner.settings.sweep_runtime_directory()?)
        });
        swept.await.unwrap_or_else(|error| {
            let path = self.inner.settings.runtime_directory.clone();
            Err(SweepError {
                path,
                source: std::io::Error::other(error),
            })
        })
    }
}
