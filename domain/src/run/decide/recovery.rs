//! The end of a doubt: an operator says what became of an apply, and why they say so.

use super::{Born, Decision, reason_given};
use crate::run::{Doubt, Ending, Event, Publication, RecoveryResolution, Refusal, Standing};
use crate::{Actor, Timestamp};

impl Born<'_> {
    pub(super) fn resolve_recovery(
        &self,
        by: Actor,
        resolution: RecoveryResolution,
        reason: String,
        at: Timestamp,
    ) -> Decision {
        let doubt = match self.standing {
            Standing::RecoveryRequired { doubt, .. } => doubt,
            Standing::Ended(Ending::Recovered {
                resolution: earlier,
                by: who,
            }) if *earlier == resolution && *who == by => return Ok(vec![]),
            _ => return Err(self.wrong_status()),
        };
        self.person(by)?;
        reason_given(&reason)?;
        match &resolution {
            RecoveryResolution::DeclareNoChange => {}
            RecoveryResolution::AdoptEmergencyState { publication } => {
                left_behind(doubt, publication)?;
            }
        }
        Ok(vec![Event::RecoveryResolved {
            by,
            resolution,
            reason,
            at,
        }])
    }
}

/// Only what the apply itself left may be adopted. Of an `errored.tfstate` the run knows the object
/// and not the digest; whoever publishes it compares the bytes.
fn left_behind(doubt: &Doubt, adopted: &Publication) -> Result<(), Refusal> {
    let staged = doubt
        .emergency
        .as_ref()
        .is_some_and(|state| state.digest == adopted.digest);
    if staged || doubt.errored_state_object.is_some() {
        Ok(())
    } else {
        Err(Refusal::NotTheEmergencyState)
    }
}
