//! The order of steps, and how the caller steers them.

use std::time::Duration;

use stackship_sandbox::{EndReason, Event, StepExit};

use crate::support::{finish, launch, run, shell, spec, until_log};

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
            Event::Log { .. } | Event::LogTruncated | Event::Artifact(_) | Event::Paused { .. } => {
                None
            }
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

#[tokio::test]
async fn a_step_that_fails_ends_the_order_and_is_named() {
    let ran = run(spec(vec![shell("one", "exit 7"), shell("two", "echo no")])).await;
    let expected = EndReason::StepFailed {
        step: "one".into(),
        exit: StepExit::Code(7),
    };
    assert_eq!(ran.outcome.reason, expected);
    assert_eq!((ran.outcome.steps.len(), ran.stdout.as_str()), (1, ""));
}

#[tokio::test]
async fn an_exit_code_to_continue_on_is_no_failure() {
    let mut first = shell("one", "exit 2");
    first.continue_on = vec![0, 2];
    let ran = run(spec(vec![first, shell("two", "echo yes")])).await;
    assert_eq!(ran.outcome.reason, EndReason::Exited);
    assert_eq!(ran.outcome.step("one").unwrap().exit, StepExit::Code(2));
    assert_eq!(ran.stdout, "yes\n");
}

#[tokio::test]
async fn a_signal_and_an_absent_program_are_told_apart() {
    let ran = run(spec(vec![shell("one", "kill -SEGV $$")])).await;
    assert_eq!(ran.outcome.steps[0].exit, StepExit::Signal(11));
    let mut absent = shell("one", "");
    absent.argv = vec!["/opt/tofu/tofu".to_owned()];
    let ran = run(spec(vec![absent])).await;
    assert_eq!(ran.outcome.steps[0].exit, StepExit::NotStarted);
    assert!(
        ran.stderr.contains("cannot start /opt/tofu/tofu"),
        "{}",
        ran.stderr
    );
}

#[tokio::test]
async fn a_step_gets_its_own_environment_and_directory() {
    let mut step = shell(
        "one",
        "echo $GREETING; pwd; env | cut -d= -f1 | sort | xargs",
    );
    step.environment.set("GREETING", "hello world");
    step.directory = "/tmp".to_owned();
    let ran = run(spec(vec![step])).await;
    let expected = "hello world\n/tmp\nAWS_EC2_METADATA_DISABLED GREETING HOME LANG PATH PWD\n";
    assert_eq!(ran.stdout, expected);
}

#[tokio::test]
async fn what_a_step_leaves_running_is_gone_before_the_next_starts() {
    let leave = "(setsid sleep 1000 >/dev/null 2>&1 &); (setsid sleep 1000 &); echo left";
    let look = "for p in /proc/[0-9]*; do cat $p/comm; done | sort | xargs";
    let ran = run(spec(vec![shell("one", leave), shell("two", look)])).await;
    assert_eq!(ran.outcome.reason, EndReason::Exited);
    assert!(
        !ran.stdout.contains("sleep") && ran.stdout.contains("bwrap"),
        "{}",
        ran.stdout
    );
}

#[tokio::test]
async fn a_pause_waits_for_the_caller() {
    let mut first = shell("one", "echo 1");
    first.pause_after = true;
    let mut sandbox = launch(spec(vec![first, shell("two", "echo 2")])).await;
    loop {
        match sandbox.next_event().await.unwrap() {
            Event::Paused { step } => {
                assert_eq!(&*step, "one");
                break;
            }
            Event::StepStarted { step } => assert_eq!(&*step, "one"),
            Event::Log { .. } | Event::LogTruncated | Event::Artifact(_) | Event::StepEnded(_) => {}
        }
    }
    sandbox.control().proceed().await;
    let ran = finish(sandbox).await;
    assert_eq!(
        (ran.outcome.reason, ran.stdout.as_str()),
        (EndReason::Exited, "2\n")
    );
}

#[tokio::test]
async fn an_interrupt_ends_a_pause() {
    let mut first = shell("one", "echo 1");
    first.pause_after = true;
    let mut sandbox = launch(spec(vec![first, shell("two", "echo 2")])).await;
    until_log(&mut sandbox, "1").await;
    sandbox.control().interrupt().await;
    let ran = finish(sandbox).await;
    assert_eq!(ran.outcome.reason, EndReason::Canceled { forced: false });
    assert_eq!(ran.outcome.steps.len(), 1);
}

#[tokio::test]
async fn an_interrupt_reaches_the_step_and_starts_no_other() {
    let script = "trap 'echo got; exit 3' INT; echo ready; sleep 1000 & wait";
    let mut sandbox = launch(spec(vec![shell("one", script), shell("two", "echo no")])).await;
    until_log(&mut sandbox, "ready").await;
    sandbox.control().interrupt().await;
    let ran = finish(sandbox).await;
    assert_eq!(ran.outcome.reason, EndReason::Canceled { forced: false });
    assert_eq!(ran.outcome.steps.len(), 1);
    assert_eq!(ran.outcome.steps[0].exit, StepExit::Code(3));
    assert_eq!(ran.stdout, "got\n");
}

/// As under `nohup`, or in the background of a script.
#[test]
fn an_interrupt_reaches_the_step_of_a_runner_that_ignores_interrupts() {
    let ignoring = "trap '' HUP INT QUIT TERM; exec \"$0\" \"$@\"";
    let test = "supervisor::an_interrupt_reaches_the_step_and_starts_no_other";
    let ran = std::process::Command::new("/bin/sh")
        .args(["-c", ignoring])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&ran.stdout);
    assert!(
        ran.status.success() && printed.contains("1 passed"),
        "{printed}{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

#[tokio::test]
async fn a_second_interrupt_is_a_second_signal() {
    let script = "trap 'n=x$n; echo got $n; [ $n = xx ] && exit 5' INT; echo ready
                  while :; do sleep 1000 & wait; done";
    let mut sandbox = launch(spec(vec![shell("one", script)])).await;
    until_log(&mut sandbox, "ready").await;
    sandbox.control().interrupt().await;
    until_log(&mut sandbox, "got x\n").await;
    sandbox.control().interrupt().await;
    let ran = finish(sandbox).await;
    assert_eq!(ran.outcome.reason, EndReason::Canceled { forced: false });
    assert_eq!(ran.outcome.steps[0].exit, StepExit::Code(5));
}

#[tokio::test]
async fn a_step_that_ignores_the_interrupt_is_killed_after_the_grace_period() {
    let mut spec = spec(vec![shell("one", "trap '' INT; echo ready; sleep 1000")]);
    spec.limits.interrupt_grace = Duration::from_millis(50);
    let mut sandbox = launch(spec).await;
    until_log(&mut sandbox, "ready").await;
    sandbox.control().interrupt().await;
    let ran = finish(sandbox).await;
    assert_eq!(ran.outcome.reason, EndReason::Canceled { forced: true });
    assert!(ran.outcome.steps.is_empty());
}

#[tokio::test]
async fn a_step_cannot_end_its_supervisor_where_landlock_scopes_signals() {
    // Also by the numbers of its threads: a signal to one of them reaches all.
    let script = "n=0; while [ $n -lt 20 ]; do n=$((n + 1)); p=0; \
         while [ $p -lt $(($$ + 8)) ]; do p=$((p + 1)); [ $p = $$ ] || kill -9 $p; done; \
         done 2>/dev/null; echo alive";
    let ran = run(spec(vec![shell("one", script)])).await;
    if ran.outcome.isolation.landlock {
        assert_eq!(
            (ran.outcome.reason, ran.stdout.as_str()),
            (EndReason::Exited, "alive\n")
        );
    } else {
        assert!(
            matches!(ran.outcome.reason, EndReason::Lost { .. }),
            "{:?}",
            ran.outcome
        );
    }
}
