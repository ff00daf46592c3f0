//! What goes inside: the launch plan for the helper, then the job for the supervisor.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Digest;
use crate::spec::{Limits, Placement, Presence, SandboxSpec, Stdout, Step};

/// What the launch helper needs to become `bwrap`. The filter's descriptor travels beside it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LaunchPlan {
    pub(crate) bwrap: PathBuf,
    /// The helper gives up when its parent is another process.
    pub(crate) parent: i32,
    /// The unprivileged user to become; absent when the runner is already unprivileged.
    pub(crate) uid: Option<u32>,
    /// `cgroup.procs` files to enter.
    pub(crate) cgroups: Vec<PathBuf>,
    /// Host path and path inside.
    pub(crate) directories: Vec<(PathBuf, String)>,
    pub(crate) helper: PathBuf,
    pub(crate) workspace_bytes: u64,
    pub(crate) tmp_bytes: u64,
    pub(crate) pids: u32,
}

/// What the supervisor does. One descriptor for each input travels beside it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) inputs: Vec<JobInput>,
    pub(crate) steps: Vec<JobStep>,
    pub(crate) artifacts: Vec<JobArtifact>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct JobInput {
    pub(crate) expected: Option<Digest>,
    pub(crate) placement: JobPlacement,
}

#[derive(Serialize, Deserialize)]
pub(crate) enum JobPlacement {
    File { path: String, mode: u32 },
    Unpack { directory: String },
}

#[derive(Serialize, Deserialize)]
pub(crate) struct JobStep {
    pub(crate) argv: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) directory: String,
    /// Index of the artifact that standard output becomes.
    pub(crate) stdout_artifact: Option<u16>,
    pub(crate) continue_on: Vec<i32>,
    pub(crate) pause_after: bool,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct JobArtifact {
    /// Absent when the bytes are a step's standard output.
    pub(crate) path: Option<String>,
    pub(crate) bytes_max: u64,
    /// Index of the step.
    pub(crate) after: u16,
    pub(crate) required: bool,
}

/// The names and limits the host keeps, by the indexes the wire uses.
pub(crate) struct JobNames {
    pub(crate) inputs: Vec<std::sync::Arc<str>>,
    pub(crate) steps: Vec<StepFacts>,
    pub(crate) artifacts: Vec<ArtifactFacts>,
}

pub(crate) struct StepFacts {
    pub(crate) name: std::sync::Arc<str>,
    pub(crate) continue_on: Vec<i32>,
    pub(crate) time_limit: Duration,
}

pub(crate) struct ArtifactFacts {
    pub(crate) name: std::sync::Arc<str>,
    pub(crate) bytes_max: u64,
    pub(crate) after: u16,
}

impl Job {
    /// Splits a checked spec into what goes inside and what stays outside.
    pub(crate) fn of(spec: &SandboxSpec) -> (Self, JobNames) {
        let mut artifacts = Vec::new();
        let mut facts = Vec::new();
        for artifact in &spec.artifacts {
            let after = spec
                .steps
                .iter()
                .position(|step| step.name == artifact.after);
            let after = index(after.expect("a checked spec names existing steps"));
            artifacts.push(JobArtifact {
                path: Some(artifact.path.clone()),
                bytes_max: artifact.bytes_max,
                after,
                required: artifact.presence == Presence::Required,
            });
            facts.push(ArtifactFacts::new(
                &artifact.name,
                artifact.bytes_max,
                after,
            ));
        }
        for (position, step) in spec.steps.iter().enumerate() {
            if let Stdout::Artifact { name, bytes_max } = &step.stdout {
                let (bytes_max, after) = (*bytes_max, index(position));
                artifacts.push(JobArtifact {
                    path: None,
                    bytes_max,
                    after,
                    required: false,
                });
                facts.push(ArtifactFacts::new(name, bytes_max, after));
            }
        }
        let steps = spec.steps.iter().enumerate();
        let steps = steps.map(|(position, step)| JobStep::of(step, index(position), &artifacts));
        let job = Self {
            inputs: inputs(spec),
            steps: steps.collect(),
            artifacts,
        };
        let names = JobNames {
            inputs: spec
                .inputs
                .iter()
                .map(|input| input.name.as_str().into())
                .collect(),
            steps: spec.steps.iter().map(StepFacts::of).collect(),
            artifacts: facts,
        };
        (job, names)
    }
}

impl JobStep {
    fn of(step: &Step, position: u16, artifacts: &[JobArtifact]) -> Self {
        let stdout = artifacts
            .iter()
            .position(|a| a.path.is_none() && a.after == position);
        Self {
            argv: step.argv.clone(),
            environment: step.environment.pairs().to_vec(),
            directory: step.directory.clone(),
            stdout_artifact: stdout.map(index),
            continue_on: step.continue_on.clone(),
            pause_after: step.pause_after,
        }
    }
}

impl StepFacts {
    fn of(step: &Step) -> Self {
        Self {
            name: step.name.as_str().into(),
            continue_on: step.continue_on.clone(),
            time_limit: step.time_limit,
        }
    }
}

impl ArtifactFacts {
    fn new(name: &str, bytes_max: u64, after: u16) -> Self {
        Self {
            name: name.into(),
            bytes_max,
            after,
        }
    }
}

impl LaunchPlan {
    pub(crate) fn set_limits(&mut self, limits: &Limits) {
        self.workspace_bytes = limits.workspace_bytes;
        self.tmp_bytes = limits.tmp_bytes;
        self.pids = limits.pids;
    }
}

fn inputs(spec: &SandboxSpec) -> Vec<JobInput> {
    let placement = |placement: &Placement| match placement {
        Placement::File { path, mode } => JobPlacement::File {
            path: path.clone(),
            mode: *mode,
        },
        Placement::Unpack { directory } => JobPlacement::Unpack {
            directory: directory.clone(),
        },
    };
    let input = |input: &crate::Input| JobInput {
        expected: input.expected,
        placement: placement(&input.placement),
    };
    spec.inputs.iter().map(input).collect()
}

fn index(position: usize) -> u16 {
    u16::try_from(position).expect("a checked spec has few steps and artifacts")
}
