//! What this caller could do to the run now. What a decision takes is asked of the run's own rules
//! with the very command that the decision would be: nothing of them is said again here (S-REV-13).

use serde::Serialize;
use stackship_domain::run::{
    Command, Evidence, OVERRIDE_SECONDS_MAX, RecoveryResolution, Run, Standing,
};
use stackship_domain::{Permission, Sha256Digest, Timestamp};
use utoipa::ToSchema;

use crate::auth::Viewer;

/// A person's words where the rules want some of a decision that is only asked about.
const ONLY_ASKED: &str = "only asked what would follow";

/// Something that somebody can decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Action {
    /// Let exactly this plan be applied.
    Approve,
    /// Turn the plan down.
    Discard,
    /// Stop the run.
    Cancel,
    /// Let a soft-mandatory policy failure pass for a limited time.
    Override,
    /// Make the state that a doubtful apply left the workspace's state.
    RecoveryAdopt,
    /// Declare that a doubtful apply changed nothing.
    RecoveryNoChange,
}

/// What a person is asked before the decision is sent (S-REV-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Confirmation {
    /// Nothing: one click.
    None,
    /// Whether they mean it, with every count of the plan said again: it destroys something.
    RestateCounts,
    /// Whether they mean it, and why; they need not say why.
    ReasonOffered,
    /// Why; without a reason it is refused.
    ReasonRequired,
}

/// A decision that would be taken from this caller now.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub(super) struct AvailableAction {
    /// Which one.
    pub(super) action: Action,
    /// What to ask the person first.
    confirmation: Confirmation,
    /// The digest that has to be sent with it: of the evidence, or of the policy result.
    #[schema(value_type = Option<String>)]
    digest: Option<Sha256Digest>,
    /// When it lapses.
    #[schema(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
}

/// Whether the workspace, too, would take each end of a doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ends {
    pub(super) adopt: bool,
    pub(super) no_change: bool,
}

/// A run, and who asks what they could do to it.
pub(super) struct Asked<'a> {
    pub(super) run: &'a Run,
    pub(super) viewer: Viewer,
    pub(super) now: Timestamp,
    /// What was found out of the ends of a doubt.
    pub(super) ends: Option<Ends>,
}

impl Action {
    pub(super) const ALL: [Self; 6] = [
        Self::Approve,
        Self::Discard,
        Self::Cancel,
        Self::Override,
        Self::RecoveryAdopt,
        Self::RecoveryNoChange,
    ];

    /// What the route of this decision asks for.
    const fn permissions(self) -> &'static [Permission] {
        match self {
            Self::Approve | Self::Discard => &[Permission::RunApprove],
            Self::Cancel => &[Permission::RunCancel],
            Self::Override => &[Permission::PolicyOverrideSoft],
            Self::RecoveryAdopt => &[Permission::RunRecover, Permission::StateRecover],
            Self::RecoveryNoChange => &[Permission::RunRecover],
        }
    }
}

impl Asked<'_> {
    /// Everything that would be taken, in the order of [`Action::ALL`].
    pub(super) fn available(&self) -> Vec<AvailableAction> {
        let available = |action: &Action| self.one(*action);
        Action::ALL.iter().filter_map(available).collect()
    }

    fn one(&self, action: Action) -> Option<AvailableAction> {
        let may = |permission: &Permission| self.viewer.may(*permission);
        if !action.permissions().iter().all(may) || !self.workspace_takes(action) {
            return None;
        }
        let Run::Born { standing, .. } = self.run else {
            return None;
        };
        let (command, digest) = self.command(action, standing)?;
        // Saying again what was said is harmless, and nothing that somebody could do.
        if self.run.decide(command).ok()?.is_empty() {
            return None;
        }
        let lapses = match action {
            Action::Approve | Action::Discard | Action::Override => self.run.expires_at(),
            Action::Cancel | Action::RecoveryAdopt | Action::RecoveryNoChange => None,
        };
        Some(AvailableAction {
            action,
            confirmation: confirmation(action, standing),
            digest,
            until: lapses,
        })
    }

    fn workspace_takes(&self, action: Action) -> bool {
        match action {
            Action::RecoveryAdopt => self.ends.is_some_and(|ends| ends.adopt),
            Action::RecoveryNoChange => self.ends.is_some_and(|ends| ends.no_change),
            Action::Approve | Action::Discard | Action::Cancel | Action::Override => true,
        }
    }

    /// The decision as it would be sent, and the digest it names; `None` where there is nothing that
    /// it could be about.
    fn command(
        &self,
        action: Action,
        standing: &Standing,
    ) -> Option<(Command, Option<Sha256Digest>)> {
        let (by, at) = (self.viewer.actor(), self.now);
        let resolve = |resolution| Command::ResolveRecovery {
            by,
            resolution,
            reason: ONLY_ASKED.to_owned(),
            at,
        };
        Some(match action {
            Action::Approve => {
                let binding = evidence(standing)?.binding();
                (Command::Approve { by, binding, at }, Some(binding))
            }
            Action::Discard => {
                let reason = None;
                (Command::Discard { by, reason, at }, None)
            }
            Action::Cancel => {
                let reason = None;
                (Command::Cancel { by, reason, at }, None)
            }
            Action::Override => {
                let result = overridable(standing)?;
                let longest = jiff::SignedDuration::from_secs(OVERRIDE_SECONDS_MAX);
                let until = at.checked_add(longest).ok()?;
                let command = Command::OverridePolicy {
                    by,
                    result,
                    reason: ONLY_ASKED.to_owned(),
                    at,
                    expires_at: until,
                    approval_expires_at: until,
                };
                (command, Some(result))
            }
            Action::RecoveryAdopt => {
                let publication = adoptable(standing)?;
                (
                    resolve(RecoveryResolution::AdoptEmergencyState { publication }),
                    None,
                )
            }
            Action::RecoveryNoChange => (resolve(RecoveryResolution::DeclareNoChange), None),
        })
    }
}

const fn confirmation(action: Action, standing: &Standing) -> Confirmation {
    match action {
        Action::Approve if destroys(standing) => Confirmation::RestateCounts,
        Action::Approve | Action::Cancel => Confirmation::None,
        Action::Discard => Confirmation::ReasonOffered,
        Action::Override | Action::RecoveryAdopt | Action::RecoveryNoChange => {
            Confirmation::ReasonRequired
        }
    }
}

const fn destroys(standing: &Standing) -> bool {
    match standing {
        Standing::AwaitingApproval { plan, .. } => plan.counts.destroy > 0,
        _ => false,
    }
}

/// What an approval would be bound to.
const fn evidence(standing: &Standing) -> Option<&Evidence> {
    match standing {
        Standing::AwaitingApproval { evidence, .. }
        | Standing::Approved { evidence, .. }
        | Standing::Applying { evidence, .. }
        | Standing::ApplyCanceling { evidence, .. }
        | Standing::RecoveryRequired { evidence, .. } => Some(evidence),
        _ => None,
    }
}

/// The result that an override would name.
const fn overridable(standing: &Standing) -> Option<Sha256Digest> {
    match standing {
        Standing::OverrideRequired { policy, .. } => Some(policy.digest),
        _ => None,
    }
}

/// What an adoption would publish.
fn adoptable(standing: &Standing) -> Option<stackship_domain::run::Publication> {
    match standing {
        Standing::RecoveryRequired { doubt, .. } => {
            let staged = doubt.emergency.as_ref()?;
            Some(staged.publication())
        }
        _ => None,
    }
}
