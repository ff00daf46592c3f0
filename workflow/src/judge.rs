//! What a runner's report means. Pure: the report and what the control plane itself knows go in, a
//! command's content comes out. A runner never decides this.

use stackship_domain::ids::ObjectId;
use stackship_domain::run::{
    ApplyReport, Counts, Doubt, DoubtReason, PlanChanges, PlanFailure, PlanRecord, Predecessor,
    StagedState, TerminalReason,
};
use stackship_runner_protocol::{ApplyEnd, PlanEnd, SeenState};

/// What a plan's report means.
#[derive(Debug, Clone, PartialEq)]
pub enum PlanVerdict {
    /// There is a plan.
    Recorded(Box<PlanRecord>),
    /// There is none.
    Failed(PlanFailure),
    /// It stopped because it was asked to.
    Stopped,
    /// Its sandbox vanished.
    SandboxLost,
}

/// Exit code of `tofu plan -detailed-exitcode` for a plan without changes.
const EXIT_NO_CHANGES: i32 = 0;
/// Exit code of `tofu plan -detailed-exitcode` for a plan with changes.
const EXIT_CHANGES: i32 = 2;

/// Judges a plan by its exit code together with its JSON, never by counts alone: a plan that only
/// moves or forgets has counts that look empty to whoever counts creations.
pub fn judge_plan(end: PlanEnd, predecessor: Predecessor) -> PlanVerdict {
    match end {
        PlanEnd::Stopped => PlanVerdict::Stopped,
        PlanEnd::SandboxLost { .. } => PlanVerdict::SandboxLost,
        PlanEnd::Failed { reason, detail } => PlanVerdict::Failed(PlanFailure {
            reason: plan_reason(reason),
            detail,
        }),
        PlanEnd::Planned {
            exit_code,
            json,
            plan,
            plan_json,
            plan_diff,
            policy_input,
            lock_file,
            dependencies,
            sandbox,
        } => {
            let changes = match (exit_code, json.errored, json.counts == Counts::default()) {
                (EXIT_CHANGES, false, _) => PlanChanges::Some,
                (EXIT_NO_CHANGES, false, true) => PlanChanges::None,
                (code, errored, _) => return PlanVerdict::Failed(contradiction(code, errored)),
            };
            PlanVerdict::Recorded(Box::new(PlanRecord {
                plan: plan.sha256,
                plan_json: plan_json.sha256,
                plan_diff: plan_diff.sha256,
                policy_input: policy_input.as_ref().map(|stored| stored.sha256),
                policy_input_doubts: json.doubtful,
                dependencies,
                predecessor,
                changes,
                counts: json.counts,
                plan_bytes: plan.bytes,
                plan_json_bytes: plan_json.bytes,
                plan_object: plan.object,
                plan_json_object: plan_json.object,
                plan_diff_object: plan_diff.object,
                policy_input_object: policy_input.map(|stored| stored.object),
                lock_file_object: lock_file.map(|stored| stored.object),
                sandbox,
            }))
        }
    }
}

fn contradiction(code: i32, errored: bool) -> PlanFailure {
    let detail = if errored {
        "The plan's own JSON says that it is errored.".to_owned()
    } else {
        format!("OpenTofu ended with exit code {code}, which its plan's JSON contradicts.")
    };
    PlanFailure {
        reason: TerminalReason::PlanFailed,
        detail,
    }
}

/// A runner may name only the reasons that a plan can end by.
const fn plan_reason(claimed: TerminalReason) -> TerminalReason {
    match claimed {
        TerminalReason::PlanRefused
        | TerminalReason::PlanLimitExceeded
        | TerminalReason::SandboxUnavailable => claimed,
        _ => TerminalReason::PlanFailed,
    }
}

/// What an apply's report means, before anything is published.
#[derive(Debug, Clone, PartialEq)]
pub enum ApplyVerdict {
    /// Publish this staged state; only then has the apply succeeded.
    Publish(StagedState),
    /// It ended in another way.
    Report(ApplyReport),
}

/// Judges an apply. `staged` is the newest state that the control plane itself holds of the run:
/// success needs it, and it must be the one the runner saw pass.
pub fn judge_apply(end: ApplyEnd, staged: Option<StagedState>) -> ApplyVerdict {
    match end {
        ApplyEnd::NotStarted { part, detail } => {
            ApplyVerdict::Report(ApplyReport::NotStarted { part, detail })
        }
        ApplyEnd::Killed {
            limit_exceeded,
            detail,
            errored_state,
            ..
        } => {
            let reason = if limit_exceeded {
                DoubtReason::LimitExceeded
            } else {
                DoubtReason::SandboxLost
            };
            doubt(
                reason,
                detail,
                staged,
                errored_state.map(|stored| stored.object),
            )
        }
        ApplyEnd::Exited {
            exit_code: 0, seen, ..
        } => published(seen.as_ref(), staged),
        ApplyEnd::Exited {
            exit_code,
            interrupted: true,
            errored_state,
            ..
        } => doubt(
            DoubtReason::Interrupted,
            format!("tofu apply was interrupted and ended with exit code {exit_code}."),
            staged,
            errored_state.map(|stored| stored.object),
        ),
        ApplyEnd::Exited {
            exit_code,
            errored_state: Some(errored),
            ..
        } => doubt(
            DoubtReason::StateUploadFailed,
            format!("tofu apply ended with exit code {exit_code} and could not upload its state."),
            staged,
            Some(errored.object),
        ),
        ApplyEnd::Exited { exit_code, .. } => ApplyVerdict::Report(ApplyReport::Failed {
            detail: format!("tofu apply ended with exit code {exit_code}."),
            emergency: staged,
        }),
    }
}

/// An exit code 0 that published nothing is doubt, not success: a foreign backend looks like that.
fn published(seen: Option<&SeenState>, staged: Option<StagedState>) -> ApplyVerdict {
    match (seen, staged) {
        (Some(seen), Some(staged))
            if seen.version == staged.version && seen.sha256 == staged.digest =>
        {
            ApplyVerdict::Publish(staged)
        }
        (_, None) => doubt(
            DoubtReason::NothingPublished,
            "tofu apply reported success but published no state.".to_owned(),
            None,
            None,
        ),
        (_, Some(staged)) => doubt(
            DoubtReason::PublicationUnconfirmed,
            "The state that arrived is not the one that the runner saw pass.".to_owned(),
            Some(staged),
            None,
        ),
    }
}

fn doubt(
    reason: DoubtReason,
    detail: String,
    emergency: Option<StagedState>,
    errored_state_object: Option<ObjectId>,
) -> ApplyVerdict {
    ApplyVerdict::Report(ApplyReport::Doubt(Doubt {
        reason,
        detail,
        emergency,
        errored_state_object,
    }))
}

#[cfg(test)]
mod tests {
    use stackship_domain::Sha256Digest;
    use stackship_domain::ids::StateVersionId;
    use stackship_domain::run::samples;
    use stackship_runner_protocol::{PlanJsonFacts, StoredArtifact};

    use super::*;

    fn artifact(text: &str) -> StoredArtifact {
        StoredArtifact {
            object: samples::id::<ObjectId>(1),
            sha256: Sha256Digest::of(text.as_bytes()),
            bytes: 4,
        }
    }

    fn planned(exit_code: i32, counts: Counts, errored: bool) -> PlanVerdict {
        let end = PlanEnd::Planned {
            exit_code,
            json: PlanJsonFacts {
                counts,
                errored,
                doubtful: 0,
            },
            plan: artifact("plan"),
            plan_json: artifact("json"),
            plan_diff: artifact("diff"),
            policy_input: Some(artifact("policy input")),
            lock_file: None,
            dependencies: Sha256Digest::of(b"bundle"),
            sandbox: serde_json::Value::Null,
        };
        judge_plan(end, Predecessor::None)
    }

    fn changes(verdict: &PlanVerdict) -> Option<PlanChanges> {
        match verdict {
            PlanVerdict::Recorded(plan) => Some(plan.changes),
            PlanVerdict::Failed(_) | PlanVerdict::Stopped | PlanVerdict::SandboxLost => None,
        }
    }

    #[test]
    fn the_exit_code_and_the_json_must_agree() {
        let none = Counts::default();
        let one = Counts { create: 1, ..none };
        assert_eq!(changes(&planned(0, none, false)), Some(PlanChanges::None));
        assert_eq!(changes(&planned(2, one, false)), Some(PlanChanges::Some));
        assert_eq!(
            changes(&planned(2, none, false)),
            Some(PlanChanges::Some),
            "counts alone never say no"
        );
        assert_eq!(
            changes(&planned(0, one, false)),
            None,
            "no changes, yet the JSON has some"
        );
        assert_eq!(changes(&planned(1, none, false)), None);
        assert_eq!(changes(&planned(2, one, true)), None, "an errored plan");
    }

    fn exited(
        exit_code: i32,
        interrupted: bool,
        seen: Option<SeenState>,
        errored: bool,
    ) -> ApplyEnd {
        ApplyEnd::Exited {
            exit_code,
            interrupted,
            seen,
            errored_state: errored.then(|| artifact("errored")),
            sandbox: serde_json::Value::Null,
        }
    }

    fn reason(verdict: &ApplyVerdict) -> Option<DoubtReason> {
        match verdict {
            ApplyVerdict::Report(ApplyReport::Doubt(doubt)) => Some(doubt.reason),
            ApplyVerdict::Publish(_) | ApplyVerdict::Report(_) => None,
        }
    }

    #[test]
    fn success_needs_the_state_that_the_runner_saw() {
        let staged = samples::staged();
        let seen = SeenState {
            version: staged.version,
            sha256: staged.digest,
        };
        assert_eq!(
            judge_apply(
                exited(0, false, Some(seen.clone()), false),
                Some(staged.clone())
            ),
            ApplyVerdict::Publish(staged.clone())
        );
        let other = SeenState {
            version: samples::id::<StateVersionId>(77),
            ..seen.clone()
        };
        for (seen, staged, expected) in [
            (None, None, DoubtReason::NothingPublished),
            (Some(seen), None, DoubtReason::NothingPublished),
            (
                None,
                Some(staged.clone()),
                DoubtReason::PublicationUnconfirmed,
            ),
            (
                Some(other),
                Some(staged),
                DoubtReason::PublicationUnconfirmed,
            ),
        ] {
            assert_eq!(
                reason(&judge_apply(exited(0, false, seen, false), staged)),
                Some(expected)
            );
        }
    }

    #[test]
    fn an_interrupted_apply_is_never_a_plain_failure() {
        let staged = Some(samples::staged());
        assert_eq!(
            reason(&judge_apply(exited(1, true, None, false), staged.clone())),
            Some(DoubtReason::Interrupted)
        );
        assert_eq!(
            reason(&judge_apply(exited(1, false, None, true), staged)),
            Some(DoubtReason::StateUploadFailed)
        );
        let killed = ApplyEnd::Killed {
            limit_exceeded: false,
            detail: String::new(),
            seen: None,
            errored_state: None,
        };
        assert_eq!(
            reason(&judge_apply(killed, None)),
            Some(DoubtReason::SandboxLost)
        );
    }

    #[test]
    fn an_apply_that_reported_an_error_keeps_its_partial_state() {
        let staged = Some(samples::staged());
        let verdict = judge_apply(exited(1, false, None, false), staged.clone());
        assert!(
            matches!(&verdict, ApplyVerdict::Report(ApplyReport::Failed { emergency, .. }) if *emergency == staged)
        );
    }
}
