//! What may come after what: the states of a run are a chain in one lineage, each announced when the one
//! before is here, and not without end.
//!
//! Code that an apply executes reaches the gateway like OpenTofu itself. It cannot be told apart, but what
//! OpenTofu never does is refused: another lineage, a leap of the serial, an older announcement that
//! arrives late, states without end.

use stackship_domain::ids::StateVersionId;

use super::row::{Author, StateVersionRow};
use super::{current, newest_staged};
use crate::attempts::RunPrincipal;
use crate::{Store, StoreError};

/// By how much a serial may be higher than the one before. OpenTofu raises it by one for each state that
/// it writes, also for those that do not arrive; a leap would use up the serials of a workspace.
pub const SERIAL_STEP_MAX: i64 = 10_000;
/// The most states that one run announces: one every few seconds, for hours.
pub const STATES_OF_RUN_MAX: i64 = 5_000;
/// The most bytes of all states of one run together, with what belongs to them.
pub const STATE_BYTES_OF_RUN_MAX: i64 = 8 * 1024 * 1024 * 1024;

/// What a state says of itself before it is here.
#[derive(Debug, Clone, Copy)]
pub struct Announced<'a> {
    /// Its serial.
    pub serial: i64,
    /// Its lineage.
    pub lineage: &'a str,
    /// MD5 of its bytes, in hexadecimal digits.
    pub md5: &'a str,
}

/// Why a state cannot be the next one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSuccessor {
    /// It belongs to another chain.
    #[error("The state has another lineage than {before}, which it must follow.")]
    OtherLineage {
        /// The state before.
        before: StateVersionId,
    },
    /// The state before is as new.
    #[error("The state has serial {serial}, but {before} has {newest} already.")]
    NotHigher {
        /// Its serial.
        serial: i64,
        /// The state before.
        before: StateVersionId,
        /// That one's serial.
        newest: i64,
    },
    /// It would use up serials.
    #[error("The state has serial {serial}; here it is at most {highest}.")]
    TooHigh {
        /// Its serial.
        serial: i64,
        /// The highest one that could be taken.
        highest: i64,
    },
}

/// Whether the announced state follows the one that the run reads back.
pub async fn follows(
    store: &Store,
    run: RunPrincipal,
    announced: Announced<'_>,
) -> Result<Result<(), NoSuccessor>, StoreError> {
    let before = match newest_staged(store, run.organization, run.run).await? {
        Some(row) => Some(row),
        None => current(store, run.organization, run.workspace).await?,
    };
    Ok(is_successor(before.as_ref(), run, announced))
}

fn is_successor(
    before: Option<&StateVersionRow>,
    run: RunPrincipal,
    announced: Announced<'_>,
) -> Result<(), NoSuccessor> {
    let serial = announced.serial;
    if let Some(before) = before {
        if announced.lineage != before.lineage {
            return Err(NoSuccessor::OtherLineage { before: before.id });
        }
        let has_md5 = |md5: &String| md5.eq_ignore_ascii_case(announced.md5);
        let is_same = before.author == Author::Run(run.run)
            && before.serial == serial
            && before.md5.as_ref().is_some_and(has_md5);
        if !is_same && serial <= before.serial {
            return Err(NoSuccessor::NotHigher {
                serial,
                before: before.id,
                newest: before.serial,
            });
        }
    }
    let highest = before
        .map_or(0, |before| before.serial)
        .saturating_add(SERIAL_STEP_MAX);
    if serial > highest {
        return Err(NoSuccessor::TooHigh { serial, highest });
    }
    Ok(())
}

/// Whether the run may bring more: another state, or more bytes of one.
pub async fn has_room(store: &Store, run: RunPrincipal) -> Result<bool, StoreError> {
    let (states, bytes): (i64, i64) = sqlx::query_as(
        "select count(*), coalesce(sum(coalesce(state.bytes, 0) + coalesce(json.bytes, 0) + coalesce(outputs.bytes, 0)), 0)::bigint \
         from record.state_versions as version \
         left join record.objects as state on state.object_id = version.object_id \
         left join record.objects as json on json.object_id = version.json_object_id \
         left join record.objects as outputs on outputs.object_id = version.outputs_object_id \
         where version.organization_id = $1 and version.run_id = $2",
    )
    .bind(run.organization.to_string())
    .bind(run.run.to_string())
    .fetch_one(&store.pool)
    .await?;
    Ok(states < STATES_OF_RUN_MAX && bytes < STATE_BYTES_OF_RUN_MAX)
}

#[cfg(test)]
mod tests {
    use stackship_domain::run::Phase;
    use stackship_domain::run::samples::{at, fence, id};

    use super::super::row::StateStatus;
    use super::*;

    const MD5: &str = "00112233445566778899aabbccddeeff";

    fn run() -> RunPrincipal {
        RunPrincipal {
            organization: id(1),
            workspace: id(2),
            run: id(3),
            phase: Phase::Apply,
            attempt: id(4),
            fence: Some(fence()),
        }
    }

    fn before(author: Author, serial: i64) -> StateVersionRow {
        StateVersionRow {
            id: id(9),
            organization: id(1),
            workspace: id(2),
            author,
            fence: fence(),
            serial,
            lineage: "chain".to_owned(),
            md5: Some(MD5.to_owned()),
            status: StateStatus::Staged,
            object: None,
            sha256: None,
            bytes: None,
            created_at: at(0),
            published_at: None,
            outputs_object: None,
        }
    }

    fn after(before: Option<&StateVersionRow>, serial: i64) -> Result<(), NoSuccessor> {
        let announced = Announced {
            serial,
            lineage: "chain",
            md5: MD5,
        };
        is_successor(before, run(), announced)
    }

    #[test]
    fn a_serial_rises_and_never_leaps() {
        let five = before(Author::Run(id(8)), 5);
        let not_higher = |serial| NoSuccessor::NotHigher {
            serial,
            before: five.id,
            newest: 5,
        };
        let highest = 5 + SERIAL_STEP_MAX;
        for (serial, expected) in [
            (4, Err(not_higher(4))),
            (5, Err(not_higher(5))),
            (6, Ok(())),
            (highest, Ok(())),
            (
                highest + 1,
                Err(NoSuccessor::TooHigh {
                    serial: highest + 1,
                    highest,
                }),
            ),
            (
                i64::MAX,
                Err(NoSuccessor::TooHigh {
                    serial: i64::MAX,
                    highest,
                }),
            ),
        ] {
            assert_eq!(after(Some(&five), serial), expected, "{serial}");
        }
        assert_eq!(after(None, 1), Ok(()));
        assert!(after(None, SERIAL_STEP_MAX + 1).is_err());
    }

    #[test]
    fn a_run_may_announce_the_same_state_again() {
        assert_eq!(after(Some(&before(Author::Run(id(3)), 5)), 5), Ok(()));
    }

    #[test]
    fn another_lineage_follows_nothing() {
        let five = before(Author::Run(id(3)), 5);
        let announced = Announced {
            serial: 6,
            lineage: "another",
            md5: MD5,
        };
        let refused = Err(NoSuccessor::OtherLineage { before: five.id });
        assert_eq!(is_successor(Some(&five), run(), announced), refused);
    }
}
