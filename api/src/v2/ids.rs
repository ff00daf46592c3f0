//! Ids of plans, applies and policy checks. Here they are resources of their own; everywhere else they
//! are phases of their run, so their ids are the run's under another prefix.

use stackship_domain::ids::{Id as _, RunId};
use stackship_domain::run::Phase;

const fn prefix(phase: Phase) -> &'static str {
    match phase {
        Phase::Plan => "plan",
        Phase::Apply => "apply",
    }
}

/// The id of a run's plan or apply.
pub fn phase_id(phase: Phase, run: RunId) -> String {
    let run = run.to_string();
    let digits = run.strip_prefix(RunId::PREFIX).unwrap_or(&run);
    format!("{}{digits}", prefix(phase))
}

/// The id of the run that a plan's or apply's id belongs to; a text that is no id finds nothing.
pub fn run_of_phase(phase: Phase, id: &str) -> String {
    id.strip_prefix(prefix(phase))
        .map_or_else(String::new, |digits| format!("{}{digits}", RunId::PREFIX))
}

/// What the id of a policy check begins with.
const POLICY_CHECK: &str = "polchk";

/// The id of a run's policy check.
pub fn policy_check_id(run: RunId) -> String {
    let run = run.to_string();
    let digits = run.strip_prefix(RunId::PREFIX).unwrap_or(&run);
    format!("{POLICY_CHECK}{digits}")
}

/// The id of the run that a policy check's id belongs to; a text that is no id finds nothing.
pub fn run_of_policy_check(id: &str) -> String {
    id.strip_prefix(POLICY_CHECK)
        .map_or_else(String::new, |digits| format!("{}{digits}", RunId::PREFIX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackship_domain::run::samples;

    #[test]
    fn a_phases_id_leads_back_to_its_run_and_to_no_other_phase() {
        let run: RunId = samples::id(42);
        let plan = phase_id(Phase::Plan, run);
        assert!(plan.starts_with("plan-0"), "{plan}");
        assert_eq!(run_of_phase(Phase::Plan, &plan), run.to_string());
        assert_eq!(run_of_phase(Phase::Apply, &plan), "");
        let check = policy_check_id(run);
        assert!(check.starts_with("polchk-0"), "{check}");
        assert_eq!(run_of_policy_check(&check), run.to_string());
        assert_eq!(run_of_policy_check(&plan), "");
    }
}
