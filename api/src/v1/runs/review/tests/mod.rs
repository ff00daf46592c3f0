//! Given what happened to a run, then this review of it. The stories are told by the run's own rules,
//! so none of them is one that cannot happen.

mod actions;
mod documents;
mod stories;
mod story;

use std::collections::HashMap;

use stackship_domain::ids::UserId;
use stackship_domain::run::samples::{self, at, id};
use stackship_domain::{Actor, Role};
use stackship_projections::RunReview;
use stackship_store::records::runners::Presence;
use stackship_store::records::workspaces::Workspace;

use super::actions::Ends;
use super::known::Known;
use super::people::Names;
use super::stored::{Artifacts, Bytes, Stored};
use super::{Found, ReviewDocument, document};
use crate::auth::Viewer;

/// Who looks: somebody else than who decides in the stories.
fn viewer(role: Role) -> Viewer {
    Viewer::new(Actor::User(id::<UserId>(70)), Some(role))
}

fn workspace() -> Workspace {
    let facts = samples::facts();
    Workspace {
        id: facts.workspace,
        organization: facts.organization,
        project: facts.project,
        name: "production-network".parse().unwrap(),
        tofu_version: facts.pins.tofu_version,
        working_directory: String::new(),
        region: "local".to_owned(),
        platform: "linux_amd64".to_owned(),
        approval_seconds: 3600,
        current_state_version: None,
        created_at: at(0),
        updated_at: at(0),
    }
}

/// What is stored of a run that recorded everything it could.
fn stored(review: &RunReview) -> Stored {
    let of_plan = |bytes| review.plan.record.as_ref().map(|_| Bytes(bytes)).into();
    let published: Known<_> = super::stages::published(review).into();
    Stored {
        workspace: None,
        runners: Presence::There,
        policy: Known::NotRecorded,
        attempts: Vec::new(),
        log_tail: Known::NotRecorded,
        artifacts: Artifacts {
            plan_changes: of_plan(30),
            plan_json: of_plan(20),
            raw_plan: of_plan(10),
            emergency_state: review.apply.emergency.as_ref().map(|_| Bytes(5)).into(),
            state: published.as_ref().map(|_| Bytes(6)),
        },
        published,
    }
}

fn document_for(role: Role, review: &RunReview, stored: Stored) -> ReviewDocument {
    let run = review.run_state().unwrap();
    let Actor::User(reviewer) = samples::reviewer() else {
        panic!("the reviewer of the samples is a user");
    };
    let found = Found {
        viewer: viewer(role),
        now: at(60),
        names: Names::new(HashMap::from([(reviewer, "Ines Duarte".to_owned())])),
        stored,
        doubted: None,
    };
    document(review, &run, &workspace(), found)
}

const BOTH_ENDS: Ends = Ends {
    adopt: true,
    no_change: true,
};
