//! Folds a batch into the read models.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::str::FromStr;

use serde::de::DeserializeOwned;
use sqlx::PgConnection;
use stackship_domain::ids::{OrganizationId, RunId, WorkspaceId};
use stackship_domain::{run, workspace};
use stackship_store::log::LoggedEvent;

use crate::target::Target;
use crate::{
    ProjectionError, Recorded, RunReview, WorkspaceStatus, audit, run_inventory, run_review,
    workspace_status,
};

/// Writes what these events, none of them applied before, make of the read models.
pub(super) async fn apply(
    connection: &mut PgConnection,
    target: Target,
    events: &[&LoggedEvent],
) -> Result<(), ProjectionError> {
    if events.is_empty() {
        return Ok(());
    }
    apply_runs(connection, target, events).await?;
    apply_workspaces(connection, target, events).await?;
    audit::append(connection, target, events).await
}

async fn apply_runs(
    connection: &mut PgConnection,
    target: Target,
    events: &[&LoggedEvent],
) -> Result<(), ProjectionError> {
    let streams: Streams<RunId, run::Event> = streams("run", events)?;
    if streams.is_empty() {
        return Ok(());
    }
    let mut reviews = run_review::load(connection, target, streams.keys()).await?;
    for (run, stream) in streams {
        for recorded in stream.events {
            match reviews.entry(run) {
                Entry::Occupied(mut review) => review.get_mut().take(&recorded),
                Entry::Vacant(place) => {
                    let review = RunReview::begin(run, &recorded);
                    place.insert(review.ok_or_else(|| ProjectionError::NotCreated {
                        aggregate: run.to_string(),
                    })?);
                }
            }
        }
    }
    run_review::upsert(connection, target, &reviews).await?;
    run_inventory::upsert(connection, target, &reviews).await
}

async fn apply_workspaces(
    connection: &mut PgConnection,
    target: Target,
    events: &[&LoggedEvent],
) -> Result<(), ProjectionError> {
    let streams: Streams<WorkspaceId, workspace::Event> = streams("workspace", events)?;
    if streams.is_empty() {
        return Ok(());
    }
    let mut statuses = workspace_status::load(connection, target, streams.keys()).await?;
    for (workspace, stream) in streams {
        let status = statuses
            .entry(workspace)
            .or_insert_with(|| WorkspaceStatus::new(workspace, stream.organization));
        for recorded in &stream.events {
            status.take(recorded);
        }
    }
    workspace_status::upsert(connection, target, &statuses).await
}

/// The events of one aggregate in a batch, in their order.
struct Stream<E> {
    organization: OrganizationId,
    events: Vec<Recorded<E>>,
}

type Streams<I, E> = BTreeMap<I, Stream<E>>;

/// The events of one kind of aggregate, by aggregate.
fn streams<I, E>(kind: &str, events: &[&LoggedEvent]) -> Result<Streams<I, E>, ProjectionError>
where
    I: FromStr + Ord,
    E: DeserializeOwned,
{
    let mut streams = Streams::new();
    for event in events.iter().filter(|event| event.aggregate_type == kind) {
        let unreadable = || ProjectionError::Unreadable {
            aggregate: event.aggregate_id.clone(),
            sequence: event.sequence,
        };
        let id = event.aggregate_id.parse().map_err(|_| unreadable())?;
        let organization = event.organization_id.parse().map_err(|_| unreadable())?;
        streams
            .entry(id)
            .or_insert_with(|| Stream {
                organization,
                events: Vec::new(),
            })
            .events
            .push(Recorded::read(event)?);
    }
    Ok(streams)
}
