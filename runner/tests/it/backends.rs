//! A run's state goes through its workspace, whatever the configuration says, or the run ends before
//! it plans.

use stackship_domain::run::{Counts, TerminalReason};

use crate::applying::planned;
use crate::planning::failure;
use crate::support::{Pinned, World};

const ONE: &str = "resource \"terraform_data\" \"a\" {}\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_later_override_of_the_backend_is_refused_before_the_plan() {
    let world = World::start().await;
    let elsewhere = "terraform {\n  cloud {\n    hostname = \"stackship.test\"\n    organization = \"acme\"\n    \
                     workspaces { name = \"other\" }\n  }\n}\n";
    for (name, text, expected) in [
        (
            "zzz_override.tf",
            "terraform {\n  backend \"local\" {}\n}\n",
            Some("`local`"),
        ),
        (
            "zzz_override.tofu",
            "terraform {\n  backend \"local\" {\n    path = \"/tmp/x\"\n  }\n}\n",
            Some("`local`"),
        ),
        // Another workspace is not opened by the run's token, so `init` itself fails.
        ("zzz_override.tf", elsewhere, None),
    ] {
        let run = Pinned::of(&[("main.tf", ONE), (name, text)]);
        run.pin(&world.control_plane);
        let result = world.execute(run.plan.clone()).await;
        let (reason, detail) = failure(&result);
        match expected {
            Some(text) => {
                assert_eq!(reason, TerminalReason::PlanRefused, "{detail}");
                assert!(detail.contains(text), "{detail}");
            }
            None => assert_eq!(reason, TerminalReason::PlanFailed, "{detail}"),
        }
        assert!(
            !world.control_plane.log().contains("Plan:"),
            "{}",
            world.control_plane.log()
        );
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configurations_own_backend_and_left_over_state_are_set_aside() {
    let world = World::start().await;
    let run = Pinned::of(&[
        (
            "main.tf",
            &format!("terraform {{\n  backend \"s3\" {{\n    bucket = \"b\"\n  }}\n}}\n{ONE}"),
        ),
        (
            "terraform.tfstate",
            "{\"version\":4,\"serial\":9,\"lineage\":\"x\",\"outputs\":{},\"resources\":[]}",
        ),
        (
            ".terraform/terraform.tfstate",
            "{\"version\":3,\"backend\":{\"type\":\"local\",\"config\":{}}}",
        ),
        ("errored.tfstate", "{}"),
        ("old.tfplan", "x"),
    ]);
    run.pin(&world.control_plane);
    let result = world.execute(run.plan.clone()).await;
    let expected = Counts {
        create: 1,
        ..Counts::default()
    };
    assert_eq!(planned(&result, &world.control_plane), (2, expected));
    world.stop().await;
}
