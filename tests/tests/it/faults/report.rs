//! What a campaign found, for whoever reads it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use super::Campaign;
use super::schedule::Trial;
use super::truth::Found;

/// How a trial ended.
pub struct Outcome {
    pub trial: Trial,
    pub found: Result<Found, String>,
    pub took: Duration,
}

impl Outcome {
    /// One line, at once.
    pub fn line(&self, seed: u64) -> String {
        let seconds = self.took.as_secs_f32();
        let head = format!("faults: {:3}: {}: ", self.trial.number, self.trial);
        match &self.found {
            Ok(found) => {
                let doubt = found.doubt.as_deref().unwrap_or("no doubt");
                format!(
                    "{head}{:?} ({doubt}), {} resources kept, {} unsaved, {seconds:.1} s",
                    found.end, found.kept, found.unsaved
                )
            }
            Err(why) => format!(
                "{head}FAILED after {seconds:.1} s; alone: make faults SEED={seed} ONLY={}\n{why}",
                self.trial.number
            ),
        }
    }
}

/// Outcomes by kind.
pub fn summary(campaign: &Campaign, outcomes: &[Outcome]) -> String {
    let mut kinds = BTreeMap::<_, usize>::new();
    for outcome in outcomes {
        let end = match &outcome.found {
            Ok(found) => format!("{:?}", found.end),
            Err(_) => "FAILED".to_owned(),
        };
        *kinds.entry((outcome.trial.fault, end)).or_default() += 1;
    }
    let unsaved = outcomes.iter().filter_map(|it| it.found.as_ref().ok());
    let unsaved: usize = unsaved.map(|found| found.unsaved).sum();
    let mut text = format!(
        "faults: seed {}, {} trials\n",
        campaign.seed,
        outcomes.len()
    );
    for ((fault, end), count) in kinds {
        writeln!(text, "faults: {count:5} x {fault:?}: {end}").expect("memory");
    }
    writeln!(
        text,
        "faults: {unsaved:5} resources were made after OpenTofu's last save and before it was cut off"
    )
    .expect("memory");
    text
}
