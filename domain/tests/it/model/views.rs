//! What the steps and the promises want to know of an aggregate.

use stackship_domain::Fence;
use stackship_domain::run::{Ending, RecoveryResolution, Run, RunKind, Standing, Status};
use stackship_domain::workspace::{Holder, Workspace};

use super::asks::{fence_of, left_behind, run_id, standing, whose_state};
use super::world::{Phase, Who};

#[derive(Debug, Clone, Copy)]
pub struct RunView {
    pub status: Option<Status>,
    pub kind: Option<RunKind>,
    pub fence: Option<Fence>,
    /// Whether an approval, where there is one, is of the evidence that the run holds.
    pub approval_fits: bool,
    pub adopted: bool,
    /// Whether its failed apply left a state.
    pub left_a_state: bool,
    /// Of which phase a cancel waits for the runner.
    pub cancels: Option<Phase>,
}

impl RunView {
    pub fn of(run: &Run) -> Self {
        let standing = standing(run);
        Self {
            status: run.status(),
            kind: run.facts().map(|facts| facts.kind),
            fence: fence_of(run),
            approval_fits: standing.is_none_or(approval_fits),
            adopted: matches!(
                standing,
                Some(Standing::Ended(Ending::Recovered {
                    resolution: RecoveryResolution::AdoptEmergencyState { .. },
                    ..
                }))
            ),
            left_a_state: left_behind(run).is_some(),
            cancels: match standing {
                Some(Standing::PlanCanceling { .. }) => Some(Phase::Plan),
                Some(Standing::ApplyCanceling { .. }) => Some(Phase::Apply),
                _ => None,
            },
        }
    }

    pub fn is_terminal(&self) -> bool {
        self.status.is_some_and(Status::is_terminal)
    }

    pub fn is(&self, status: Status) -> bool {
        self.status == Some(status)
    }

    /// Whether `tofu apply` may be running for it.
    pub fn may_apply(&self) -> bool {
        self.is(Status::Applying) || self.cancels == Some(Phase::Apply)
    }
}

fn approval_fits(standing: &Standing) -> bool {
    match standing {
        Standing::Approved {
            evidence, approval, ..
        }
        | Standing::Applying {
            evidence, approval, ..
        }
        | Standing::ApplyCanceling {
            evidence, approval, ..
        } => evidence.binding() == approval.binding,
        Standing::Queued { .. }
        | Standing::Planning { .. }
        | Standing::PlanCanceling { .. }
        | Standing::Planned { .. }
        | Standing::PolicyChecking { .. }
        | Standing::OverrideRequired { .. }
        | Standing::AwaitingApproval { .. }
        | Standing::RecoveryRequired { .. }
        | Standing::Ended(_) => true,
    }
}

#[derive(Debug, Clone, Copy)]
pub struct WorkspaceView {
    pub holder: Option<Who>,
    pub fence: Fence,
    pub first: Option<Who>,
    /// Whose state is the workspace's.
    pub head: Option<Who>,
    /// Whose state it knows to have been left behind.
    pub left: [bool; 2],
}

impl WorkspaceView {
    pub fn of(workspace: &Workspace) -> Self {
        let of_id = |run| Who::BOTH.into_iter().find(|who| run_id(*who) == run);
        Self {
            holder: workspace.lock.as_ref().and_then(|lock| match lock.holder {
                Holder::Run { run } => of_id(run),
                Holder::User { .. } => None,
            }),
            fence: workspace.fence,
            first: workspace.queue.first().and_then(|run| of_id(*run)),
            head: workspace
                .head
                .as_ref()
                .map(|head| whose_state(head.version)),
            left: Who::BOTH.map(|who| {
                let mut known = workspace.left_behind.iter();
                known.any(|left| left.run == run_id(who) && whose_state(left.state.version) == who)
            }),
        }
    }

    /// Whether the row of the lock names this run and this fence.
    pub fn is_held(&self, who: Who, fence: Option<Fence>) -> bool {
        self.holder == Some(who) && fence == Some(self.fence)
    }
}
