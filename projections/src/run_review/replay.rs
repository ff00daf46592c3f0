//! The review of a run as of any of its events, made again from the log by the fold that made the
//! stored one, and held against it.

use serde_json::Value;
use sqlx::{PgConnection, PgPool};
use stackship_domain::ids::RunId;
use stackship_store::StoreError;
use stackship_store::log::{LoggedEvent, stream_read};

use super::RunReview;
use crate::{ProjectionError, Recorded};

/// How many events are read at once.
const PART_EVENTS_MAX: i64 = 500;

/// As of when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AsOf {
    /// The newest event.
    Newest,
    /// This event of the run.
    Sequence(i64),
    /// This position of the organization's audit.
    Position(i64),
}

/// A review that was made again.
#[derive(Debug, Clone)]
pub struct Replay {
    /// The review.
    pub review: RunReview,
    /// How it compares with the stored one, which knows the newest event only.
    pub comparison: Comparison,
}

/// How a replayed review compares with the stored one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Comparison {
    /// The review is as of an earlier event; nothing of that time is stored.
    Earlier,
    /// Every byte is the same.
    Same,
    /// No review is stored.
    NotStored,
    /// They differ.
    Differs(Difference),
}

/// The first place in which two documents differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The field, as a JSON pointer.
    pub field: String,
    /// What the log says; nothing when the field is stored only.
    pub replayed: Option<Value>,
    /// What is stored; nothing when the field is missing there.
    pub stored: Option<Value>,
}

/// Makes the review of a run again; `None` when no event of it was there by then.
pub async fn replay(
    pool: &PgPool,
    run: RunId,
    as_of: AsOf,
) -> Result<Option<Replay>, ProjectionError> {
    let mut connection = pool.acquire().await?;
    // First what is stored: the log may go on meanwhile, and is then followed no further than this.
    let stored = stored(&mut connection, run).await?;
    let newest = stored.as_ref().map_or(i64::MAX, |(newest, _)| *newest);
    let until = match as_of {
        AsOf::Newest => newest,
        AsOf::Sequence(sequence) => sequence,
        AsOf::Position(position) => sequence_at(&mut connection, run, position).await?,
    };
    let Some(review) = fold(&mut connection, run, until).await? else {
        return Ok(None);
    };
    let comparison = match stored {
        None => Comparison::NotStored,
        Some((newest, doc)) if review.last_sequence == newest || as_of == AsOf::Newest => {
            let replayed = serde_json::to_value(&review).map_err(StoreError::from)?;
            compare(&replayed, &doc)
        }
        Some(_) => Comparison::Earlier,
    };
    Ok(Some(Replay { review, comparison }))
}

async fn stored(
    connection: &mut PgConnection,
    run: RunId,
) -> Result<Option<(i64, Value)>, ProjectionError> {
    let row = sqlx::query_as("select last_sequence, doc from view.run_review where run_id = $1")
        .bind(run.to_string())
        .fetch_optional(connection)
        .await?;
    Ok(row)
}

async fn sequence_at(
    connection: &mut PgConnection,
    run: RunId,
    position: i64,
) -> Result<i64, ProjectionError> {
    let sequence: Option<i64> = sqlx::query_scalar(
        "select max(sequence) from view.audit_entries \
         where aggregate_type = 'run' and aggregate_id = $1 and number <= $2",
    )
    .bind(run.to_string())
    .bind(position)
    .fetch_one(connection)
    .await?;
    Ok(sequence.unwrap_or(0))
}

async fn fold(
    connection: &mut PgConnection,
    run: RunId,
    until: i64,
) -> Result<Option<RunReview>, ProjectionError> {
    let (id, mut review, mut newest) = (run.to_string(), None, 0);
    while newest < until {
        let limit = PART_EVENTS_MAX.min(until - newest);
        let events = stream_read(connection, ("run", &id), newest, limit).await?;
        if events.is_empty() {
            break;
        }
        for event in &events {
            review = Some(take(run, review, newest, event)?);
            newest = event.sequence;
        }
    }
    Ok(review)
}

fn take(
    run: RunId,
    review: Option<RunReview>,
    newest: i64,
    event: &LoggedEvent,
) -> Result<RunReview, ProjectionError> {
    let expected = newest + 1;
    if event.sequence != expected {
        return Err(ProjectionError::Gap {
            aggregate: run.to_string(),
            expected,
            found: event.sequence,
        });
    }
    let recorded = Recorded::read(event)?;
    match review {
        Some(mut review) => {
            review.take(&recorded);
            Ok(review)
        }
        None => RunReview::begin(run, &recorded).ok_or_else(|| ProjectionError::NotCreated {
            aggregate: run.to_string(),
        }),
    }
}

fn compare(replayed: &Value, stored: &Value) -> Comparison {
    // Printed, because equal values of different types of number are different bytes.
    let printed = |document: &Value| document.to_string();
    if printed(replayed) == printed(stored) {
        return Comparison::Same;
    }
    Comparison::Differs(difference(String::new(), Some(replayed), Some(stored)))
}

/// The first place, in the order of the names, in which two different values differ.
fn difference(field: String, replayed: Option<&Value>, stored: Option<&Value>) -> Difference {
    let inner = match (replayed, stored) {
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            let mut names: Vec<_> = left.keys().chain(right.keys()).collect();
            names.sort_unstable();
            let differs = |name: &&&String| left.get(**name) != right.get(**name);
            names
                .iter()
                .find(differs)
                .map(|name| ((*name).clone(), left.get(*name), right.get(*name)))
        }
        (Some(Value::Array(left)), Some(Value::Array(right))) => {
            let differs = |index: &usize| left.get(*index) != right.get(*index);
            let index = (0..left.len().max(right.len())).find(differs);
            index.map(|index| (index.to_string(), left.get(index), right.get(index)))
        }
        _ => None,
    };
    match inner {
        Some((name, left, right)) => difference(format!("{field}/{name}"), left, right),
        None => Difference {
            field,
            replayed: replayed.cloned(),
            stored: stored.cloned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(replayed: &Value, stored: &Value) -> String {
        match compare(replayed, stored) {
            Comparison::Differs(difference) => difference.field,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_first_difference_is_named() {
        let base = json!({"a": {"b": [1, {"c": null}]}, "z": 1});
        assert_eq!(compare(&base, &base.clone()), Comparison::Same);
        for (pointer, value) in [
            ("/a/b/1/c", json!(0)),
            ("/a/b/1", json!({})),
            ("/z", json!(2)),
            ("/z", json!(1.0)),
        ] {
            let mut other = base.clone();
            *other.pointer_mut(pointer).unwrap() = value;
            let field = found(&base, &other);
            assert!(field.starts_with(pointer), "{pointer}: {field}");
        }
        assert_eq!(found(&base, &json!({"a": base["a"]})), "/z");
        assert_eq!(found(&base, &json!({"a": base["a"], "y": 0, "z": 1})), "/y");
    }
}
