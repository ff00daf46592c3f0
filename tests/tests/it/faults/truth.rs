//! What must hold after any fault: of the run, its lock, its states, its log and its history.

use std::collections::BTreeSet;
use std::fmt::Display;

use reqwest::Method;
use serde_json::{Value, json};

use super::bench::Bench;
use super::schedule::End;
use super::state::State;
use super::trial::{RESOURCES, Subject};
use crate::support::{eventually, text};

/// Streams with a gap, or that do not begin at one.
const BROKEN_STREAMS: &str = "select aggregate_id from log.events where organization_id is not null and $1 <> '' \
    group by aggregate_type, aggregate_id having min(sequence) <> 1 or max(sequence) <> count(*)";
/// What happens at most once to a run, and happened more often.
const REPEATED: &str = "select event_type from log.events where aggregate_id = $1 \
    and event_type in ('run_approved', 'apply_succeeded', 'apply_failed', 'recovery_required', 'recovery_resolved') \
    group by event_type having count(*) > 1";
/// Publications of the run's state.
const PUBLICATIONS: &str = "select aggregate_id from log.events where event_type = 'state_published' \
    and payload ->> 'run' = $1";
/// Attempts in which `tofu apply` may have run.
const STARTS: &str = "select attempt_id from record.attempts where run_id = $1 and phase = 'apply' \
    and tofu_started_at is not null";

/// What a trial found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    pub end: End,
    /// Why the apply was in doubt.
    pub doubt: Option<String>,
    /// Resources that the workspace's state knows in the end.
    pub kept: usize,
    /// Resources that the log tells of, and that OpenTofu was given no time to save.
    pub unsaved: usize,
}

/// Looks at everything, resolves a doubt, plans again, and panics with all that is wrong.
pub fn judge(bench: &Bench, subject: &Subject, seen: &Value) -> Found {
    let mut truth = Truth {
        bench,
        subject,
        wrong: Vec::new(),
    };
    let end = truth.end(seen);
    truth.lock(end);
    truth.events();
    truth.log(end);
    let made = truth.made();
    if end == End::RecoveryRequired {
        truth.resolve();
    }
    let doubt = seen["recovery"]["reason"].as_str().map(str::to_owned);
    let kept = truth.kept(end);
    let unsaved = truth.states(end, doubt.as_deref(), &made, &kept);
    truth.next_plan(&kept);
    truth.history();
    let Truth { wrong, .. } = truth;
    assert!(wrong.is_empty(), "{}\n{seen:#}", wrong.join("\n"));
    Found {
        end,
        doubt,
        kept: kept.resources.len(),
        unsaved,
    }
}

struct Truth<'a> {
    bench: &'a Bench,
    subject: &'a Subject,
    wrong: Vec<String>,
}

impl Truth<'_> {
    fn must(&mut self, holds: bool, otherwise: impl Display) {
        if !holds {
            self.wrong.push(format!("- {otherwise}"));
        }
    }

    fn rows(&self, sql: &str) -> Vec<String> {
        self.bench.database.rows(sql, &self.subject.run)
    }

    fn end(&mut self, seen: &Value) -> End {
        let end = match text(&seen["status"]).as_str() {
            "applied" => Some(End::Applied),
            "recovery_required" => Some(End::RecoveryRequired),
            _ => None,
        };
        let Some(end) = end else {
            panic!("no end that an apply may have: {seen:#}");
        };
        let allowed = self.subject.trial.ends();
        self.must(
            allowed.contains(&end),
            format!("it stands at {end:?}, and only {allowed:?} is right"),
        );
        end
    }

    /// Held exactly while the run is in doubt.
    fn lock(&mut self, end: End) {
        let owner = &self.bench.world.owner;
        match end {
            End::Applied => self.wait_unlocked(),
            End::RecoveryRequired => {
                let lock = owner.detail(&self.subject.workspace)["lock"].take();
                let is_held = lock.to_string().contains(&self.subject.run);
                self.must(is_held, format!("in doubt, and the lock is {lock}"));
            }
        }
    }

    fn wait_unlocked(&self) {
        let owner = &self.bench.world.owner;
        eventually("the lock is free", || {
            let detail = owner.detail(&self.subject.workspace);
            detail["lock"].is_null().then_some(())
        });
    }

    fn events(&mut self) {
        for (sql, most, what) in [
            (BROKEN_STREAMS, 0, "streams with gaps"),
            (REPEATED, 0, "events that happened twice"),
            (PUBLICATIONS, 1, "publications"),
            (STARTS, 1, "attempts that may have applied"),
        ] {
            let found = self.rows(sql);
            self.must(found.len() <= most, format!("{what}: {found:?}"));
        }
    }

    /// What the provisioner printed arrived in order, nothing of it twice, and all of it if it ended.
    fn log(&mut self, end: End) {
        let log = self.bench.world.owner.log(&self.subject.run, "apply");
        let words = log.split_whitespace();
        let ticks: Vec<u32> = words
            .filter_map(|word| word.strip_prefix("tick-")?.parse().ok())
            .collect();
        let in_order: Vec<u32> = (1..).take(ticks.len()).collect();
        self.must(
            ticks == in_order,
            format!("the log has gaps or repeats: {ticks:?}"),
        );
        let is_whole = ticks.last() == Some(&self.subject.ticks);
        self.must(
            end != End::Applied || is_whole,
            format!("applied, and the log ends at {ticks:?}"),
        );
    }

    /// The resources of which the log says that they are made.
    fn made(&self) -> BTreeSet<String> {
        let log = self.bench.world.owner.log(&self.subject.run, "apply");
        let is_made =
            |name: &&str| log.contains(&format!("terraform_data.{name}: Creation complete"));
        RESOURCES
            .into_iter()
            .filter(is_made)
            .map(str::to_owned)
            .collect()
    }

    /// Adopts what was left, or declares no change where nothing was.
    fn resolve(&mut self) {
        let owner = &self.bench.world.owner;
        let path = format!("/v1/runs/{}/recovery", self.subject.run);
        let seen = owner.get(&path);
        let can_adopt = seen["choices"]["adopt"]["possible"] == true;
        let has_left = !seen["staged_state"].is_null();
        self.must(
            can_adopt == has_left,
            format!("what was left cannot be adopted: {seen:#}"),
        );
        let choice = if can_adopt { "adopt" } else { "no-change" };
        let reason = json!({"reason": "The campaign looked at what is there."});
        let resolved = owner.post(&format!("{path}/{choice}"), &reason);
        self.must(resolved["status"] == "recovered", resolved);
        self.wait_unlocked();
    }

    /// What the workspace's state knows now.
    fn kept(&mut self, end: End) -> State {
        let owner = &self.bench.world.owner;
        let version = owner.detail(&self.subject.workspace)["state"]["version"].take();
        let Some(version) = version.as_str() else {
            self.must(end != End::Applied, "applied, and there is no state");
            return State::default();
        };
        let path = format!("/api/v2/state-versions/{version}/download");
        let (status, file) = owner.send(Method::GET, &path, None);
        let state = State::parse(&file).filter(|_| status.is_success());
        state.unwrap_or_else(|| panic!("the state cannot be read: {status} {file}"))
    }

    /// Nothing that was taken is forgotten, nor what was made unless OpenTofu was cut off, and the run
    /// says so. Says how many resources could not be saved any more.
    fn states(
        &mut self,
        end: End,
        doubt: Option<&str>,
        made: &BTreeSet<String>,
        kept: &State,
    ) -> usize {
        let taken = self.bench.turnstile.newest().unwrap_or_default();
        self.must(
            taken.serial <= kept.serial && taken.resources.is_subset(&kept.resources),
            format!("the state {taken:?} was taken, and {kept:?} is what is left"),
        );
        let unsaved = made.difference(&kept.resources).count();
        let may_lose = matches!(doubt, Some("lease_lost" | "sandbox_lost"));
        self.must(
            unsaved == 0 || may_lose,
            format!("made are {made:?}, and {kept:?} is what is known"),
        );
        let whole = kept.resources.len() == RESOURCES.len() && kept.tainted.is_empty();
        self.must(
            end != End::Applied || whole,
            format!("applied, and the state is {kept:?}"),
        );
        unsaved
    }

    /// The next run asks for exactly what the state does not know.
    fn next_plan(&mut self, kept: &State) {
        let owner = &self.bench.world.owner;
        let files = [("main.tf", self.subject.main.as_str())];
        let next = owner.start(&self.subject.workspace, "plan_and_apply", &files);
        let missing = RESOURCES.len() - kept.resources.len() + kept.tainted.len();
        if missing == 0 {
            owner.wait_status(&next, "no_changes");
            return;
        }
        let mut asked = owner.wait_status(&next, "awaiting_approval");
        let create = asked["plan"]["result"]["counts"]["create"].take();
        self.must(
            create == missing,
            format!("{missing} are missing, and the plan creates {create}"),
        );
        let reason = json!({"reason": "Only the plan was wanted."});
        owner.post(&format!("/v1/runs/{next}/discard"), &reason);
        self.wait_unlocked();
    }

    fn history(&mut self) {
        let verified = self.bench.world.server.tool("audit", &["verify"]);
        self.must(
            verified.is_ok(),
            format!("the audit does not verify: {verified:?}"),
        );
    }
}
