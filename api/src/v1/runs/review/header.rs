//! What the run is: its title, where it came from, how long it takes (S-REV-1).

use serde::Serialize;
use stackship_domain::Timestamp;
use stackship_domain::ids::{ProjectId, RunId, WorkspaceId};
use stackship_domain::run::{RunKind, SourceKind, Status};
use stackship_projections::RunReview;
use stackship_store::records::workspaces::Workspace;
use utoipa::ToSchema;

use super::known::Known;
use super::people::{Names, Person};
use super::stages::milliseconds;
use crate::v1::schema;

/// What the run is.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Header {
    /// Its id.
    #[schema(value_type = String)]
    run: RunId,
    /// Its own message.
    title: String,
    /// Where it stands.
    #[schema(schema_with = schema::status)]
    status: Status,
    /// What it may become.
    #[schema(schema_with = schema::run_kind)]
    kind: RunKind,
    /// Its workspace.
    workspace: WorkspaceLink,
    /// Where it came from.
    source: SourceFacts,
    /// Directory below the configuration's root in which OpenTofu runs; empty for the root itself.
    working_directory: String,
    /// Keys of sensitive variables that a speculative run goes without.
    withheld_variables: Vec<String>,
    /// Who created it.
    created_by: Person,
    /// When it was created.
    #[schema(schema_with = schema::time)]
    created_at: Timestamp,
    /// When it ended; null before.
    #[schema(value_type = Option<String>, format = DateTime)]
    ended_at: Option<Timestamp>,
    /// From its creation to its end; null before the end, when it is still counted from `created_at`.
    duration_ms: Option<u64>,
}

/// Where the run belongs.
#[derive(Debug, Serialize, ToSchema)]
struct WorkspaceLink {
    /// Its id.
    #[schema(value_type = String)]
    id: WorkspaceId,
    /// Its name now.
    name: String,
    /// The project of the workspace when the run was created.
    #[schema(value_type = String)]
    project: ProjectId,
}

/// Where the run came from, as far as its source knows.
#[derive(Debug, Serialize, ToSchema)]
struct SourceFacts {
    /// The edge.
    #[schema(schema_with = schema::source_kind)]
    kind: SourceKind,
    /// The Git commit message.
    commit_message: Known<String>,
    /// The commit.
    commit_sha: Known<String>,
    /// A link to the commit.
    commit_url: Known<String>,
    /// Who wrote the commit.
    commit_author: Known<String>,
    /// Branch or pull-request ref.
    git_ref: Known<String>,
}

impl Header {
    pub(super) fn of(review: &RunReview, workspace: &Workspace, names: &Names) -> Self {
        let (facts, source) = (&review.facts, review.facts.source.clone());
        let ended_at = review.ended.as_ref().map(|end| end.at);
        Self {
            run: review.run,
            title: facts.message.clone(),
            status: review.status,
            kind: facts.kind,
            workspace: WorkspaceLink {
                id: facts.workspace,
                name: workspace.name.to_string(),
                project: facts.project,
            },
            source: SourceFacts {
                kind: source.kind,
                commit_message: source.commit_message.into(),
                commit_sha: source.commit_sha.into(),
                commit_url: source.commit_url.into(),
                commit_author: source.commit_author.into(),
                git_ref: source.git_ref.into(),
            },
            working_directory: facts.working_directory.clone(),
            withheld_variables: facts.withheld_variables.clone(),
            created_by: names.person(facts.created_by),
            created_at: facts.created_at,
            ended_at,
            duration_ms: ended_at.map(|ended| milliseconds(facts.created_at, ended)),
        }
    }
}
