//! What this caller could download, and why not what they cannot (S-REV-10).

use serde::Serialize;
use stackship_domain::Permission;
use stackship_domain::ids::RunId;
use stackship_projections::RunReview;
use stackship_projections::run_review::ApplyStatus;
use utoipa::ToSchema;

use super::known::Known;
use super::stored::{Bytes, Stored};
use crate::auth::Viewer;

/// Something of a run that can be downloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Artifact {
    /// What the plan changes, without sensitive values.
    PlanChanges,
    /// The plan as JSON.
    PlanJson,
    /// The plan file, with sensitive values in clear.
    RawPlan,
    /// The state that a failed or doubtful apply left behind.
    EmergencyState,
    /// The state that was published.
    State,
}

/// A download.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub(super) struct Download {
    /// Of what.
    artifact: Artifact,
    /// Whether the request is a `POST` that says why, by somebody who has just proved who they are.
    guarded: bool,
    /// Whether this caller could have it now.
    availability: Availability,
}

/// Whether a caller could have something now.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Availability {
    /// Yes.
    Available {
        /// Where.
        href: String,
        /// How long it is.
        bytes: u64,
    },
    /// They lack permissions.
    PermissionMissing {
        /// Which ones.
        permissions: Vec<&'static str>,
    },
    /// It may come to be.
    NotYet,
    /// It was never made, and never will be.
    NotRecorded,
    /// It was recorded, and cannot be read now.
    Unavailable,
}

impl Artifact {
    const ALL: [Self; 5] = [
        Self::PlanChanges,
        Self::PlanJson,
        Self::RawPlan,
        Self::EmergencyState,
        Self::State,
    ];

    const fn permissions(self) -> &'static [Permission] {
        match self {
            Self::PlanChanges => &[Permission::ArtifactRead],
            Self::PlanJson => &[Permission::RunRead],
            Self::RawPlan => &[Permission::ArtifactReadSensitive],
            Self::EmergencyState => &[Permission::ArtifactReadSensitive, Permission::StateRecover],
            Self::State => &[Permission::StateRead],
        }
    }

    const fn is_guarded(self) -> bool {
        match self {
            Self::RawPlan | Self::EmergencyState => true,
            Self::PlanChanges | Self::PlanJson | Self::State => false,
        }
    }

    const fn found(self, stored: &Stored) -> &Known<Bytes> {
        match self {
            Self::PlanChanges => &stored.artifacts.plan_changes,
            Self::PlanJson => &stored.artifacts.plan_json,
            Self::RawPlan => &stored.artifacts.raw_plan,
            Self::EmergencyState => &stored.artifacts.emergency_state,
            Self::State => &stored.artifacts.state,
        }
    }

    fn href(self, run: RunId, stored: &Stored) -> String {
        match self {
            Self::PlanChanges => format!("/v1/runs/{run}/plan-changes"),
            // There a plan is a resource of its own, with its run's digits.
            Self::PlanJson => {
                let plan = run.to_string().replacen("run-", "plan-", 1);
                format!("/api/v2/plans/{plan}/json-output")
            }
            Self::RawPlan => format!("/v1/runs/{run}/raw-plan"),
            Self::EmergencyState => format!("/v1/runs/{run}/emergency-state"),
            Self::State => match &stored.published {
                Known::Recorded { value } => {
                    format!("/api/v2/state-versions/{}/download", value.version)
                }
                Known::NotRecorded | Known::Unavailable => String::new(),
            },
        }
    }

    /// Whether what is not there may still come to be.
    const fn may_come(self, review: &RunReview) -> bool {
        let is_open = review.ended.is_none();
        match self {
            Self::PlanChanges | Self::PlanJson | Self::RawPlan | Self::State => is_open,
            Self::EmergencyState => {
                is_open && !matches!(review.apply.status, ApplyStatus::Interrupted)
            }
        }
    }
}

/// Every download; `None` for somebody who could never have any.
pub(super) fn downloads(
    review: &RunReview,
    stored: &Stored,
    viewer: Viewer,
) -> Option<Vec<Download>> {
    let downloads: Vec<Download> = Artifact::ALL
        .iter()
        .map(|artifact| Download {
            artifact: *artifact,
            guarded: artifact.is_guarded(),
            availability: availability(*artifact, review, stored, viewer),
        })
        .collect();
    let is_barred = |download: &Download| {
        matches!(
            download.availability,
            Availability::PermissionMissing { .. }
        )
    };
    (!downloads.iter().all(is_barred)).then_some(downloads)
}

fn availability(
    artifact: Artifact,
    review: &RunReview,
    stored: &Stored,
    viewer: Viewer,
) -> Availability {
    let permissions: Vec<&str> = artifact
        .permissions()
        .iter()
        .filter(|permission| !viewer.may(**permission))
        .map(|permission| permission.as_str())
        .collect();
    if !permissions.is_empty() {
        return Availability::PermissionMissing { permissions };
    }
    match artifact.found(stored) {
        Known::Recorded { value } => Availability::Available {
            href: artifact.href(review.run, stored),
            bytes: value.0,
        },
        Known::NotRecorded if artifact.may_come(review) => Availability::NotYet,
        Known::NotRecorded => Availability::NotRecorded,
        Known::Unavailable => Availability::Unavailable,
    }
}
