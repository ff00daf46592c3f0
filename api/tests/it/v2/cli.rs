//! What a person with the real `tofu` sees.

use sqlx::PgPool;
use stackship_domain::run::{Status, TerminalReason};
use stackship_runner_protocol::{ApplyEnd, PhaseResult, PlanEnd};

use crate::v2::http::{get, send};
use crate::v2::terminal::Terminal;
use crate::v2::tofu::Tofu;
use crate::v2::world::Served;

async fn initialized(world: &Served, token: &str) -> Tofu {
    let tofu = Tofu::new(&world.url, token, "net");
    tofu.run(&["init", "-no-color"], "").await.ok();
    tofu
}

async fn serial(tofu: &Tofu) -> i64 {
    let pulled = tofu.run(&["state", "pull"], "").await.ok();
    let state: serde_json::Value = serde_json::from_str(&pulled).unwrap();
    state["serial"].as_i64().unwrap()
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn what_is_not_supported_is_refused_with_the_command_to_run_instead(pool: PgPool) {
    let world = Served::new(pool).await;
    let tofu = initialized(&world, &world.acme.operator.token).await;
    let refused = [
        (
            &["apply", "-auto-approve", "-no-color"][..],
            "Automatic apply is not supported. Rerun tofu apply without -auto-approve.",
        ),
        (&["refresh", "-no-color"], "Run tofu apply -refresh-only."),
        (
            &["plan", "-destroy", "-no-color"],
            "Destroy mode is not supported.",
        ),
        (
            &["plan", "-out=saved", "-no-color"],
            "Rerun tofu plan without -out",
        ),
    ];
    for (arguments, words) in refused {
        let ended = tofu.run(arguments, "").await;
        ended.failed_with("Failed to create run: invalid document");
        ended.failed_with(words);
    }
    assert_eq!(world.runs().await, 0, "nothing was created");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn without_a_state_there_is_nothing_to_read_and_nothing_fails(pool: PgPool) {
    let world = Served::new(pool).await;
    let tofu = initialized(&world, &world.acme.planner.token).await;
    let outputs = tofu.run(&["output", "-no-color"], "").await;
    assert!(outputs.ok().contains("No outputs found"));
    assert_eq!(serial(&tofu).await, 0);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_stranger_finds_nothing_and_a_wrong_token_opens_nothing(pool: PgPool) {
    let world = Served::new(pool).await;
    let stranger = Tofu::new(&world.url, &world.umbrella.owner.token, "net");
    stranger
        .run(&["init", "-no-color"], "")
        .await
        .failed_with("organization \"acme\" at host");
    let nobody = Tofu::new(&world.url, "ss_nothing", "net");
    nobody
        .run(&["init", "-no-color"], "")
        .await
        .failed_with("unauthorized");
    let planner = Tofu::new(&world.url, &world.acme.planner.token, "elsewhere");
    planner
        .run(&["init", "-no-color"], "")
        .await
        .failed_with("needs the permission workspace:write");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_operator_creates_a_workspace_by_init(pool: PgPool) {
    let world = Served::new(pool).await;
    let tofu = Tofu::new(&world.url, &world.acme.operator.token, "fresh");
    tofu.run(&["init", "-no-color"], "").await.ok();
    let read = format!("{}/api/v2/organizations/acme/workspaces/fresh", world.url);
    let answer = get(&read, &world.acme.operator.token).await;
    assert_eq!(
        answer.json()["data"]["attributes"]["terraform-version"],
        "1.12.6"
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_person_writes_no_state_from_a_laptop(pool: PgPool) {
    let world = Served::new(pool).await;
    let tofu = initialized(&world, &world.acme.operator.token)
        .await
        .with("TF_FORCE_LOCAL_BACKEND", "1");
    let locked = tofu.run(&["apply", "-auto-approve", "-no-color"], "").await;
    locked.failed_with("Error acquiring the state lock");
    locked.failed_with("State here is changed by runs");
    let unlocked = tofu
        .run(&["apply", "-auto-approve", "-no-color", "-lock=false"], "")
        .await;
    unlocked.failed_with("State here is written by runs, not from a terminal");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_plan_streams_its_log_and_ends_well(pool: PgPool) {
    let world = Served::new(pool).await;
    let tofu = initialized(&world, &world.acme.planner.token).await;
    let (ended, _) = tokio::join!(
        tofu.run(&["plan", "-no-color", "-detailed-exitcode"], ""),
        world.work_on_plan()
    );
    assert_eq!(ended.code, Some(2), "{}", ended.text);
    assert!(
        ended.text.contains("terraform_data.a will be created"),
        "{}",
        ended.text
    );
    assert!(!ended.text.contains('\u{2}') && !ended.text.contains('\u{3}'));
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_failing_plan_says_why(pool: PgPool) {
    let world = Served::new(pool).await;
    let tofu = initialized(&world, &world.acme.planner.token).await;
    let failing = async {
        let leased = world.lease().await;
        world
            .log(&leased.attempt, 0, "Error: this configuration is wrong\n")
            .await;
        let end = PlanEnd::Failed {
            reason: TerminalReason::PlanFailed,
            detail: "exit code 1".to_owned(),
        };
        world
            .report(&leased.attempt, &PhaseResult::Plan { end })
            .await;
    };
    let (ended, ()) = tokio::join!(tofu.run(&["plan", "-no-color"], ""), failing);
    ended.failed_with("Error: this configuration is wrong");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_plan_is_approved_and_its_state_is_read_back(pool: PgPool) {
    let world = Served::new(pool).await;
    let tofu = initialized(&world, &world.acme.operator.token).await;
    let mut terminal = Terminal::start(&tofu, &["apply", "-no-color"]);
    let work = world.work_on_plan().await;
    terminal.sees("Enter a value:").await;
    terminal.types("yes\n");
    world.work_on_apply(work).await;
    let text = terminal.ends().await.ok();
    assert!(
        text.contains("terraform_data.a: Creating..."),
        "a line of the log was dropped: {text}"
    );
    assert!(
        text.contains("Apply complete! Resources: 1 added"),
        "{text}"
    );

    let listed = tofu.run(&["state", "list"], "").await.ok();
    assert_eq!(listed.trim(), "terraform_data.a");
    assert_eq!(
        tofu.run(&["output", "-raw", "password"], "").await.ok(),
        "hunter2"
    );
    assert!(
        tofu.run(&["show", "-no-color"], "")
            .await
            .ok()
            .contains("terraform_data.a")
    );
    assert_eq!(serial(&tofu).await, 1);
    tofu.sign_in(&world.url, &world.acme.reader.token);
    tofu.run(&["output", "-no-color"], "")
        .await
        .failed_with("needs the permission state:read");

    tofu.sign_in(&world.url, &world.acme.operator.token);
    let empty = async {
        let leased = world.lease().await;
        world.log(&leased.attempt, 0, "No changes.\n").await;
        world
            .report(&leased.attempt, &world.planned(b"plan", 0).await)
            .await;
    };
    let (ended, ()) = tokio::join!(tofu.run(&["apply", "-no-color"], ""), empty);
    let text = ended.ok();
    assert!(
        text.contains("No changes.") && !text.contains("Enter a value"),
        "{text}"
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_no_at_the_prompt_discards_and_ctrl_c_leaves_the_run(pool: PgPool) {
    let world = Served::new(pool).await;
    let tofu = initialized(&world, &world.acme.operator.token).await;
    let mut terminal = Terminal::start(&tofu, &["apply", "-no-color"]);
    let leased = world.lease().await;
    world
        .report(&leased.attempt, &world.planned(b"plan", 1).await)
        .await;
    terminal.sees("Enter a value:").await;
    terminal.types("no\n");
    terminal.ends().await.failed_with("Apply discarded");
    world
        .until(leased.attempt.offer.run, Status::Discarded)
        .await;

    let mut terminal = Terminal::start(&tofu, &["apply", "-no-color"]);
    let leased = world.lease().await;
    let first = leased.attempt.offer.run;
    world
        .report(&leased.attempt, &world.planned(b"plan", 1).await)
        .await;
    terminal.sees("Enter a value:").await;
    terminal.types("\u{3}");
    // OpenTofu gives the interrupt to its question and to the operation at the same time; when the
    // operation is faster, it asks once more.
    if terminal.sees_or_ends("cancel the remote operation?").await {
        terminal.types("no\n");
        terminal.ends().await;
    } else {
        terminal.ends().await.failed_with("interrupted");
    }
    assert_eq!(
        world.review(first).await.unwrap().status,
        Status::AwaitingApproval
    );

    let second = Terminal::start(&tofu, &["apply", "-no-color"]);
    second
        .sees("Waiting for 1 run(s) to finish before being queued")
        .await;
    let text = second.text().replace(['\r', '\n', '│'], " ");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains(&format!("Waits for {first}, which awaits approval since")),
        "{text}"
    );
    let discard = format!("{}/api/v2/runs/{first}/actions/discard", world.url);
    assert_eq!(
        send("POST", &discard, &world.acme.operator.token, "{}")
            .await
            .status,
        202
    );
    let leased = world.lease().await;
    world
        .report(&leased.attempt, &world.planned(b"plan", 0).await)
        .await;
    second.ends().await.ok();
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn an_approval_given_elsewhere_goes_on_and_a_failing_apply_says_why(pool: PgPool) {
    let world = Served::new(pool).await;
    let tofu = initialized(&world, &world.acme.planner.token).await;
    let terminal = Terminal::start(&tofu, &["apply", "-no-color"]);
    let leased = world.lease().await;
    let run = leased.attempt.offer.run;
    world
        .report(&leased.attempt, &world.planned(b"plan", 1).await)
        .await;
    terminal.sees("Enter a value:").await;
    let approve = format!("{}/api/v2/runs/{run}/actions/apply", world.url);
    assert_eq!(
        send("POST", &approve, &world.acme.planner.token, "{}")
            .await
            .status,
        403
    );
    assert_eq!(
        send("POST", &approve, &world.acme.operator.token, "{}")
            .await
            .status,
        202
    );
    let applying = world.lease().await;
    world
        .log(&applying.attempt, 0, "Error: the cloud said no\n")
        .await;
    let end = ApplyEnd::Exited {
        exit_code: 1,
        interrupted: false,
        seen: None,
        errored_state: None,
        sandbox: serde_json::Value::Null,
    };
    world
        .report(&applying.attempt, &PhaseResult::Apply { end })
        .await;
    let ended = terminal.ends().await;
    assert!(
        ended.text.contains("approved using the UI or API"),
        "{}",
        ended.text
    );
    ended.failed_with("Error: the cloud said no");
    world.until(run, Status::Failed).await;
}
