//! Writing a state in two steps: announced, then uploaded. What is wrong is said when it is announced;
//! of a refused upload the client shows only the status.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body as RawBody, HttpBody as _};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest as _, Md5};
use stackship_domain::ids::{AttemptId, StateVersionId};
use stackship_domain::run::Phase;
use stackship_store::attempts::RunPrincipal;
use stackship_store::clock;
use stackship_store::states::{
    self, Announced, Arrival, Identity, LINEAGE_BYTES_MAX, NewState, OUTPUTS_BYTES_MAX, PutError,
    STATE_BYTES_MAX, Scanner, StateStatus, StateVersionRow,
};
use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};

use super::writer::Writer;
use super::{resource, with_snapshots};
use crate::auth::Denied;
use crate::serving::{Account, AtHand};
use crate::signed_path::SignedPath;
use crate::v2::access::Signature;
use crate::v2::error::V2Error;
use crate::v2::uploads::reader;
use crate::v2::urls::{self, Base};
use crate::v2::wire::{Body, Document, Named, StateRequest, StateRequestAttributes, respond};
use crate::{App, reading};

/// The largest announcement: its outputs in base64, and some room.
pub const OUTPUTS_REQUEST_BYTES_MAX: usize = 24 * 1024 * 1024;
/// What the signature of an upload's address is for.
const RAW: &str = "v2-state";
/// The same for the external JSON form.
const JSON: &str = "v2-state-json";
/// How long an upload's address holds: the client tries for six minutes.
const UPLOAD_SECONDS: i64 = 60 * 60;
/// The title of refusals of an announcement.
const REFUSED: &str = "state refused";

/// `POST workspaces/{workspace}/state-versions`: the same announcement again finds the first.
pub async fn begin(
    State(app): State<App>,
    writer: Writer,
    Body(request): Body<StateRequest>,
) -> Result<Response, V2Error> {
    let run = writer.run;
    if Named::id(request.data.relationships.run.as_ref()) != Some(run.run.to_string().as_str()) {
        return Err(V2Error::forbidden(
            REFUSED,
            format!("Only {} may write state now.", run.run),
        ));
    }
    let announced = request.data.attributes;
    let outputs = check(&announced)?;
    may_follow(&app, run, &announced).await?;
    let new = NewState {
        principal: run,
        serial: announced.serial,
        lineage: announced.lineage,
        md5: announced.md5.to_ascii_lowercase(),
        outputs,
    };
    let row = states::begin(&app.store, new).await?;
    let mut resource = resource(&app, Base::Gateway, &row);
    resource.attributes.hosted_state_upload_url =
        Some(upload_url(&app, RAW, "states", run, row.id));
    resource.attributes.hosted_json_state_upload_url =
        Some(upload_url(&app, JSON, "json-states", run, row.id));
    let response = respond(StatusCode::CREATED, &Document::of(resource));
    Ok(with_snapshots(&app, &writer.caller, response))
}

/// The announcement by itself; gives back the outputs.
fn check(announced: &StateRequestAttributes) -> Result<Option<Vec<u8>>, V2Error> {
    let refused = |detail: &str| Err(V2Error::refused(REFUSED, detail));
    if announced.serial < 1 {
        return refused("The serial of a state that is written is at least 1.");
    }
    if announced.lineage.is_empty() || announced.lineage.len() > LINEAGE_BYTES_MAX {
        return refused("The lineage has 1 to 128 bytes.");
    }
    if announced.md5.len() != 32 || !announced.md5.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return refused("The MD5 has 32 hexadecimal digits.");
    }
    let Some(encoded) = &announced.json_state_outputs else {
        return Ok(None);
    };
    let outputs = STANDARD.decode(encoded).ok().filter(|outputs| {
        let is_document = serde_json::from_slice::<serde::de::IgnoredAny>(outputs).is_ok();
        is_document && outputs.len() as u64 <= OUTPUTS_BYTES_MAX
    });
    match outputs {
        Some(outputs) => Ok(Some(outputs)),
        None => refused("The outputs are a JSON document of at most 16 MiB in base64."),
    }
}

/// Whether the announced state may come next.
async fn may_follow(
    app: &App,
    run: RunPrincipal,
    announced: &StateRequestAttributes,
) -> Result<(), V2Error> {
    let next = Announced {
        serial: announced.serial,
        lineage: &announced.lineage,
        md5: &announced.md5,
    };
    states::follows(&app.store, run, next)
        .await?
        .map_err(|why| V2Error::conflict(REFUSED, why.to_string()))?;
    if states::has_room(&app.store, run).await? {
        Ok(())
    } else {
        Err(refusal(PutError::NoRoom))
    }
}

fn upload_url(
    app: &App,
    purpose: &'static str,
    kind: &str,
    run: RunPrincipal,
    id: StateVersionId,
) -> String {
    let path = SignedPath {
        purpose,
        organization: run.organization,
        subject: format!("{id} {}", run.attempt),
    };
    let token = app.signer.sign(&path, urls::in_seconds(UPLOAD_SECONDS));
    urls::api(app, Base::Gateway, &format!("uploads/{kind}/{token}"))
}

/// `PUT uploads/states/{token}`: the exact bytes of an announced state.
pub async fn put_raw(
    State(app): State<App>,
    Signature(token): Signature,
    at_hand: AtHand,
    body: RawBody,
) -> Result<StatusCode, V2Error> {
    let (run, row) = announced(&app, RAW, &token, &at_hand).await?;
    if body.size_hint().lower() > STATE_BYTES_MAX {
        return Err(reading::too_large(STATE_BYTES_MAX).into());
    }
    let seen = Arc::new(Mutex::new(Seen::default()));
    let tee = Tee {
        source: reader(body),
        seen: Arc::clone(&seen),
    };
    if row.status != StateStatus::Pending {
        // Repeated after a lost answer: only looked at.
        let mut repeated = tee.take(STATE_BYTES_MAX);
        let read = tokio::io::copy(&mut repeated, &mut tokio::io::sink()).await;
        read.map_err(|error| reading::unread(&error))?;
        is_announced(&seen, &row).map_err(refusal)?;
        return Ok(StatusCode::OK);
    }
    let check = async move |row: &StateVersionRow| is_announced(&seen, row);
    states::stage(&app.store, run, row.id, (Arrival::Uploaded, tee), check)
        .await
        .map_err(refusal)?;
    Ok(StatusCode::OK)
}

/// `PUT uploads/json-states/{token}`: the external form of a state. Refusing it would make the client
/// call the whole state lost, although its bytes are here.
pub async fn put_json(
    State(app): State<App>,
    Signature(token): Signature,
    at_hand: AtHand,
    body: RawBody,
) -> Result<StatusCode, V2Error> {
    let (run, row) = announced(&app, JSON, &token, &at_hand).await?;
    let mut body = reader(body);
    if let Err(error) = states::keep_json(&app.store, run, row.id, &mut body).await {
        tracing::warn!(error = %error, run.id = %run.run, "The JSON form of a state was not kept");
    }
    // Whatever was not kept is read all the same: a client that cannot send on sees a failure.
    let read = tokio::io::copy(&mut body.take(STATE_BYTES_MAX), &mut tokio::io::sink()).await;
    read.map_err(|error| reading::unread(&error))?;
    Ok(StatusCode::OK)
}

/// The state that an upload's address names. That its apply is still live is asked by the database.
async fn announced(
    app: &App,
    purpose: &'static str,
    token: &str,
    at_hand: &AtHand,
) -> Result<(RunPrincipal, StateVersionRow), V2Error> {
    let hidden = || V2Error::not_found("upload");
    let path = app
        .signer
        .open(purpose, token, clock::now())
        .ok_or_else(hidden)?;
    let (state, attempt) = path.subject.split_once(' ').ok_or_else(hidden)?;
    let state: StateVersionId = state.parse().map_err(|_| hidden())?;
    let attempt: AttemptId = attempt.parse().map_err(|_| hidden())?;
    let row = states::by_id(&app.store, path.organization, state)
        .await?
        .ok_or_else(hidden)?;
    let run = RunPrincipal {
        organization: row.organization,
        workspace: row.workspace,
        run: row.author.run().ok_or_else(hidden)?,
        phase: Phase::Apply,
        attempt,
        fence: Some(row.fence),
    };
    let account = Account::Run(run.organization, run.run);
    at_hand.is_of(account).map_err(Denied::from)?;
    Ok((run, row))
}

fn refusal(error: PutError) -> V2Error {
    match error {
        PutError::NotFound => V2Error::not_found("upload"),
        PutError::Md5Mismatch | PutError::IdentityMismatch => {
            V2Error::conflict(REFUSED, format!("Not the announced state: {error}."))
        }
        PutError::Superseded | PutError::NoRoom => {
            V2Error::conflict(REFUSED, format!("The state was not taken: {error}."))
        }
        PutError::Store(error) => error.into(),
    }
}

/// What has passed by of a state.
#[derive(Default)]
struct Seen {
    md5: Md5,
    scanner: Scanner,
}

/// Looks at bytes that pass by on their way to storage.
struct Tee<R> {
    source: R,
    seen: Arc<Mutex<Seen>>,
}

impl<R: AsyncRead + Unpin> AsyncRead for Tee<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let polled = Pin::new(&mut this.source).poll_read(context, buffer);
        let fresh = buffer.filled().get(before..).unwrap_or_default();
        let mut seen = this.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.md5.update(fresh);
        seen.scanner.feed(fresh);
        polled
    }
}

fn is_announced(seen: &Mutex<Seen>, row: &StateVersionRow) -> Result<(), PutError> {
    let seen = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
    if row.md5 != Some(hex::encode(seen.md5.finalize())) {
        return Err(PutError::Md5Mismatch);
    }
    let announced = Identity {
        serial: row.serial,
        lineage: row.lineage.clone(),
    };
    if seen.scanner.finish() == Some(announced) {
        Ok(())
    } else {
        Err(PutError::IdentityMismatch)
    }
}
