//! An `errored.tfstate`: what OpenTofu could not upload itself. While its apply is live it is staged
//! like every other state of the run, so that there is one kind of thing to adopt. Bytes that are no
//! state, or do not follow the newest one, stay only an artifact.

use futures::TryStreamExt as _;
use md5::{Digest as _, Md5};
use serde::{Deserialize, Serialize};
use stackship_domain::ids::ObjectId;
use stackship_store::StoreError;
use stackship_store::Violation;
use stackship_store::attempts::{AttemptRow, RunPrincipal};
use stackship_store::objects::ObjectKind;
use stackship_store::states::{
    self, Announced, Arrival, Identity, LINEAGE_BYTES_MAX, NewState, OUTPUTS_BYTES_MAX, PutError,
    Scanner, StateVersionRow,
};
use tokio_util::io::StreamReader;

use super::failure::Failure;
use crate::App;

/// The largest state whose outputs are read out of it, in bytes; only this much is held in memory. Of
/// a larger one the state is kept, and its outputs are known again after the next apply.
const OUTPUTS_STATE_BYTES_MAX: u64 = OUTPUTS_BYTES_MAX;

/// Stages the stored bytes, if they are a state that follows the run's newest one.
///
/// A database that does not answer is the runner's to try again. Whatever else goes wrong must not
/// cost the artifact: it is what is left of the apply.
pub(super) async fn stage(app: &App, row: &AttemptRow, object: ObjectId) -> Result<(), Failure> {
    let run = principal(row);
    match try_stage(app, run, object).await {
        Ok(Some(staged)) => {
            tracing::info!(run.id = %run.run, state.id = %staged.id, state.serial = staged.serial,
                "An errored.tfstate was staged");
            Ok(())
        }
        Ok(None) => {
            tracing::warn!(run.id = %run.run, object.id = %object,
                "An errored.tfstate is not staged; it is only kept");
            Ok(())
        }
        Err(PutError::Store(StoreError::Refused(Violation::StaleFence))) => Err(Failure::Lost),
        Err(PutError::Store(error @ StoreError::Unavailable(_))) => Err(error.into()),
        Err(error) => {
            tracing::error!(error = %error, run.id = %run.run, object.id = %object,
                "An errored.tfstate could not be staged; it is only kept");
            Ok(())
        }
    }
}

const fn principal(row: &AttemptRow) -> RunPrincipal {
    RunPrincipal {
        organization: row.offer.organization,
        workspace: row.offer.workspace,
        run: row.offer.run,
        phase: row.offer.phase,
        attempt: row.id,
        fence: row.offer.fence,
    }
}

async fn try_stage(
    app: &App,
    run: RunPrincipal,
    object: ObjectId,
) -> Result<Option<StateVersionRow>, PutError> {
    let Some(content) = look_at(app, run, object).await? else {
        return Ok(None);
    };
    let announced = Announced {
        serial: content.identity.serial,
        lineage: &content.identity.lineage,
        md5: &content.md5,
    };
    // Only a successor is staged: the newest staged state is the one that is adopted, and a foreign one
    // would hide it.
    if let Err(why) = states::follows(&app.store, run, announced).await? {
        tracing::warn!(run.id = %run.run, %why, "An errored.tfstate is no successor of the run's newest state");
        return Ok(None);
    }
    let new = NewState {
        principal: run,
        serial: content.identity.serial,
        lineage: content.identity.lineage,
        md5: content.md5,
        outputs: content.outputs,
    };
    let begun = states::begin(&app.store, new).await?;
    let stored = app
        .store
        .objects
        .reader(run.organization, object, ObjectKind::ErroredState)
        .await?;
    let bytes = StreamReader::new(stored.map_err(std::io::Error::other));
    // The reader authenticates what was looked at before: the same bytes or an error.
    let same = async |_: &StateVersionRow| Ok(());
    states::stage(
        &app.store,
        run,
        begun.id,
        (Arrival::LeftBehind, bytes),
        same,
    )
    .await
    .map(Some)
}

/// What the bytes say of themselves.
struct Content {
    identity: Identity,
    md5: String,
    outputs: Option<Vec<u8>>,
}

async fn look_at(
    app: &App,
    run: RunPrincipal,
    object: ObjectId,
) -> Result<Option<Content>, StoreError> {
    let mut reader = app
        .store
        .objects
        .reader(run.organization, object, ObjectKind::ErroredState)
        .await?;
    let keeps_bytes = reader.bytes() <= OUTPUTS_STATE_BYTES_MAX;
    let (mut md5, mut scanner, mut kept) = (Md5::new(), Scanner::default(), Vec::new());
    while let Some(frame) = reader.try_next().await? {
        md5.update(&frame);
        scanner.feed(&frame);
        if keeps_bytes {
            kept.extend_from_slice(&frame);
        }
    }
    let is_writable = |found: &Identity| {
        found.serial >= 1 && (1..=LINEAGE_BYTES_MAX).contains(&found.lineage.len())
    };
    Ok(scanner
        .finish()
        .filter(is_writable)
        .map(|identity| Content {
            identity,
            md5: hex::encode(md5.finalize()),
            outputs: outputs(&kept),
        }))
}

/// The outputs of a state file, in the form in which a client announces them; none of an encrypted one.
fn outputs(state: &[u8]) -> Option<Vec<u8>> {
    #[derive(Deserialize)]
    struct State {
        outputs: std::collections::BTreeMap<String, Output>,
    }

    #[derive(Deserialize, Serialize)]
    struct Output {
        #[serde(default)]
        sensitive: bool,
        #[serde(rename = "type")]
        constraint: serde_json::Value,
        value: serde_json::Value,
    }

    let state: State = serde_json::from_slice(state).ok()?;
    serde_json::to_vec(&state.outputs).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_read_out_of_a_state_file_and_of_nothing_else() {
        let state = br#"{"version":4,"serial":1,"outputs":{"b":{"value":"x","type":"string"},
            "a":{"value":[1],"type":["list","number"],"sensitive":true}},"resources":[]}"#;
        let found: serde_json::Value = serde_json::from_slice(&outputs(state).unwrap()).unwrap();
        let expected = serde_json::json!({
            "a": {"sensitive": true, "type": ["list", "number"], "value": [1]},
            "b": {"sensitive": false, "type": "string", "value": "x"},
        });
        assert_eq!(found, expected);
        for other in [
            br#"{"serial":1,"lineage":"x","encrypted_data":"e30="}"#.as_slice(),
            br#"{"outputs":{"a":1}}"#,
            b"",
        ] {
            assert_eq!(outputs(other), None);
        }
    }
}
