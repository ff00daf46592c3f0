//! A state of the world.

use super::arena::Ref;

/// One of the two runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Who {
    First,
    Second,
}

impl Who {
    pub const BOTH: [Self; 2] = [Self::First, Self::Second];

    pub const fn index(self) -> usize {
        match self {
            Self::First => 0,
            Self::Second => 1,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct World {
    pub workspace: Ref,
    pub runs: [Ref; 2],
    /// The newest attempt of each run, as the store keeps it.
    pub attempts: [Option<Attempt>; 2],
    /// Sorted: which machine is which makes no difference.
    pub runners: [Runner; 2],
    pub messages: Messages,
    /// Whether the run's apply has staged a state.
    pub staged: [bool; 2],
    /// The run as a workflow process read it when it decided to publish: it may stall and publish
    /// much later.
    pub publishing: [Option<Ref>; 2],
    pub seen: Seen,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    Plan,
    Apply,
}

/// Tries at a phase that the world allows; the rules allow more plans, which adds nothing new.
pub const ATTEMPTS_MAX: u8 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Attempt {
    pub phase: Phase,
    pub number: u8,
    pub status: AttemptStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttemptStatus {
    /// A runner asked for work and has no answer yet.
    Leased,
    /// The runner has the lease.
    Told,
    /// The store let `tofu apply` begin.
    Started,
    /// Closed by a report that was taken.
    Reported(Report),
    /// Closed because its lease ran out.
    Lost,
    /// Closed because its run did not take it; the runner never heard of it.
    Dropped,
}

impl AttemptStatus {
    pub const fn is_open(self) -> bool {
        match self {
            Self::Leased | Self::Told | Self::Started => true,
            Self::Reported(_) | Self::Lost | Self::Dropped => false,
        }
    }
}

/// How a runner says that its attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Report {
    Planned,
    HandedBack,
    NotStarted,
    Applied,
    Failed,
    Doubtful,
}

impl Report {
    pub const ALL: [Self; 6] = [
        Self::Planned,
        Self::HandedBack,
        Self::NotStarted,
        Self::Applied,
        Self::Failed,
        Self::Doubtful,
    ];

    pub const fn phase(self) -> Phase {
        match self {
            Self::Planned => Phase::Plan,
            Self::HandedBack | Self::NotStarted | Self::Applied | Self::Failed | Self::Doubtful => {
                Phase::Apply
            }
        }
    }
}

/// A numbered attempt of a run, as a runner knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lease {
    pub who: Who,
    pub number: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Runner {
    Idle,
    Planning(Lease),
    /// Holds an apply and has not started OpenTofu.
    Prepared(Lease),
    Applying(Lease),
}

/// What runners have said. A message stays for ever and may be delivered whenever: never is a loss,
/// twice is a double, and everything in between is late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Messages(u32);

impl Messages {
    fn bit(lease: Lease, report: Report) -> u32 {
        let attempt = lease.who.index() * usize::from(ATTEMPTS_MAX) + usize::from(lease.number - 1);
        let kind = Report::ALL
            .iter()
            .position(|known| *known == report)
            .expect("every report is in the list");
        1 << (attempt * Report::ALL.len() + kind)
    }

    pub fn has(self, lease: Lease, report: Report) -> bool {
        self.0 & Self::bit(lease, report) != 0
    }

    pub fn add(&mut self, lease: Lease, report: Report) {
        self.0 |= Self::bit(lease, report);
    }

    pub fn forget(&mut self, lease: Lease, report: Report) {
        self.0 &= !Self::bit(lease, report);
    }
}

/// What promises are judged by and no single state shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Seen {
    /// How often `tofu apply` began for each run, at most two.
    pub applies: [u8; 2],
    /// Whether the run's state ever became the workspace's.
    pub published: [bool; 2],
    /// Whether the run's lease ran out while `tofu apply` may have run.
    pub lost: [bool; 2],
    /// Whether the run ever had the lock after the other one had had it.
    pub followed: bool,
    pub breaches: Breaches,
}

/// What must never have happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Breaches {
    /// A run that had ended got an event.
    pub moved_after_end: bool,
    /// A record says that a run applies by itself.
    pub auto_apply: bool,
    /// A state was published by a run that did not hold the lock under the fence it showed.
    pub foreign_publication: bool,
}
