//! A runner's report. It is checked for form and for what it points at, recorded, and judged
//! elsewhere.

use axum::extract::State;
use axum::http::StatusCode;
use stackship_domain::run::Phase;
use stackship_runner_protocol::{
    ApplyEnd, ArtifactKind, DETAIL_CHARS_MAX, PhaseResult, PlanEnd, StoredArtifact,
};
use stackship_store::StoreError;
use stackship_store::attempts::{self, Offer, ResultOutcome};

use super::artifacts::object_kind;
use super::attempt::Holder;
use super::extract::Body;
use super::failure::Failure;
use crate::App;

pub(super) async fn report(
    State(app): State<App>,
    Holder(row): Holder,
    Body(result): Body<PhaseResult>,
) -> Result<StatusCode, Failure> {
    let (phase, detail) = match &result {
        PhaseResult::Plan { end } => (Phase::Plan, plan_detail(end)),
        PhaseResult::Apply { end } => (Phase::Apply, apply_detail(end)),
    };
    if phase != row.offer.phase {
        return Err(Failure::Invalid(
            "the result is of another phase than the attempt",
        ));
    }
    if detail.is_some_and(|detail| detail.chars().count() > DETAIL_CHARS_MAX) {
        return Err(Failure::Invalid("the detail is too long"));
    }
    for (kind, artifact) in artifacts(&result) {
        check(&app, &row.offer, kind, artifact).await?;
    }
    let document = serde_json::to_value(&result).map_err(StoreError::from)?;
    match attempts::record_result(&app.store, row.id, &document).await? {
        ResultOutcome::Recorded | ResultOutcome::Repeated => Ok(StatusCode::NO_CONTENT),
        ResultOutcome::Lost => Err(Failure::Lost),
    }
}

/// An artifact must be one that was stored for this run's workspace, and be what the report says.
async fn check(
    app: &App,
    offer: &Offer,
    kind: ArtifactKind,
    artifact: &StoredArtifact,
) -> Result<(), Failure> {
    let found = app
        .store
        .objects
        .describe(offer.organization, artifact.object)
        .await?;
    let fits = found.is_some_and(|found| {
        found.workspace == Some(offer.workspace)
            && found.kind == object_kind(kind)
            && found.sha256 == artifact.sha256
            && found.bytes == artifact.bytes
    });
    if fits {
        Ok(())
    } else {
        Err(Failure::Invalid(
            "the result names an artifact that is not this run's",
        ))
    }
}

fn artifacts(result: &PhaseResult) -> Vec<(ArtifactKind, &StoredArtifact)> {
    match result {
        PhaseResult::Plan {
            end:
                PlanEnd::Planned {
                    plan,
                    plan_json,
                    plan_diff,
                    policy_input,
                    lock_file,
                    ..
                },
        } => {
            let always = [
                (ArtifactKind::Plan, plan),
                (ArtifactKind::PlanJson, plan_json),
                (ArtifactKind::PlanDiff, plan_diff),
            ];
            let at_times = [
                (ArtifactKind::PolicyInput, policy_input),
                (ArtifactKind::LockFile, lock_file),
            ];
            let at_times = at_times
                .into_iter()
                .filter_map(|(kind, stored)| Some((kind, stored.as_ref()?)));
            always.into_iter().chain(at_times).collect()
        }
        PhaseResult::Plan {
            end: PlanEnd::Failed { .. } | PlanEnd::Stopped | PlanEnd::SandboxLost { .. },
        }
        | PhaseResult::Apply {
            end: ApplyEnd::NotStarted { .. },
        } => Vec::new(),
        PhaseResult::Apply {
            end: ApplyEnd::Exited { errored_state, .. } | ApplyEnd::Killed { errored_state, .. },
        } => errored_state
            .iter()
            .map(|stored| (ArtifactKind::ErroredState, stored))
            .collect(),
    }
}

fn plan_detail(end: &PlanEnd) -> Option<&str> {
    match end {
        PlanEnd::Failed { detail, .. } | PlanEnd::SandboxLost { detail } => Some(detail),
        PlanEnd::Planned { .. } | PlanEnd::Stopped => None,
    }
}

fn apply_detail(end: &ApplyEnd) -> Option<&str> {
    match end {
        ApplyEnd::NotStarted { detail, .. } | ApplyEnd::Killed { detail, .. } => Some(detail),
        ApplyEnd::Exited { .. } => None,
    }
}
