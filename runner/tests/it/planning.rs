//! Plans: what they report, and what they put into the log.

use stackship_domain::run::{Counts, TerminalReason};
use stackship_domain::variable::{InputVariable, VariableCategory};
use stackship_runner_protocol::{PhaseResult, PlanEnd};

use crate::support::{Pinned, World, snapshot, text_variable};

/// What a plan reports when it failed.
pub fn failure(result: &PhaseResult) -> (TerminalReason, &str) {
    match result {
        PhaseResult::Plan {
            end: PlanEnd::Failed { reason, detail },
        } => (*reason, detail),
        other => panic!("not a failed plan: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_plan_says_why_in_its_log() {
    let world = World::start().await;
    let run = Pinned::of(&[(
        "main.tf",
        "resource \"terraform_data\" \"a\" {\n  input = local.absent\n}\n",
    )]);
    run.pin(&world.control_plane);
    let result = world.execute(run.plan.clone()).await;
    let (reason, detail) = failure(&result);
    assert_eq!(reason, TerminalReason::PlanFailed);
    assert!(detail.contains("exit code 1"), "{detail}");
    assert!(
        world.control_plane.log().contains("undeclared local value"),
        "{}",
        world.control_plane.log()
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pinned_values_win_over_files_of_the_configuration_and_arrive_exactly() {
    let world = World::start().await;
    let odd = "quote \" slash \\ ${not.a.reference} %{ no } line\nend é";
    let variables = vec![
        text_variable("text", odd, VariableCategory::Terraform, false),
        InputVariable {
            hcl: true,
            ..text_variable("list", "[\"a\", \"b\"]", VariableCategory::Terraform, false)
        },
        text_variable(
            "TF_VAR_from_environment",
            "yes",
            VariableCategory::Env,
            false,
        ),
        text_variable(
            "undeclared",
            "is only warned about",
            VariableCategory::Terraform,
            false,
        ),
    ];
    let files = [
        (
            "main.tf",
            "variable \"text\" {}\nvariable \"list\" {}\nvariable \"from_environment\" {}\n\
             output \"all\" {\n  value = { text = var.text, list = var.list, env = var.from_environment }\n}\n",
        ),
        ("terraform.tfvars", "text = \"from a file\"\n"),
        (
            "zz.auto.tfvars",
            "text = \"from a later file\"\nlist = []\n",
        ),
    ];
    let run = Pinned::with(&files, snapshot(variables));
    run.pin(&world.control_plane);
    let result = world.execute(run.plan.clone()).await;
    let PhaseResult::Plan {
        end:
            PlanEnd::Planned {
                exit_code,
                json,
                plan_json,
                sandbox,
                ..
            },
    } = &result
    else {
        panic!("{result:?}\n{}", world.control_plane.log());
    };
    assert_eq!(sandbox["protocol"], "runner/v1");
    assert_eq!(
        (*exit_code, json.counts),
        (
            2,
            Counts {
                output: 1,
                ..Counts::default()
            }
        ),
        "only outputs change"
    );
    let document: serde_json::Value =
        serde_json::from_slice(&world.control_plane.object(plan_json.object)).unwrap();
    let expected = serde_json::json!({ "text": odd, "list": ["a", "b"], "env": "yes" });
    assert_eq!(document["output_changes"]["all"]["after"], expected);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_do_not_reach_the_log_in_any_usual_form() {
    let world = World::start().await;
    let secret = "s3cret\"value+of/length";
    let variables = vec![
        text_variable("password", secret, VariableCategory::Terraform, true),
        text_variable(
            "TF_VAR_key",
            "environment-credential",
            VariableCategory::Env,
            false,
        ),
    ];
    let files = [(
        "main.tf",
        "variable \"password\" { sensitive = true }\nvariable \"key\" {}\n\
         output \"plain\" { value = nonsensitive(var.password) }\n\
         output \"coded\" { value = base64encode(nonsensitive(var.password)) }\n\
         output \"url\" { value = urlencode(nonsensitive(var.password)) }\n\
         output \"key\" { value = \"<${var.key}>\" }\n",
    )];
    let run = Pinned::with(&files, snapshot(variables));
    run.pin(&world.control_plane);
    let result = world.execute(run.plan.clone()).await;
    assert!(
        matches!(
            &result,
            PhaseResult::Plan {
                end: PlanEnd::Planned { .. }
            }
        ),
        "{result:?}"
    );
    let log = world.control_plane.log();
    assert!(log.contains("<***>") && log.contains("+ plain"), "{log}");
    for form in ["s3cret", "czNjcmV0", "environment-credential"] {
        assert!(!log.contains(form), "{form} is in the log:\n{log}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_working_directory_must_hold_a_configuration() {
    let world = World::start().await;
    let files = [
        ("envs/prod/main.tf", "output \"a\" { value = 1 }\n"),
        ("docs/readme.md", "no configuration"),
    ];
    for (directory, expected) in [
        ("envs/prod", None),
        (
            "docs",
            Some("The working directory holds no configuration."),
        ),
        (
            "absent",
            Some("The working directory is not in the configuration."),
        ),
        (
            "../tmp",
            Some("The working directory leads out of the configuration."),
        ),
    ] {
        let mut pinned = snapshot(Vec::new());
        pinned.working_directory = directory.to_owned();
        let run = Pinned::with(&files, pinned);
        run.pin(&world.control_plane);
        let result = world.execute(run.plan.clone()).await;
        match expected {
            None => assert!(
                matches!(
                    &result,
                    PhaseResult::Plan {
                        end: PlanEnd::Planned { .. }
                    }
                ),
                "{result:?}"
            ),
            Some(detail) => assert_eq!(failure(&result), (TerminalReason::PlanRefused, detail)),
        }
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_is_nowhere_to_be_had_is_named() {
    let world = World::start().await;
    let mut run = Pinned::of(&[("main.tf", "")]);
    run.plan.tofu_version = "1.12.5".parse().unwrap();
    run.pin(&world.control_plane);
    let result = world.execute(run.plan.clone()).await;
    let (reason, detail) = failure(&result);
    assert_eq!(reason, TerminalReason::SandboxUnavailable);
    assert!(
        detail.starts_with("OpenTofu 1.12.5 is not in the runner's mirror"),
        "{detail}"
    );
    world.stop().await;
}
