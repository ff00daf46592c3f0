//! Every way to end, and that nothing is left after it.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use stackship_sandbox::bubblewrap::{Bubblewrap, Settings};
use stackship_sandbox::{EndReason, LaunchError, SandboxDriver, SandboxSpec};

use crate::support::{
    all_end, finish, launch, processes_of, run, settings, shell, spec, until_log, watch, world,
};

/// A process in a session of its own, without a parent, that ignores what it can.
const STUBBORN: &str = "(setsid sh -c 'trap \"\" HUP INT TERM; while :; do sleep 1000; done' &) ;";

/// A sandbox of a driver of its own, so that its processes can be told from those of other tests.
struct Alone {
    driver: Bubblewrap,
    runner: String,
    _runtime: tempfile::TempDir,
}

fn alone(name: &str, base_uid: u32) -> Alone {
    let runtime = tempfile::tempdir().unwrap();
    let settings = Settings {
        base_uid,
        slots: 1,
        ..settings(name, runtime.path().join("run"))
    };
    let runner = settings.runner_name.clone();
    Alone {
        driver: Bubblewrap::new(settings).unwrap(),
        runner,
        _runtime: runtime,
    }
}

fn stubborn(then: &str) -> SandboxSpec {
    spec(vec![shell("one", &format!("{STUBBORN} echo up; {then}"))])
}

#[tokio::test]
async fn a_double_forked_process_ends_with_the_last_step() {
    let alone = alone("normal", 201_000);
    let mut sandbox = alone
        .driver
        .launch(stubborn("trap 'exit 0' INT; sleep 1000 & wait"))
        .await
        .unwrap();
    until_log(&mut sandbox, "up").await;
    let watched = watch(&processes_of(&alone.runner));
    assert!(
        watched.len() >= 5,
        "only {} processes are seen",
        watched.len()
    );
    sandbox.control().interrupt().await;
    assert_eq!(
        sandbox.wait().await.reason,
        EndReason::Canceled { forced: false }
    );
    all_end(&watched);
    assert!(processes_of(&alone.runner).is_empty());
}

#[tokio::test]
async fn a_double_forked_process_ends_with_the_time_limit() {
    let alone = alone("late", 201_100);
    let mut spec = stubborn("trap '' INT; while :; do sleep 1000; done");
    spec.steps[0].time_limit = Duration::from_millis(700);
    spec.limits.interrupt_grace = Duration::from_millis(50);
    let mut sandbox = alone.driver.launch(spec).await.unwrap();
    until_log(&mut sandbox, "up").await;
    let watched = watch(&processes_of(&alone.runner));
    assert_eq!(
        sandbox.wait().await.reason,
        EndReason::Timeout {
            step: Some("one".into())
        }
    );
    all_end(&watched);
}

#[tokio::test]
async fn a_double_forked_process_ends_with_a_dropped_handle() {
    let alone = alone("dropped", 201_200);
    let mut sandbox = alone.driver.launch(stubborn("sleep 1000")).await.unwrap();
    until_log(&mut sandbox, "up").await;
    let watched = watch(&processes_of(&alone.runner));
    drop(sandbox);
    tokio::task::spawn_blocking(move || all_end(&watched))
        .await
        .unwrap();
    let mut next = alone
        .driver
        .launch(spec(vec![shell("one", ":")]))
        .await
        .unwrap();
    assert_eq!(
        next.wait().await.reason,
        EndReason::Exited,
        "the place is free again"
    );
}

#[tokio::test]
async fn a_killed_runner_leaves_no_process_and_its_next_life_sweeps_the_rest() {
    let runtime = tempfile::tempdir().unwrap();
    let directory = runtime.path().join("run");
    let name = format!("crash-{}", std::process::id());
    let mut runner = Command::new(env!("CARGO_BIN_EXE_sandbox-trial"))
        .args(["hold".as_ref(), directory.as_os_str(), name.as_ref()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(runner.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "up\n");
    let watched = watch(&processes_of(&name));
    assert!(
        watched.len() >= 5,
        "only {} processes are seen",
        watched.len()
    );
    runner.kill().unwrap();
    runner.wait().unwrap();
    all_end(&watched);

    let next = Settings {
        base_uid: 300_000,
        runner_name: name,
        ..settings("x", directory)
    };
    let driver = Bubblewrap::new(next).unwrap();
    assert_eq!(
        driver.sweep().await.unwrap(),
        2,
        "one group and one working directory"
    );
    assert_eq!(driver.sweep().await.unwrap(), 0);
}

#[tokio::test]
async fn a_time_limit_interrupts_first_and_names_the_step() {
    let script = "trap 'echo bye; exit 0' INT; echo up; sleep 1000 & wait";
    let mut spec = spec(vec![shell("slow", script)]);
    spec.steps[0].time_limit = Duration::from_millis(500);
    let ran = run(spec).await;
    assert_eq!(
        ran.outcome.reason,
        EndReason::Timeout {
            step: Some("slow".into())
        }
    );
    assert!(ran.stdout.ends_with("bye\n"), "{}", ran.stdout);
}

#[tokio::test]
async fn the_total_time_includes_pauses() {
    let mut spec = spec(vec![shell("one", ":"), shell("two", "echo no")]);
    spec.steps[0].pause_after = true;
    spec.limits.total_time = Duration::from_millis(500);
    let ran = run(spec).await;
    assert_eq!(ran.outcome.reason, EndReason::Timeout { step: None });
    assert_eq!(ran.stdout, "");
}

#[tokio::test]
async fn a_kill_on_request_is_told_from_a_loss() {
    let mut sandbox = launch(spec(vec![shell("one", "echo up; sleep 1000")])).await;
    until_log(&mut sandbox, "up").await;
    sandbox.control().kill().await;
    assert_eq!(finish(sandbox).await.outcome.reason, EndReason::Killed);

    let alone = alone("lost", 201_300);
    let mut sandbox = alone
        .driver
        .launch(spec(vec![shell("one", "echo up; sleep 1000")]))
        .await
        .unwrap();
    until_log(&mut sandbox, "up").await;
    for process in processes_of(&alone.runner) {
        let pid = rustix::process::Pid::from_raw(process).unwrap();
        // Its parent's end can have ended it already.
        let _gone = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    let reason = sandbox.wait().await.reason;
    assert!(matches!(reason, EndReason::Lost { .. }), "{reason:?}");
}

#[tokio::test]
async fn waiting_twice_gives_the_same_outcome_and_needs_no_reading_of_events() {
    let mut sandbox = launch(spec(vec![shell("one", "seq 100000; exit 4")])).await;
    let first = sandbox.wait().await;
    assert!(
        matches!(first.reason, EndReason::StepFailed { .. }),
        "{:?}",
        first.reason
    );
    assert_eq!(sandbox.wait().await.reason, first.reason);
}

#[tokio::test]
async fn more_sandboxes_than_slots_wait_for_a_place() {
    let runtime = tempfile::tempdir().unwrap();
    let settings = Settings {
        slots: 1,
        base_uid: 201_400,
        ..settings("one", runtime.path().join("run"))
    };
    let driver = Bubblewrap::new(settings).unwrap();
    let mut first = driver
        .launch(spec(vec![shell("one", "echo up; sleep 1000")]))
        .await
        .unwrap();
    until_log(&mut first, "up").await;
    let second = driver.launch(spec(vec![shell("one", ":")]));
    let freeing = async {
        first.control().kill().await;
        first.wait().await
    };
    let (second, first) = tokio::join!(second, freeing);
    assert_eq!(first.reason, EndReason::Killed);
    assert_eq!(second.unwrap().wait().await.reason, EndReason::Exited);
}

#[tokio::test]
async fn a_helper_that_does_not_come_up_is_a_failed_launch() {
    let runtime = tempfile::tempdir().unwrap();
    let mut settings = settings("helper", runtime.path().join("run"));
    settings.helper = "/bin/false".into();
    settings.base_uid = 201_500;
    let driver = Bubblewrap::new(settings).unwrap();
    let refused = driver.launch(spec(vec![shell("one", ":")])).await.err();
    assert!(
        matches!(refused, Some(LaunchError::Setup { .. })),
        "{refused:?}"
    );
    assert_eq!(driver.probe().await.unwrap_err().item, "launch");
}

#[tokio::test]
async fn an_absent_bwrap_and_a_runtime_directory_in_use_are_refused_with_the_remedy() {
    let runtime = tempfile::tempdir().unwrap();
    let mut settings = settings("absent", runtime.path().join("run"));
    settings.bwrap = Some("/nonexistent/bwrap".into());
    let refused = Bubblewrap::new(settings).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("install the package `bubblewrap`"),
        "{refused}"
    );
    let refused = Bubblewrap::new(world().settings.clone()).unwrap_err();
    assert!(
        refused.to_string().contains("in use by another runner"),
        "{refused}"
    );
}

#[tokio::test]
async fn two_runners_of_one_name_leave_each_other_alone() {
    let (first, second) = (alone("twin", 201_600), alone("twin", 201_700));
    assert_eq!(first.runner, second.runner);
    let up = || {
        spec(vec![shell(
            "one",
            "trap 'exit 0' INT; echo up; sleep 1000 & wait",
        )])
    };
    let mut one = first.driver.launch(up()).await.unwrap();
    until_log(&mut one, "up").await;
    assert_eq!(second.driver.sweep().await.unwrap(), 0);
    let mut two = second.driver.launch(up()).await.unwrap();
    until_log(&mut two, "up").await;
    for sandbox in [&mut one, &mut two] {
        sandbox.control().interrupt().await;
        assert_eq!(
            sandbox.wait().await.reason,
            EndReason::Canceled { forced: false }
        );
    }
}
