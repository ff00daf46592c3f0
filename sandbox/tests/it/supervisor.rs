//! The order of steps, what comes out, and every way to end.

use stackship_sandbox::{EndReason, Event, StepExit};

use crate::support::{run, shell, spec};

#[tokio::test]
async fn steps_run_in_order_and_report_their_output() {
    let ran = run(spec(vec![
        shell("one", "echo 1; echo e >&2"),
        shell("two", "echo 2"),
    ]))
    .await;
    assert_eq!(ran.outcome.reason, EndReason::Exited, "{}", ran.stderr);
    assert_eq!(
        (ran.stdout.as_str(), ran.stderr.as_str()),
        ("1\n2\n", "e\n")
    );
    let order: Vec<String> = ran
        .events
        .iter()
        .filter_map(|event| match event {
            Event::StepStarted { step } => Some(format!("start {step}")),
            Event::StepEnded(report) => Some(format!("end {}", report.step)),
            _ => None,
        })
        .collect();
    assert_eq!(order, ["start one", "end one", "start two", "end two"]);
    assert!(
        ran.outcome
            .steps
            .iter()
            .all(|report| report.exit == StepExit::Code(0))
    );
}
