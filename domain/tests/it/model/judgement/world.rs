//! A state of the world in which one plan is judged.

use std::sync::LazyLock;

use stackship_domain::run::samples::{self, at};
use stackship_domain::run::{Evidence, PolicyOutcome, PolicyResult};
use stackship_domain::{Sha256Digest, Timestamp};

use crate::model::arena::Ref;

/// What an evaluation may come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    Pass,
    SoftDenial,
    /// The same outcome with other findings, so another result.
    OtherSoftDenial,
    HardDenial,
    Crash,
    /// Policies pass that the run has not pinned.
    PassOfOthers,
}

impl Verdict {
    pub const ALL: [Self; 6] = [
        Self::Pass,
        Self::SoftDenial,
        Self::OtherSoftDenial,
        Self::HardDenial,
        Self::Crash,
        Self::PassOfOthers,
    ];

    pub fn result(self) -> PolicyResult {
        let result = samples::policy(match self {
            Self::Pass | Self::PassOfOthers => PolicyOutcome::Pass,
            Self::SoftDenial | Self::OtherSoftDenial => PolicyOutcome::SoftFailed,
            Self::HardDenial => PolicyOutcome::HardFailed,
            Self::Crash => PolicyOutcome::Error,
        });
        PolicyResult {
            digest: self.digest(),
            bundle: match self {
                Self::PassOfOthers => Sha256Digest::of(b"other policies"),
                _ => result.bundle,
            },
            ..result
        }
    }

    pub fn digest(self) -> Sha256Digest {
        self.known().digest
    }

    /// What a person would be asked about after this result.
    pub fn binding(self) -> Sha256Digest {
        self.known().binding
    }

    fn known(self) -> Digests {
        let mut all = DIGESTS.iter().zip(Self::ALL);
        let known = all.find(|(_, verdict)| *verdict == self);
        *known.expect("every verdict is in the list").0
    }

    pub fn with_digest(digest: Sha256Digest) -> Self {
        Self::which(|known| known.digest == digest)
    }

    pub fn with_binding(binding: Sha256Digest) -> Self {
        Self::which(|known| known.binding == binding)
    }

    fn which(is: impl Fn(Digests) -> bool) -> Self {
        let mut all = DIGESTS.iter().zip(Self::ALL);
        all.find(|(known, _)| is(**known))
            .expect("nobody makes up a digest here")
            .1
    }

    pub const fn may_be_overridden(self) -> bool {
        matches!(self, Self::SoftDenial | Self::OtherSoftDenial)
    }
}

/// Of a result, and of the evidence that names it.
#[derive(Debug, Clone, Copy)]
struct Digests {
    digest: Sha256Digest,
    binding: Sha256Digest,
}

/// In the order of [`Verdict::ALL`], computed once: this world asks for them at every step.
static DIGESTS: LazyLock<[Digests; Verdict::ALL.len()]> = LazyLock::new(|| {
    Verdict::ALL.map(|verdict| {
        let digest = Sha256Digest::of(format!("{verdict:?}").as_bytes());
        let evidence = Evidence {
            policy: digest,
            ..samples::evidence()
        };
        let binding = evidence.binding();
        Digests { digest, binding }
    })
});

/// A time, in half days: an override may last two of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HalfDays(u8);

const HALF_DAY_SECONDS: i64 = 12 * 60 * 60;

impl HalfDays {
    pub const NONE: Self = Self(0);
    pub const DAY: Self = Self(2);
    /// An override that is given as late as it can is over before this.
    const LAST: u8 = 4;

    pub const fn new(count: u8) -> Self {
        Self(count)
    }

    pub const fn after(self, earlier: Self) -> Self {
        Self(self.0 - earlier.0)
    }

    pub const fn plus(self, more: Self) -> Self {
        Self(self.0 + more.0)
    }

    pub fn at(self) -> Timestamp {
        at(i64::from(self.0) * HALF_DAY_SECONDS)
    }

    pub fn of(time: Timestamp) -> Self {
        let seconds = time.duration_since(at(0)).as_secs();
        Self(u8::try_from(seconds / HALF_DAY_SECONDS).expect("a time of this world"))
    }

    pub fn next(self) -> Option<Self> {
        (self.0 < Self::LAST).then_some(Self(self.0 + 1))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct World {
    pub run: Ref,
    pub now: HalfDays,
    /// What processes have found that evaluated the plan. A result stays for ever and may reach the run
    /// whenever: never is a crash, twice is a double. Sorted: which process is which makes no difference.
    pub evaluated: [Option<Verdict>; 2],
    pub said: Said,
    /// What had been said when an apply began last.
    pub begun: Option<Begun>,
}

/// What has been said about the plan, told by the events alone. A new result makes void what people
/// said about the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Said {
    pub result: Option<Verdict>,
    pub overridden: Option<Override>,
    /// Under which result somebody approved.
    pub approved: Option<Verdict>,
    /// Whether there was a result before this one.
    pub again: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Override {
    pub of: Verdict,
    pub from: HalfDays,
    pub until: HalfDays,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Begun {
    pub said: Said,
    /// The result in the evidence that is applied.
    pub under: Verdict,
    pub at: HalfDays,
}

impl Said {
    /// The override, if it is one of exactly the newest result.
    pub fn fitting_override(self) -> Option<Override> {
        let result = self.result.filter(|result| result.may_be_overridden())?;
        self.overridden.filter(|given| given.of == result)
    }

    /// Whether policies let the plan through, if time is no matter.
    pub fn lets_through(self) -> bool {
        self.result == Some(Verdict::Pass) || self.fitting_override().is_some()
    }
}
