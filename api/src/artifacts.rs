//! Artifacts on their way out: opened only when what is stored is what was recorded, and streamed frame
//! by frame, each authenticated, in constant memory.
//!
//! Why one cannot be had, that it was never made, is gone, is another's, is too large or was tampered
//! with, is for our own log; where its existence is a secret, all of it looks the same from outside.

use stackship_domain::Sha256Digest;
use stackship_domain::ids::{ObjectId, OrganizationId, WorkspaceId};
use stackship_domain::run::{PlanRecord, PolicyResult};
use stackship_policy::RESULT_BYTES_MAX;
use stackship_runner_protocol::{PLAN_BYTES_MAX, PLAN_DIFF_BYTES_MAX, PLAN_JSON_BYTES_MAX};
use stackship_store::StoreError;
use stackship_store::objects::{Descriptor, ObjectKind, ObjectReader};
use stackship_store::records::runs_record::RunRecord;
use stackship_store::states::{STATE_BYTES_MAX, StateVersionRow};

use crate::App;
use crate::auth::{InRun, InWorkspace};

/// Where objects are described.
const TABLE: &str = "record.objects";

/// Whose an artifact must be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// The tenant.
    pub(crate) organization: OrganizationId,
    /// The workspace.
    pub(crate) workspace: WorkspaceId,
}

impl<P> From<&InRun<P>> for Place {
    fn from(may: &InRun<P>) -> Self {
        Self::from(&may.run)
    }
}

impl From<&RunRecord> for Place {
    fn from(run: &RunRecord) -> Self {
        Self {
            organization: run.organization,
            workspace: run.workspace,
        }
    }
}

impl<P> From<&InWorkspace<P>> for Place {
    fn from(may: &InWorkspace<P>) -> Self {
        Self {
            organization: may.workspace.organization,
            workspace: may.workspace.id,
        }
    }
}

/// An artifact as it was recorded. The log cannot be changed; a row of an object can.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recorded {
    object: ObjectId,
    kind: ObjectKind,
    /// SHA-256 of its bytes, where it was recorded.
    sha256: Option<Sha256Digest>,
    /// How many bytes it has, where that was recorded.
    bytes: Option<u64>,
    /// The most bytes that may be released.
    bytes_max: u64,
}

impl Recorded {
    /// The plan file.
    pub(crate) const fn plan(plan: &PlanRecord) -> Self {
        Self {
            object: plan.plan_object,
            kind: ObjectKind::Plan,
            sha256: Some(plan.plan),
            bytes: Some(plan.plan_bytes),
            bytes_max: PLAN_BYTES_MAX,
        }
    }

    /// The plan as JSON.
    pub(crate) const fn plan_json(plan: &PlanRecord) -> Self {
        Self {
            object: plan.plan_json_object,
            kind: ObjectKind::PlanJson,
            sha256: Some(plan.plan_json),
            bytes: Some(plan.plan_json_bytes),
            bytes_max: PLAN_JSON_BYTES_MAX,
        }
    }

    /// What of the plan people may see.
    pub(crate) const fn plan_diff(plan: &PlanRecord) -> Self {
        Self {
            object: plan.plan_diff_object,
            kind: ObjectKind::PlanDiff,
            sha256: Some(plan.plan_diff),
            bytes: None,
            bytes_max: PLAN_DIFF_BYTES_MAX,
        }
    }

    /// What policies say about the plan.
    pub(crate) const fn policy_result(result: &PolicyResult) -> Self {
        Self {
            object: result.object,
            kind: ObjectKind::PolicyResult,
            sha256: Some(result.digest),
            bytes: None,
            bytes_max: RESULT_BYTES_MAX as u64,
        }
    }

    /// A state version; `None` while its bytes have not arrived.
    pub(crate) fn state(row: &StateVersionRow) -> Option<Self> {
        Some(Self {
            object: row.object?,
            kind: ObjectKind::State,
            sha256: row.sha256,
            bytes: row.bytes.and_then(|bytes| u64::try_from(bytes).ok()),
            bytes_max: STATE_BYTES_MAX,
        })
    }

    /// What OpenTofu left behind when it could not write its state.
    pub(crate) const fn errored_state(object: ObjectId) -> Self {
        Self {
            object,
            kind: ObjectKind::ErroredState,
            sha256: None,
            bytes: None,
            bytes_max: STATE_BYTES_MAX,
        }
    }

    /// Where its bytes are.
    pub(crate) const fn object(&self) -> ObjectId {
        self.object
    }

    /// The column in which the object is not the one that was recorded.
    pub(crate) fn first_difference(
        &self,
        found: &Descriptor,
        place: Place,
    ) -> Option<&'static str> {
        let is_of = |recorded: Option<u64>| recorded.is_none_or(|bytes| bytes == found.bytes);
        [
            ("workspace_id", found.workspace == Some(place.workspace)),
            ("kind", found.kind == self.kind),
            (
                "sha256",
                self.sha256.is_none_or(|sha256| sha256 == found.sha256),
            ),
            ("bytes", is_of(self.bytes) && found.bytes <= self.bytes_max),
        ]
        .into_iter()
        .find_map(|(column, is_same)| (!is_same).then_some(column))
    }
}

/// Opens an artifact that is what was recorded. Its first frame is authenticated before this returns,
/// so that most of what was tampered with is an answer and not a body that breaks off.
pub(crate) async fn open(
    app: &App,
    place: Place,
    recorded: Recorded,
) -> Result<(Descriptor, ObjectReader), StoreError> {
    let (objects, id) = (&app.store.objects, recorded.object);
    let differs = |column| StoreError::inconsistent(TABLE, column, id);
    let found = objects.describe(place.organization, id).await?;
    let found = found.ok_or_else(|| differs("object_id"))?;
    if let Some(column) = recorded.first_difference(&found, place) {
        return Err(differs(column));
    }
    let reader = objects
        .reader(place.organization, id, recorded.kind)
        .await?;
    // Between the two looks the row may have become another.
    if reader.bytes() != found.bytes || reader.sha256() != found.sha256 {
        return Err(differs("sha256"));
    }
    Ok((found, reader.begun().await?))
}

/// What somebody gets who may not learn why an artifact cannot be had. Only that the database does not
/// answer is told: that passes.
pub(crate) fn unless_it_passes<E: From<StoreError>>(error: StoreError, hidden: E) -> E {
    if matches!(error, StoreError::Unavailable(_)) {
        return error.into();
    }
    let cause = std::error::Error::source(&error).map(ToString::to_string);
    tracing::error!(error = %error, cause, "An artifact is not what was recorded, and is not released");
    hidden
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackship_domain::run::samples;

    fn place() -> Place {
        Place {
            organization: samples::id(1),
            workspace: samples::id(3),
        }
    }

    fn stored(plan: &PlanRecord) -> Descriptor {
        Descriptor {
            id: plan.plan_json_object,
            workspace: Some(place().workspace),
            kind: ObjectKind::PlanJson,
            bytes: plan.plan_json_bytes,
            sha256: plan.plan_json,
            created_at: samples::at(1),
        }
    }

    #[test]
    fn each_difference_alone_is_found() {
        let plan = samples::plan();
        let found = |change: fn(&mut Descriptor)| {
            let mut descriptor = stored(&plan);
            change(&mut descriptor);
            Recorded::plan_json(&plan).first_difference(&descriptor, place())
        };
        assert_eq!(found(|_| {}), None);
        assert_eq!(found(|row| row.workspace = None), Some("workspace_id"));
        let elsewhere = found(|row| row.workspace = Some(samples::id(99)));
        assert_eq!(elsewhere, Some("workspace_id"));
        assert_eq!(found(|row| row.kind = ObjectKind::Plan), Some("kind"));
        let other = found(|row| row.sha256 = Sha256Digest::of(b"other"));
        assert_eq!(other, Some("sha256"));
        assert_eq!(found(|row| row.bytes += 1), Some("bytes"));
        assert_eq!(found(|row| row.bytes -= 1), Some("bytes"));
    }

    #[test]
    fn what_is_larger_than_may_be_released_differs_although_it_was_recorded_so() {
        let of_size = |bytes| {
            let plan = PlanRecord {
                plan_json_bytes: bytes,
                ..samples::plan()
            };
            Recorded::plan_json(&plan).first_difference(&stored(&plan), place())
        };
        assert_eq!(of_size(PLAN_JSON_BYTES_MAX), None);
        assert_eq!(of_size(PLAN_JSON_BYTES_MAX + 1), Some("bytes"));
    }
}
