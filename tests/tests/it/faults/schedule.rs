//! What breaks, when, and how a run may end then: chosen by a seed and a number, and by nothing else.

use std::fmt;

/// What breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// `kill -9` of the runner, which is started again.
    RunnerKilled,
    /// `kill -9` of the sandbox from outside.
    SandboxKilled,
    /// `kill -9` of the supervisor inside the sandbox.
    SupervisorKilled,
    /// `kill -9` of OpenTofu.
    TofuKilled,
    /// `kill -9` of the server, which is started again at once; the answer it was giving is lost.
    ServerKilled,
    /// The same, and the server stays away until the lease is over.
    ServerGone,
    /// `kill -9` of the database, which is started again at once.
    DatabaseKilled,
    /// The database is stopped and is away for some seconds.
    DatabaseStopped,
    /// Nothing passes between the runner and its control plane until the lease is over.
    CutOff,
}

/// How far the apply has come when it breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// Approved and offered, and nobody has leased it.
    BeforeLease,
    /// Leased, and the runner has not been told.
    LeaseGiven,
    /// What was approved has been fetched.
    InputsFetched,
    /// The evidence was compared, and the start is about to be announced.
    EvidenceCompared,
    /// The start was announced, and OpenTofu has not begun.
    StartAnnounced,
    /// One resource is made, and the provisioner of the second prints.
    FirstMade,
    /// A state with two resources was saved on the way, and a third is being made.
    SavedOnTheWay,
    /// Everything is made, and its state is on its way up.
    StateUploading,
    /// The last state was taken, and OpenTofu has not been told.
    StateTaken,
    /// OpenTofu has ended, and the result is on its way.
    BeforeReport,
    /// The result is recorded, and nothing is published yet.
    Reported,
}

/// How an apply may stand once everything works again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    Applied,
    RecoveryRequired,
}

/// One thing that breaks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trial {
    pub number: u64,
    pub fault: Fault,
    pub moment: Moment,
}

impl Fault {
    pub const ALL: [Self; 9] = [
        Self::RunnerKilled,
        Self::SandboxKilled,
        Self::SupervisorKilled,
        Self::TofuKilled,
        Self::ServerKilled,
        Self::ServerGone,
        Self::DatabaseKilled,
        Self::DatabaseStopped,
        Self::CutOff,
    ];

    /// The moments at which there is something of this kind to break.
    fn moments(self) -> &'static [Moment] {
        match self {
            Self::SandboxKilled | Self::SupervisorKilled => &Moment::ALL[3..9],
            Self::TofuKilled => &Moment::ALL[5..9],
            Self::RunnerKilled
            | Self::ServerKilled
            | Self::ServerGone
            | Self::DatabaseKilled
            | Self::DatabaseStopped
            | Self::CutOff => Moment::ALL,
        }
    }
}

impl Moment {
    /// In the order in which they come.
    pub const ALL: &'static [Self] = &[
        Self::BeforeLease,
        Self::LeaseGiven,
        Self::InputsFetched,
        Self::EvidenceCompared,
        Self::StartAnnounced,
        Self::FirstMade,
        Self::SavedOnTheWay,
        Self::StateUploading,
        Self::StateTaken,
        Self::BeforeReport,
        Self::Reported,
    ];
}

impl Trial {
    /// The trial of this number: every kind of fault once in as many trials as there are kinds.
    pub fn of(seed: u64, number: u64) -> Self {
        let kinds = Fault::ALL.len() as u64;
        let turn = mixed(seed, number / kinds) % kinds;
        let fault = Fault::ALL[index((number % kinds + turn) % kinds)];
        let moments = fault.moments();
        let moment = moments[index(mixed(!seed, number) % moments.len() as u64)];
        Self {
            number,
            fault,
            moment,
        }
    }

    /// How the run may stand afterwards; anything else is a defect.
    pub fn ends(self) -> &'static [End] {
        use Moment as M;
        let is_held_by_nobody = matches!(self.moment, M::BeforeLease | M::Reported);
        match self.fault {
            Fault::SandboxKilled | Fault::SupervisorKilled | Fault::TofuKilled => {
                &[End::RecoveryRequired]
            }
            // Before the lease nothing was begun; after the report nothing depends on the runner.
            _ if is_held_by_nobody => &[End::Applied],
            Fault::RunnerKilled | Fault::ServerGone | Fault::CutOff => &[End::RecoveryRequired],
            // The lease that was lost with its answer nobody renews.
            Fault::ServerKilled if self.moment == M::LeaseGiven => &[End::RecoveryRequired],
            // The runner goes on, unless everything takes so long that its lease is over first.
            Fault::ServerKilled | Fault::DatabaseKilled | Fault::DatabaseStopped => {
                &[End::Applied, End::RecoveryRequired]
            }
        }
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {:?}", self.fault, self.moment)
    }
}

/// A number that depends on every bit of both.
const fn mixed(seed: u64, number: u64) -> u64 {
    let mut bits = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("it is smaller than a list")
}

#[test]
fn a_round_has_every_kind_of_fault_and_a_seed_means_one_schedule() {
    for seed in [0, 1, u64::MAX] {
        let kinds = Fault::ALL.len() as u64;
        for round in 0..5 {
            let numbers = round * kinds..(round + 1) * kinds;
            let mut met: Vec<_> = numbers.map(|n| Trial::of(seed, n).fault).collect();
            met.sort();
            assert_eq!(met, Fault::ALL);
        }
        assert_eq!(Trial::of(seed, 7), Trial::of(seed, 7));
    }
}

#[test]
fn a_long_campaign_meets_every_moment_of_every_fault() {
    let trials: Vec<_> = (0..1_000).map(|n| Trial::of(1, n)).collect();
    for fault in Fault::ALL {
        for moment in fault.moments() {
            let met = trials
                .iter()
                .any(|trial| (trial.fault, trial.moment) == (fault, *moment));
            assert!(met, "{fault:?} at {moment:?}");
        }
    }
}
