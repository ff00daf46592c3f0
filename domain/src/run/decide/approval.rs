//! The decision about a plan: by a person, about exact evidence, in time.

use super::{Born, Decision};
use crate::run::{Approval, Ending, Event, EvidencePart, Refusal, RunKind, Standing};
use crate::{Actor, Sha256Digest, Timestamp};

impl Born<'_> {
    pub(super) fn approve(&self, approval: &Approval) -> Decision {
        if self.facts.kind == RunKind::Speculative {
            return Err(Refusal::Speculative);
        }
        match self.standing {
            Standing::AwaitingApproval {
                evidence,
                expires_at,
                ..
            } => {
                // Nothing but a person's word starts an apply (S-RUN-6).
                self.person(approval.by)?;
                same_binding(evidence.binding(), approval.binding)?;
                self.override_holds(approval.at)?;
                if approval.at >= *expires_at {
                    return Err(Refusal::ApprovalExpired);
                }
                Ok(vec![Event::RunApproved {
                    by: approval.by,
                    binding: approval.binding,
                    at: approval.at,
                }])
            }
            Standing::Approved {
                approval: earlier, ..
            }
            | Standing::Applying {
                approval: earlier, ..
            }
            | Standing::ApplyCanceling {
                approval: earlier, ..
            }
            | Standing::Ended(Ending::Applied {
                approval: earlier, ..
            }) => approved_before(earlier, approval),
            _ => Err(self.wrong_status()),
        }
    }

    pub(super) fn discard(&self, by: Actor, reason: Option<String>, at: Timestamp) -> Decision {
        match self.standing {
            Standing::AwaitingApproval { .. } | Standing::OverrideRequired { .. } => {
                Ok(vec![Event::RunDiscarded { by, reason, at }])
            }
            Standing::Ended(Ending::Discarded { by: earlier }) if *earlier == by => Ok(vec![]),
            _ => Err(self.wrong_status()),
        }
    }

    pub(super) fn expire(&self, at: Timestamp) -> Decision {
        match (self.standing, self.standing.expires_at()) {
            (_, Some(lapses_at)) if at < lapses_at => Err(Refusal::ApprovalNotExpired),
            (_, Some(_)) if self.override_holds(at).is_err() => {
                Ok(vec![Event::PolicyOverrideExpired { at }])
            }
            (_, Some(_)) => Ok(vec![Event::ApprovalExpired { at }]),
            (Standing::Ended(Ending::Expired), None) => Ok(vec![]),
            (_, None) => Err(self.wrong_status()),
        }
    }
}

/// The approval is for this evidence and no other (S-RUN-7).
pub(super) fn same_binding(current: Sha256Digest, presented: Sha256Digest) -> Result<(), Refusal> {
    if current == presented {
        Ok(())
    } else {
        Err(Refusal::StaleEvidence {
            part: EvidencePart::Binding,
        })
    }
}

/// The same person saying the same thing again is harmless; the tofu CLI repeats a lost answer.
fn approved_before(earlier: &Approval, now: &Approval) -> Decision {
    same_binding(earlier.binding, now.binding)?;
    if earlier.by == now.by {
        Ok(vec![])
    } else {
        Err(Refusal::AlreadyApproved { by: earlier.by })
    }
}
