//! The rules a spec must keep before a driver looks at it.

use std::collections::HashSet;
use std::time::Duration;

use thiserror::Error;

use super::{
    ARTIFACTS_MAX, DIRECTORIES_MAX, INLINE_BYTES_MAX, INPUTS_MAX, Input, InputSource, Limits,
    Placement, STEPS_MAX, SandboxSpec, Stdout, Step, TMP_DIR, WORKSPACE_DIR,
};

/// Longest name of a sandbox, input, step or artifact.
const NAME_MAX: usize = 40;
/// Longest path inside.
const PATH_MAX: usize = 1024;
/// Longest time limit.
const TIME_MAX: Duration = Duration::from_hours(24);
/// Least memory in which the supervisor itself can work.
const MEMORY_MIN: u64 = 32 << 20;
/// Least number of processes and threads the supervisor itself needs.
const PIDS_MIN: u32 = 16;

/// A rule of the specification that was broken, and where.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
#[error("{at}: {rule}")]
pub struct SpecError {
    /// The part of the spec, for example `step plan`.
    pub at: String,
    /// The broken rule.
    pub rule: &'static str,
}

impl SandboxSpec {
    /// Checks everything that can be checked without touching a file.
    pub fn check(&self) -> Result<(), SpecError> {
        name("name", &self.name)?;
        self.check_counts()?;
        self.check_directories()?;
        self.check_inputs()?;
        self.check_steps()?;
        self.check_artifacts()?;
        check_limits(&self.limits)
    }

    fn check_counts(&self) -> Result<(), SpecError> {
        rule("inputs", self.inputs.len() <= INPUTS_MAX, "too many inputs")?;
        rule("steps", self.steps.len() <= STEPS_MAX, "too many steps")?;
        rule(
            "steps",
            !self.steps.is_empty(),
            "at least one step is needed",
        )?;
        rule(
            "artifacts",
            self.artifacts.len() <= ARTIFACTS_MAX,
            "too many artifacts",
        )?;
        rule(
            "directories",
            self.directories.len() <= DIRECTORIES_MAX,
            "too many directories",
        )?;
        let inline = self.inputs.iter().map(Input::inline_bytes).sum::<usize>()
            + self.steps.iter().map(Step::inline_bytes).sum::<usize>();
        rule(
            "inputs",
            inline <= INLINE_BYTES_MAX,
            "too many bytes held in memory",
        )
    }

    fn check_directories(&self) -> Result<(), SpecError> {
        let mut seen = HashSet::new();
        for directory in &self.directories {
            let at = format!("directory {}", directory.inside);
            let place = directory.inside == super::PROVIDERS_DIR
                || below(&directory.inside, "/opt") && directory.inside.matches('/').count() == 2;
            rule(&at, place, "must be /providers or one name below /opt")?;
            rule(
                &at,
                directory.host.is_absolute(),
                "the host path must be absolute",
            )?;
            rule(&at, seen.insert(&directory.inside), "is given twice")?;
        }
        Ok(())
    }

    fn check_inputs(&self) -> Result<(), SpecError> {
        let mut seen = HashSet::new();
        for input in &self.inputs {
            name("input", &input.name)?;
            let at = format!("input {}", input.name);
            rule(&at, seen.insert(&input.name), "the name is given twice")?;
            match &input.placement {
                Placement::File { path, mode } => {
                    rule(
                        &at,
                        writable(path),
                        "the path must lie below /workspace or /tmp",
                    )?;
                    rule(&at, mode & !0o755 == 0, "the mode may be 0755 at most")?;
                }
                Placement::Unpack { directory } => rule(
                    &at,
                    directory == WORKSPACE_DIR || below(directory, WORKSPACE_DIR),
                    "the directory must be /workspace or lie below it",
                )?,
            }
        }
        Ok(())
    }

    fn check_steps(&self) -> Result<(), SpecError> {
        let mut seen = HashSet::new();
        for step in &self.steps {
            name("step", &step.name)?;
            let at = format!("step {}", step.name);
            rule(&at, seen.insert(&step.name), "the name is given twice")?;
            let program = step.argv.first().map(String::as_str).unwrap_or_default();
            rule(
                &at,
                program.starts_with('/'),
                "the program must be an absolute path",
            )?;
            rule(
                &at,
                step.directory.starts_with('/'),
                "the directory must be absolute",
            )?;
            rule(
                &at,
                step.time_limit <= TIME_MAX,
                "the time limit is too long",
            )?;
            let texts = || {
                let pairs = step.environment.pairs().iter();
                step.argv
                    .iter()
                    .chain(pairs.flat_map(|(name, value)| [name, value]))
            };
            rule(
                &at,
                !texts().any(|text| text.contains('\0')),
                "a text contains NUL",
            )?;
            let named = |(name, _): &(String, String)| !name.is_empty() && !name.contains('=');
            rule(
                &at,
                step.environment.pairs().iter().all(named),
                "a variable has a bad name",
            )?;
        }
        Ok(())
    }

    fn check_artifacts(&self) -> Result<(), SpecError> {
        let mut seen = HashSet::new();
        for step in &self.steps {
            if let Stdout::Artifact { name: artifact, .. } = &step.stdout {
                name("artifact", artifact)?;
                rule(
                    artifact,
                    seen.insert(artifact),
                    "the artifact name is given twice",
                )?;
            }
        }
        for artifact in &self.artifacts {
            name("artifact", &artifact.name)?;
            let at = format!("artifact {}", artifact.name);
            rule(&at, seen.insert(&artifact.name), "the name is given twice")?;
            rule(
                &at,
                writable(&artifact.path),
                "the path must lie below /workspace or /tmp",
            )?;
            let known = self.steps.iter().any(|step| step.name == artifact.after);
            rule(&at, known, "names a step that does not exist")?;
        }
        Ok(())
    }
}

impl Input {
    fn inline_bytes(&self) -> usize {
        match &self.source {
            InputSource::Bytes(bytes) => bytes.len(),
            InputSource::File(_) => 0,
        }
    }
}

impl Step {
    fn inline_bytes(&self) -> usize {
        let environment = self
            .environment
            .pairs()
            .iter()
            .map(|(name, value)| name.len() + value.len());
        self.argv.iter().map(String::len).chain(environment).sum()
    }
}

fn check_limits(limits: &Limits) -> Result<(), SpecError> {
    let writable = limits.workspace_bytes.saturating_add(limits.tmp_bytes);
    rule(
        "limits",
        limits.memory_bytes >= MEMORY_MIN,
        "memory is below 32 MiB",
    )?;
    rule(
        "limits",
        limits.memory_bytes >= writable,
        "memory is smaller than the writable directories",
    )?;
    rule("limits", limits.pids >= PIDS_MIN, "fewer than 16 processes")?;
    rule(
        "limits",
        limits.cpu_millis >= 10,
        "less than a hundredth of a processor",
    )?;
    rule(
        "limits",
        limits.workspace_bytes > 0 && limits.tmp_bytes > 0,
        "a directory has no size",
    )?;
    rule(
        "limits",
        limits.total_time <= TIME_MAX,
        "the total time is too long",
    )?;
    rule(
        "limits",
        limits.interrupt_grace <= TIME_MAX,
        "the grace period is too long",
    )
}

fn rule(at: &str, holds: bool, rule: &'static str) -> Result<(), SpecError> {
    if holds {
        Ok(())
    } else {
        Err(SpecError {
            at: at.to_owned(),
            rule,
        })
    }
}

fn name(at: &str, name: &str) -> Result<(), SpecError> {
    let plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
    let good =
        (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(plain) && !name.starts_with('.');
    rule(at, good, "a name is 1 to 40 of a-z, 0-9, `-`, `_`, `.`")
}

/// Whether `path` is a plain path strictly below `root`.
fn below(path: &str, root: &str) -> bool {
    let Some(rest) = path
        .strip_prefix(root)
        .and_then(|rest| rest.strip_prefix('/'))
    else {
        return false;
    };
    path.len() <= PATH_MAX
        && !path.contains('\0')
        && rest
            .split('/')
            .all(|part| !part.is_empty() && part != "." && part != "..")
}

fn writable(path: &str) -> bool {
    below(path, WORKSPACE_DIR) || below(path, TMP_DIR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_below_a_root_has_plain_parts_only() {
        for (path, expected) in [
            ("/workspace/a", true),
            ("/workspace/a/b.tf", true),
            ("/workspace", false),
            ("/workspace/", false),
            ("/workspace//a", false),
            ("/workspace/../etc", false),
            ("/workspace/./a", false),
            ("/workspacex/a", false),
            ("workspace/a", false),
        ] {
            assert_eq!(below(path, WORKSPACE_DIR), expected, "{path}");
        }
    }
}
