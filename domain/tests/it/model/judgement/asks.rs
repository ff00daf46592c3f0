//! What is asked of the run that is judged, and what its events say.

use stackship_domain::run::samples::{self, attempt};
use stackship_domain::run::{ApplyReport, Command, Event, Run, Standing, Status};

use super::world::{Begun, HalfDays, Override, Said, Verdict, World};
use crate::model::asks::standing;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ask {
    StartCheck,
    Record(Verdict),
    /// By a person who saw this result.
    Override {
        of: Verdict,
        lasts: HalfDays,
    },
    /// By a person who saw the question as it is under this result.
    Approve {
        of: Verdict,
    },
    /// With a lease that was made under this result.
    StartApply {
        number: u32,
        under: Verdict,
    },
    HandBack {
        number: u32,
    },
    Applied {
        number: u32,
    },
    Discard,
    Cancel,
    Lapse,
}

impl Ask {
    pub fn command(self, now: HalfDays) -> Command {
        let (by, reason, at) = (samples::reviewer(), None, now.at());
        let lapses = now.plus(HalfDays::DAY).at();
        match self {
            Self::StartCheck => Command::StartPolicyCheck,
            Self::Record(verdict) => Command::RecordPolicy {
                result: verdict.result(),
                approval_expires_at: lapses,
            },
            Self::Override { of, lasts } => Command::OverridePolicy {
                by,
                result: of.digest(),
                reason: "Agreed.".to_owned(),
                at,
                expires_at: now.plus(lasts).at(),
                approval_expires_at: lapses,
            },
            Self::Approve { of } => Command::Approve {
                by,
                binding: of.binding(),
                at,
            },
            Self::StartApply { number, under } => Command::StartApply {
                attempt: attempt(number),
                fence: samples::fence(),
                binding: under.binding(),
                at,
            },
            Self::HandBack { number } => Command::HandBackApply {
                attempt: attempt(number).id,
                at,
            },
            Self::Applied { number } => Command::RecordApply {
                attempt: attempt(number).id,
                fence: samples::fence(),
                report: Box::new(ApplyReport::Published {
                    publication: samples::publication(),
                }),
                at,
            },
            Self::Discard => Command::Discard { by, reason, at },
            Self::Cancel => Command::Cancel { by, reason, at },
            Self::Lapse => Command::Expire { at },
        }
    }
}

/// What of an event the promises are about.
#[derive(Debug, Clone, Copy)]
pub enum Mark {
    Result(Verdict),
    Overridden { of: Verdict, until: HalfDays },
    Approved(Verdict),
    Begun { under: Verdict },
}

impl Mark {
    pub fn of(event: &Event) -> Option<Self> {
        match event {
            Event::PolicyEvaluated { result, .. } => {
                Some(Self::Result(Verdict::with_digest(result.digest)))
            }
            Event::PolicyOverridden {
                result, expires_at, ..
            } => Some(Self::Overridden {
                of: Verdict::with_digest(*result),
                until: HalfDays::of(*expires_at),
            }),
            Event::RunApproved { binding, .. } => {
                Some(Self::Approved(Verdict::with_binding(*binding)))
            }
            Event::ApplyStarted { binding, .. } => Some(Self::Begun {
                under: Verdict::with_binding(*binding),
            }),
            _ => None,
        }
    }

    pub fn tell(self, world: &mut World) {
        let said = &mut world.said;
        match self {
            Self::Result(verdict) => {
                *said = Said {
                    result: Some(verdict),
                    again: said.result.is_some(),
                    ..Said::default()
                };
            }
            Self::Overridden { of, until } => {
                let from = world.now;
                said.overridden = Some(Override { of, from, until });
            }
            Self::Approved(of) => said.approved = Some(of),
            Self::Begun { under } => {
                world.begun = Some(Begun {
                    said: *said,
                    under,
                    at: world.now,
                });
            }
        }
    }
}

/// What the promises want to know of the run.
#[derive(Debug, Clone, Copy)]
pub struct View {
    pub status: Status,
    /// The result in the evidence that it holds.
    pub rests_on: Option<Verdict>,
}

impl View {
    pub fn of(run: &Run) -> Self {
        Self {
            status: run.status().expect("it was created before this world is"),
            rests_on: match standing(run) {
                Some(
                    Standing::AwaitingApproval { evidence, .. }
                    | Standing::Approved { evidence, .. }
                    | Standing::Applying { evidence, .. }
                    | Standing::ApplyCanceling { evidence, .. }
                    | Standing::RecoveryRequired { evidence, .. },
                ) => Some(Verdict::with_digest(evidence.policy)),
                _ => None,
            },
        }
    }

    /// Whether a person's yes, or an apply under one, is still to come.
    pub const fn waits_for_its_apply(self) -> bool {
        matches!(self.status, Status::AwaitingApproval | Status::Approved)
    }
}
