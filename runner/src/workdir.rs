//! What stands around a configuration in a sandbox: the same files at the same paths, and the same
//! environment, in plan and in apply.

use std::path::PathBuf;
use std::time::Duration;

use stackship_domain::Sha256Digest;
use stackship_runner_protocol::{LOCK_FILE_BYTES_MAX, Lease};
use stackship_sandbox::spec::{PROVIDERS_DIR, TOFU_DIR, WORKSPACE_DIR};
use stackship_sandbox::{
    Artifact, Digest, Environment, Input, InputSource, Limits, Network, Placement, Presence,
    ReadOnlyDirectory, ReceivedArtifact, SandboxSpec, Stdout, Step,
};

use crate::dependencies::{LISTING_BYTES_MAX, LISTING_SCRIPT};
use crate::inputs::{Fetched, Inputs};
use crate::mirror::{ProviderMirrorError, provider_installation};
use crate::{RunnerSettings, backend, variables};

/// The program inside.
const TOFU: &str = "/opt/tofu/tofu";
/// Our own files inside: outside the configuration, so that none of its files can stand in for one.
pub(crate) const OWN_DIR: &str = "/tmp/stackship";
/// The plan file inside.
pub(crate) const PLAN_FILE: &str = "/tmp/stackship/plan.bin";
/// The input variables inside.
const VARIABLES_FILE: &str = "/tmp/stackship/inputs.tfvars";
/// The CLI configuration inside.
pub(crate) const CLI_CONFIGURATION_FILE: &str = "/tmp/stackship/tofu.tfrc";
/// The largest file of our own that is brought out again.
const OWN_FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// The input variables inside, as an argument.
pub(crate) const VARIABLES_ARGUMENT: &str = "-var-file=/tmp/stackship/inputs.tfvars";
/// Exit code of the first step when the working directory holds no configuration.
pub(crate) const NO_CONFIGURATION: i32 = 3;

/// For `tofu init`, which may download providers.
const INIT_TIME_MAX: Duration = Duration::from_mins(10);
/// For a step of ours that only looks at files.
const LOOK_TIME_MAX: Duration = Duration::from_mins(1);
/// What the steps around the phase's own may take in all.
const AROUND_TIME_MAX: Duration = Duration::from_mins(20);

/// Puts the override file where OpenTofu reads it, and the approved lock file over one that came with
/// the configuration. A directory without any configuration is refused: OpenTofu would take it for one
/// that declares nothing, and plan to destroy everything.
const PREPARE_SCRIPT: &str = r#"found=
for file in ./*.tf ./*.tofu ./*.tf.json ./*.tofu.json; do [ -f "$file" ] && found=1 && break; done
[ -n "$found" ] || exit 3
cp /tmp/stackship/backend.tf "./$1" || exit 1
[ ! -f /tmp/stackship/lock.hcl ] || cp --remove-destination /tmp/stackship/lock.hcl .terraform.lock.hcl"#;

/// Names of inputs, as outcomes tell them.
pub(crate) mod input {
    pub(crate) const CONFIGURATION: &str = "configuration";
    pub(crate) const PLAN: &str = "plan";
    pub(crate) const LOCK_FILE: &str = "lock_file";
}

/// Names of steps.
pub(crate) mod step {
    pub(crate) const PREPARE: &str = "prepare";
    pub(crate) const INIT: &str = "init";
    pub(crate) const DEPENDENCIES: &str = "dependencies";
}

/// Names of artifacts that both phases bring out.
pub(crate) mod artifact {
    pub(crate) const BACKEND: &str = "backend";
    pub(crate) const LOCK_FILE: &str = "lock_file";
    pub(crate) const MODULES: &str = "modules";
    pub(crate) const VARIABLES: &str = "variables";
    pub(crate) const CLI_CONFIGURATION: &str = "cli_configuration";
    pub(crate) const APPROVED_PLAN: &str = "approved_plan";
}

/// Why nothing can be put around a configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkdirError {
    #[error("The working directory leads out of the configuration.")]
    LeadsOut,
    #[error("the provider mirror cannot be used")]
    Mirror(#[from] ProviderMirrorError),
}

/// The part of a specification that plan and apply share.
pub(crate) struct Workdir<'a> {
    settings: &'a RunnerSettings,
    lease: &'a Lease,
    inputs: &'a Inputs,
    tofu: PathBuf,
    cli_configuration: Vec<u8>,
    lock_file: Option<&'a Fetched>,
    directory: String,
    environment: Environment,
    network: Network,
}

impl<'a> Workdir<'a> {
    pub(crate) fn new(
        settings: &'a RunnerSettings,
        lease: &'a Lease,
        inputs: &'a Inputs,
        tofu: PathBuf,
    ) -> Result<Self, WorkdirError> {
        let network = Network {
            gateway: true,
            egress: settings.egress.is_some(),
        };
        let directory = working_directory(&inputs.pinned.working_directory);
        let mirror = settings.provider_mirror.as_deref();
        let installation = provider_installation(mirror, network.egress)?;
        Ok(Self {
            directory: directory.ok_or(WorkdirError::LeadsOut)?,
            cli_configuration: backend::cli_configuration(&settings.hostname, &installation),
            environment: variables::step_environment(&inputs.pinned.variables, lease, network),
            lock_file: None,
            settings,
            lease,
            inputs,
            tofu,
            network,
        })
    }

    /// Initializes with exactly this lock file.
    pub(crate) fn with_lock_file(mut self, lock_file: Option<&'a Fetched>) -> Self {
        self.lock_file = lock_file;
        self
    }

    /// A path in the working directory.
    pub(crate) fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.directory)
    }

    /// A step that runs OpenTofu.
    pub(crate) fn tofu(&self, name: &str, arguments: &[&str], time_limit: Duration) -> Step {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned());
        self.step(
            name,
            std::iter::once(TOFU.to_owned()).chain(arguments).collect(),
            time_limit,
        )
    }

    /// The specification up to the pause after `init`, without the phase's own steps.
    pub(crate) fn specification(&self) -> SandboxSpec {
        let phase_time = Duration::from_secs(self.lease.phase_seconds_max.into());
        SandboxSpec {
            name: self.lease.attempt.to_string(),
            directories: self.directories(),
            inputs: self.placed_inputs(),
            steps: vec![self.prepare(), self.init(), self.list_dependencies()],
            artifacts: vec![
                self.artifact(
                    artifact::BACKEND,
                    ".terraform/terraform.tfstate",
                    backend::RECORD_BYTES_MAX,
                ),
                self.artifact(
                    artifact::LOCK_FILE,
                    ".terraform.lock.hcl",
                    LOCK_FILE_BYTES_MAX,
                ),
                after_init(artifact::VARIABLES, VARIABLES_FILE, OWN_FILE_BYTES_MAX),
                after_init(
                    artifact::CLI_CONFIGURATION,
                    CLI_CONFIGURATION_FILE,
                    OWN_FILE_BYTES_MAX,
                ),
            ],
            limits: Limits {
                total_time: phase_time + AROUND_TIME_MAX,
                ..self.settings.limits
            },
            network: self.network,
        }
    }

    /// The file of ours that is no longer what was placed, if there is one. `init` may run programs
    /// of the configuration's choosing with the rights of every later step; between its end and the
    /// phase's own step nothing of the configuration runs, so what comes out then is what is used.
    pub(crate) fn first_changed(&self, received: &[ReceivedArtifact]) -> Option<&'static str> {
        let (variables, cli) = self.own_bytes();
        [
            (artifact::VARIABLES, variables),
            (artifact::CLI_CONFIGURATION, cli),
        ]
        .into_iter()
        .find_map(|(name, placed)| {
            let is_same = is_unchanged(received, name, Sha256Digest::of(&placed));
            (!is_same).then_some(name)
        })
    }

    /// Our own files as they are placed: the variables and the CLI configuration.
    fn own_bytes(&self) -> (Vec<u8>, Vec<u8>) {
        (
            variables::variables_file(&self.inputs.pinned.variables),
            self.cli_configuration.clone(),
        )
    }

    /// What is bound read-only into every sandbox of the attempt.
    pub(crate) fn directories(&self) -> Vec<ReadOnlyDirectory> {
        let tofu = ReadOnlyDirectory {
            host: self.tofu.clone(),
            inside: TOFU_DIR.to_owned(),
        };
        let mirror = self.settings.provider_mirror.clone();
        let mirror = mirror.map(|host| ReadOnlyDirectory {
            host,
            inside: PROVIDERS_DIR.to_owned(),
        });
        std::iter::once(tofu).chain(mirror).collect()
    }

    fn placed_inputs(&self) -> Vec<Input> {
        let hostname = &self.settings.hostname;
        let (variables, cli) = self.own_bytes();
        let mut inputs = vec![
            Input {
                name: input::CONFIGURATION.to_owned(),
                source: InputSource::File(self.inputs.configuration.path.clone()),
                expected: Some(inside(self.lease.configuration.sha256)),
                placement: Placement::Unpack {
                    directory: WORKSPACE_DIR.to_owned(),
                },
            },
            own_file(VARIABLES_FILE, variables),
            own_file(
                "/tmp/stackship/backend.tf",
                backend::override_file(hostname, self.lease),
            ),
            own_file(CLI_CONFIGURATION_FILE, cli),
        ];
        inputs.extend(
            self.lock_file
                .map(|file| verified_file(input::LOCK_FILE, file, &format!("{OWN_DIR}/lock.hcl"))),
        );
        inputs
    }

    fn prepare(&self) -> Step {
        let script = ["/bin/sh", "-c", PREPARE_SCRIPT, step::PREPARE].map(str::to_owned);
        let arguments = script
            .into_iter()
            .chain([backend::override_name(self.lease)])
            .collect();
        self.step(step::PREPARE, arguments, LOOK_TIME_MAX)
    }

    fn init(&self) -> Step {
        let mut arguments = vec!["init", "-input=false", "-no-color"];
        if self.lock_file.is_some() {
            arguments.push("-lockfile=readonly");
        }
        self.tofu(step::INIT, &arguments, INIT_TIME_MAX)
    }

    fn list_dependencies(&self) -> Step {
        Step {
            stdout: Stdout::Artifact {
                name: artifact::MODULES.to_owned(),
                bytes_max: LISTING_BYTES_MAX,
            },
            pause_after: true,
            ..self.shell(step::DEPENDENCIES, LISTING_SCRIPT, LOOK_TIME_MAX)
        }
    }

    /// A step that runs a script of ours.
    pub(crate) fn shell(&self, name: &str, script: &str, time_limit: Duration) -> Step {
        let arguments = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
        self.step(name, arguments, time_limit)
    }

    /// A step that runs anything.
    pub(crate) fn step(&self, name: &str, argv: Vec<String>, time_limit: Duration) -> Step {
        Step {
            name: name.to_owned(),
            argv,
            environment: self.environment.clone(),
            directory: self.directory.clone(),
            stdout: Stdout::Log,
            continue_on: vec![0],
            time_limit,
            pause_after: false,
        }
    }

    fn artifact(&self, name: &str, file: &str, bytes_max: u64) -> Artifact {
        Artifact {
            name: name.to_owned(),
            path: self.path(file),
            bytes_max,
            after: step::INIT.to_owned(),
            presence: Presence::Optional,
        }
    }
}

/// A file whose digest was computed on receipt and is checked again inside.
pub(crate) fn verified_file(name: &str, file: &Fetched, path: &str) -> Input {
    Input {
        name: name.to_owned(),
        source: InputSource::File(file.path.clone()),
        expected: Some(inside(file.sha256)),
        placement: Placement::File {
            path: path.to_owned(),
            mode: 0o600,
        },
    }
}

/// Whether the artifact of this name came out with these exact bytes.
pub(crate) fn is_unchanged(
    received: &[ReceivedArtifact],
    name: &str,
    expected: Sha256Digest,
) -> bool {
    received
        .iter()
        .any(|artifact| artifact.name() == name && artifact.digest() == inside(expected))
}

/// A file as it is after everything that `init` may have run.
pub(crate) fn after_init(name: &str, path: &str, bytes_max: u64) -> Artifact {
    Artifact {
        name: name.to_owned(),
        path: path.to_owned(),
        bytes_max,
        after: step::DEPENDENCIES.to_owned(),
        presence: Presence::Optional,
    }
}

/// A file whose bytes are made here.
pub(crate) fn own_file(path: &str, bytes: Vec<u8>) -> Input {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    Input {
        name: name.to_owned(),
        source: InputSource::Bytes(bytes),
        expected: None,
        placement: Placement::File {
            path: path.to_owned(),
            mode: 0o600,
        },
    }
}

fn inside(digest: Sha256Digest) -> Digest {
    Digest::from_bytes(*digest.as_bytes())
}

/// The working directory inside; `None` when the pinned one leads elsewhere.
fn working_directory(below: &str) -> Option<String> {
    let below = below.trim_matches('/');
    if below.is_empty() {
        return Some(WORKSPACE_DIR.to_owned());
    }
    let is_plain = |part: &str| {
        !part.is_empty() && part != "." && part != ".." && !part.contains(char::is_control)
    };
    below
        .split('/')
        .all(is_plain)
        .then(|| format!("{WORKSPACE_DIR}/{below}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_working_directory_stays_below_the_configuration() {
        for (below, expected) in [
            ("", Some("/workspace")),
            ("/", Some("/workspace")),
            ("envs/prod", Some("/workspace/envs/prod")),
            ("envs/prod/", Some("/workspace/envs/prod")),
            ("..", None),
            ("a/../../tmp", None),
            ("a//b", None),
            ("./a", None),
        ] {
            assert_eq!(working_directory(below).as_deref(), expected, "{below}");
        }
    }
}
