//! One trial: a run is brought to its moment, something breaks, everything comes back, and what is
//! then found is judged.

use serde_json::Value;

use super::bench::Bench;
use super::inject::{inject, restore};
use super::schedule::{Moment, Trial};
use super::truth::{self, Found};
use super::turnstile::{Answer, Held, Stop};
use crate::support::{Workspace, eventually};

/// Every resource of the configuration, in the order in which they are made.
pub const RESOURCES: [&str; 3] = ["one", "two", "three"];
/// How many lines the provisioner of the second prints, ten a second: when they are what is
/// interrupted, more than a database is away for.
const TICKS_LONG: u32 = 45;
const TICKS_SHORT: u32 = 3;
/// OpenTofu saves a state on its way only 20 seconds after it began; then the third is being made.
const SAVES_AFTER: u32 = 21;
/// How long that takes, in seconds: longer than it takes to break something.
const THIRD_TAKES: u32 = 6;

/// Whether the apply was offered.
const OFFERS: &str = "select attempt_id from record.attempts where run_id = $1 and phase = 'apply'";
/// Whether its result is in.
const RESULTS: &str = "select close_cause from record.attempts \
    where run_id = $1 and phase = 'apply' and result is not null";

/// What a trial is about.
pub struct Subject {
    pub trial: Trial,
    pub workspace: Workspace,
    pub run: String,
    pub main: String,
    pub ticks: u32,
}

/// Carries a trial out; whatever is not as it must be panics.
pub fn carry_out(bench: &mut Bench, trial: Trial) -> Found {
    let subject = begin(bench, trial);
    let run = subject.run.as_str();
    let (held, stop) = approve(bench, &subject);
    match (trial.moment, held) {
        (Moment::SavedOnTheWay, _) => {
            eventually("a state is saved on the way", || bench.turnstile.newest());
            inject(bench, trial.fault);
        }
        (_, None) => {
            bench.world.owner.wait_log(run, "apply", "tick-3 ");
            inject(bench, trial.fault);
        }
        (Moment::Reported, Some(held)) => {
            held.wait(stop);
            let log = bench.database.hold_log();
            held.release(Answer::Passes);
            eventually("the result is recorded", || {
                let results = bench.database.rows(RESULTS, run);
                (!results.is_empty()).then_some(())
            });
            inject(bench, trial.fault);
            drop(log);
        }
        (_, Some(held)) => {
            held.wait(stop);
            let answer = inject(bench, trial.fault);
            held.release(answer);
        }
    }
    restore(bench, trial.fault, run);
    truth::judge(bench, &subject, &settled(bench, run))
}

fn begin(bench: &Bench, trial: Trial) -> Subject {
    let ticks = if trial.moment == Moment::FirstMade {
        TICKS_LONG
    } else {
        TICKS_SHORT
    };
    bench.turnstile.forget();
    let owner = &bench.world.owner;
    let workspace = owner.workspace(&format!("trial-{}", trial.number));
    let main = configuration(trial.moment, ticks);
    let run = owner.start(&workspace, "plan_and_apply", &[("main.tf", &main)]);
    Subject {
        trial,
        workspace,
        run,
        main,
        ticks,
    }
}

/// Approves, after what will be held was said.
fn approve(bench: &Bench, subject: &Subject) -> (Option<Held>, Stop) {
    let (owner, run) = (&bench.world.owner, subject.run.as_str());
    let stop = stop(subject.trial.moment);
    if subject.trial.moment == Moment::BeforeLease {
        // The runner asks for a lease again when its plan is over.
        eventually("the plan has begun", || {
            (owner.run(run)["status"] != "queued").then_some(())
        });
        let held = bench.turnstile.arm(stop);
        owner.approve(run);
        eventually("the apply is offered", || {
            let offers = bench.database.rows(OFFERS, run);
            (!offers.is_empty()).then_some(())
        });
        return (Some(held), stop);
    }
    owner.wait_status(run, "awaiting_approval");
    let is_held = !matches!(
        subject.trial.moment,
        Moment::FirstMade | Moment::SavedOnTheWay
    );
    let held = is_held.then(|| bench.turnstile.arm(stop));
    owner.approve(run);
    (held, stop)
}

/// Where on the way between runner and control plane a moment is.
fn stop(moment: Moment) -> Stop {
    match moment {
        Moment::BeforeLease => Stop::LeaseAsked,
        Moment::LeaseGiven => Stop::LeaseGiven,
        Moment::InputsFetched => Stop::InputsFetched,
        Moment::EvidenceCompared => Stop::StartAsked,
        Moment::StartAnnounced => Stop::StartTaken,
        Moment::FirstMade | Moment::SavedOnTheWay | Moment::StateUploading => Stop::StateOffered,
        Moment::StateTaken => Stop::StateTaken,
        Moment::BeforeReport | Moment::Reported => Stop::ResultOffered,
    }
}

/// The run, once it waits for nobody but a person.
fn settled(bench: &Bench, run: &str) -> Value {
    eventually("the run has settled", || {
        let seen = bench.world.owner.run(run);
        let is_settled = !seen["ended"].is_null() || seen["status"] == "recovery_required";
        is_settled.then_some(seen)
    })
}

fn configuration(moment: Moment, ticks: u32) -> String {
    let (pause, last) = if moment == Moment::SavedOnTheWay {
        (SAVES_AFTER, THIRD_TAKES)
    } else {
        (0, 0)
    };
    format!(
        r#"
resource "terraform_data" "one" {{
  input = "one"
}}

resource "terraform_data" "two" {{
  input = terraform_data.one.id
  provisioner "local-exec" {{
    command = "n=1; while [ $n -le {ticks} ]; do echo \"tick-$n .\"; n=$((n + 1)); sleep 0.1; done; sleep {pause}"
  }}
}}

resource "terraform_data" "three" {{
  input = terraform_data.two.id
  provisioner "local-exec" {{
    command = "sleep {last}"
  }}
}}
"#
    )
}
