//! What somebody who looks at the run does next, as a code of a closed set and a sentence (S-REV-12).

use serde::Serialize;
use stackship_domain::run::{Status, TerminalReason};
use stackship_projections::RunReview;
use utoipa::ToSchema;

use crate::v1::runs::waiting::{WaitingFor, WaitingKind};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $sentence:literal),+ $(,)?) => {
        /// What to do next.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub(super) enum GuidanceCode { $($(#[$doc])* $name),+ }

        impl GuidanceCode {
            /// Every code.
            #[cfg(test)]
            pub(super) const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The sentence for a person.
            pub(super) const fn sentence(self) -> &'static str {
                match self { $(Self::$name => $sentence),+ }
            }
        }
    };
}

codes! {
    /// Another run is before it.
    WaitForOtherRun = "Another run of this workspace comes first; this one goes on by itself.",
    /// Somebody locked the workspace by hand.
    WaitForUnlock = "Somebody locked this workspace by hand; the run goes on once it is unlocked.",
    /// A runner has to take it.
    WaitForRunner = "The run waits for a runner and goes on by itself.",
    /// No runner is there that could take it.
    StartRunner = "No runner of the run's region and platform is there: let whoever runs this installation start one, and the run goes on; or cancel it, give the workspace a region that has runners, and start a new run.",
    /// It is being planned.
    WaitForPlan = "The plan is being made; there is nothing to decide yet.",
    /// Policy is being evaluated.
    WaitForPolicy = "Policy is being evaluated; there is nothing to decide yet.",
    /// It is being applied.
    WaitForApply = "The plan is being applied; follow the apply log.",
    /// A runner was asked to stop.
    WaitForStop = "The run was asked to stop and ends as soon as its runner has stopped.",
    /// A soft-mandatory policy failed.
    DecideOnOverride = "A soft-mandatory policy failed: somebody who may override it decides, or the run is discarded.",
    /// A person has to decide.
    DecideOnPlan = "Read the plan and approve exactly it, or discard the run.",
    /// An apply is in doubt.
    ResolveRecovery = "Nobody can say what the apply did: compare the state it left with what is really there, then adopt that state or declare that nothing changed.",
    /// All is done.
    NothingToDo = "There is nothing left to do.",
    /// A speculative plan is never applied.
    ApplyWithNewRun = "A speculative plan is never applied: start a run that plans and applies to make these changes.",
    /// The plan failed in OpenTofu.
    MendConfiguration = "Read the end of the plan log, mend the configuration or its inputs, and start a new run.",
    /// The configuration was refused before it was planned.
    MendUpload = "Mend what was refused, upload the configuration again, and start a new run.",
    /// A limit was exceeded.
    MakeSmaller = "Make the plan smaller, or let whoever runs this installation raise the limit, and start a new run.",
    /// Runners are in trouble.
    CheckRunners = "Let whoever runs this installation look after its runners, then start a new run.",
    /// A hard-mandatory policy failed.
    SatisfyPolicy = "Change the configuration until the policies named in the findings pass; this failure cannot be overridden.",
    /// Policy could not be evaluated.
    MendPolicy = "Let whoever owns the policies mend them: a plan that cannot be judged is never let through.",
    /// What was to be applied was not what was approved.
    PlanAgain = "Nothing was applied: start a new run and review its plan.",
    /// The apply failed.
    ReviewPartialState = "Some changes may have been made: read the end of the apply log, and compare with the state that was kept, before you start a new run.",
    /// Somebody turned it down, or stopped it.
    StartAgain = "Nothing was applied: start a new run when you want to go on.",
    /// Nobody decided in time, or what was decided ran out.
    StartAfterExpiry = "Nothing was applied: a new run starts from a push to the tracked branch, from the CLI or through the API.",
    /// A newer run took its place.
    FollowNewerRun = "A newer run took this run's place: go on there.",
    /// A cloud credential is missing.
    GrantCloudAccess = "Grant this workspace the cloud access that its plan needs, then start a new run.",
    /// A doubt was resolved.
    PlanAfterRecovery = "The doubt is resolved: start a new run, its plan shows what is still missing.",
}

/// A page of the workspace that helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum GuidancePage {
    /// Where its cloud access is set up.
    WorkspaceCloudAccess,
    /// Where its source is set up.
    WorkspaceSourceSettings,
}

/// What to do next.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub(super) struct Guidance {
    /// The code behind the sentence.
    pub(super) code: GuidanceCode,
    /// One sentence for a person.
    sentence: &'static str,
    /// The page of the workspace that helps, where one does.
    page: Option<GuidancePage>,
}

impl Guidance {
    pub(super) fn of(review: &RunReview, waiting: Option<&WaitingFor>) -> Self {
        let code = match &review.ended {
            Some(end) => after(end.reason),
            None => match waiting {
                Some(waiting) if waiting.lacks_a_runner() => GuidanceCode::StartRunner,
                _ => before_the_end(review.status, waiting.map(|waiting| waiting.kind)),
            },
        };
        Self {
            code,
            sentence: code.sentence(),
            page: page(code),
        }
    }
}

const fn page(code: GuidanceCode) -> Option<GuidancePage> {
    match code {
        GuidanceCode::GrantCloudAccess => Some(GuidancePage::WorkspaceCloudAccess),
        GuidanceCode::StartAfterExpiry => Some(GuidancePage::WorkspaceSourceSettings),
        _ => None,
    }
}

const fn before_the_end(status: Status, waiting: Option<WaitingKind>) -> GuidanceCode {
    match status {
        Status::Queued => match waiting {
            Some(WaitingKind::Run) => GuidanceCode::WaitForOtherRun,
            Some(WaitingKind::PersonLock) => GuidanceCode::WaitForUnlock,
            _ => GuidanceCode::WaitForRunner,
        },
        Status::Planning => GuidanceCode::WaitForPlan,
        Status::Planned | Status::PolicyChecking => GuidanceCode::WaitForPolicy,
        Status::OverrideRequired => GuidanceCode::DecideOnOverride,
        Status::AwaitingApproval => GuidanceCode::DecideOnPlan,
        Status::Approved => GuidanceCode::WaitForRunner,
        Status::Applying => GuidanceCode::WaitForApply,
        Status::Canceling => GuidanceCode::WaitForStop,
        Status::RecoveryRequired => GuidanceCode::ResolveRecovery,
        // These have an end, which says more.
        Status::Applied
        | Status::NoChanges
        | Status::SpeculativeFinished
        | Status::Failed
        | Status::Discarded
        | Status::Expired
        | Status::Canceled
        | Status::PlanCredentialsRequired
        | Status::Recovered => GuidanceCode::NothingToDo,
    }
}

const fn after(reason: TerminalReason) -> GuidanceCode {
    match reason {
        TerminalReason::Applied | TerminalReason::NoChanges => GuidanceCode::NothingToDo,
        TerminalReason::SpeculativeFinished => GuidanceCode::ApplyWithNewRun,
        TerminalReason::PlanFailed => GuidanceCode::MendConfiguration,
        TerminalReason::PlanRefused => GuidanceCode::MendUpload,
        TerminalReason::PlanLimitExceeded => GuidanceCode::MakeSmaller,
        TerminalReason::SandboxUnavailable | TerminalReason::PlanAttemptsExhausted => {
            GuidanceCode::CheckRunners
        }
        TerminalReason::PolicyDenied => GuidanceCode::SatisfyPolicy,
        TerminalReason::PolicyError => GuidanceCode::MendPolicy,
        TerminalReason::ApplyRefused => GuidanceCode::PlanAgain,
        TerminalReason::ApplyFailed => GuidanceCode::ReviewPartialState,
        TerminalReason::DiscardedByPerson | TerminalReason::CanceledByPerson => {
            GuidanceCode::StartAgain
        }
        TerminalReason::ApprovalExpired | TerminalReason::PolicyOverrideExpired => {
            GuidanceCode::StartAfterExpiry
        }
        TerminalReason::Superseded => GuidanceCode::FollowNewerRun,
        TerminalReason::PlanCredentialsRequired => GuidanceCode::GrantCloudAccess,
        TerminalReason::RecoveredStateAdopted | TerminalReason::RecoveredNoChange => {
            GuidanceCode::PlanAfterRecovery
        }
    }
}
