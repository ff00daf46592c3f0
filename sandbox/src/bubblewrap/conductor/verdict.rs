//! Why a sandbox ended, from what was decided outside, reported inside and counted by the kernel.

use std::sync::Arc;

use super::super::cgroup::Usage;
use super::super::receiver::Received;
use crate::outcome::{EndReason, StepExit};
use crate::wire::{DoneHow, JobNames};

/// What was decided outside holds unless the supervisor had already finished by then.
pub(super) fn reason(
    ending: Option<EndReason>,
    received: &Received,
    names: &JobNames,
    usage: &Usage,
    detail: String,
) -> EndReason {
    if let Some(fatal) = &received.fatal {
        return fatal.clone();
    }
    match (received.done, ending) {
        (Some(DoneHow::Finished), _) => finished(received, names, usage),
        (Some(DoneHow::Interrupted) | None, Some(ending)) => ending,
        (Some(DoneHow::Interrupted), None) => EndReason::Protocol {
            detail: "an interrupt nobody asked for",
        },
        (None, None) if usage.oom_kills > 0 => EndReason::Oom,
        (None, None) => EndReason::Lost { detail },
    }
}

fn finished(received: &Received, names: &JobNames, usage: &Usage) -> EndReason {
    if let Some(verdict) = &received.verdict {
        return verdict.clone();
    }
    let ended = received.steps.iter().zip(&names.steps);
    let failed = ended.clone().find(|(report, facts)| match report.exit {
        StepExit::Code(code) => !facts.continue_on.contains(&code),
        StepExit::Signal(_) | StepExit::NotStarted => true,
    });
    match failed {
        Some(_) if usage.oom_kills > 0 => EndReason::Oom,
        Some(_) if usage.pids_refusals > 0 => EndReason::Pids,
        Some((report, _)) => EndReason::StepFailed {
            step: Arc::clone(&report.step),
            exit: report.exit,
        },
        None if ended.len() < names.steps.len() => EndReason::Protocol {
            detail: "an end before the last step",
        },
        None => EndReason::Exited,
    }
}
