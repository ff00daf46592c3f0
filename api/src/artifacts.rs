//! Artifacts of a run on their way out: opened only when what is stored is what the run recorded, and
//! streamed frame by frame, each authenticated, in constant memory.
//!
//! Why one cannot be had, that it was never made, is gone, is another's, is too large or was tampered
//! with, is for our own log; from outside all of it looks the same.

use stackship_domain::Sha256Digest;
use stackship_domain::ids::ObjectId;
use stackship_store::StoreError;
use stackship_store::objects::{Descriptor, ObjectKind, ObjectReader};
use stackship_store::records::runs_record::RunRecord;

use crate::App;

/// An artifact as the run recorded it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recorded {
    /// Where its bytes are.
    pub(crate) object: ObjectId,
    /// What it is.
    pub(crate) kind: ObjectKind,
    /// SHA-256 of its bytes, where the run knows it.
    pub(crate) sha256: Option<Sha256Digest>,
    /// The most bytes that may be released.
    pub(crate) bytes_max: u64,
}

impl Recorded {
    /// In what a stored object is not the one that the run recorded.
    pub(crate) fn first_difference(
        &self,
        found: &Descriptor,
        run: &RunRecord,
    ) -> Option<&'static str> {
        [
            (found.workspace != Some(run.workspace), "workspace"),
            (found.kind != self.kind, "kind"),
            (
                self.sha256.is_some_and(|recorded| recorded != found.sha256),
                "sha256",
            ),
            (found.bytes > self.bytes_max, "bytes"),
        ]
        .into_iter()
        .find_map(|(differs, what)| differs.then_some(what))
    }
}

/// Opens an artifact of `run`; `None` when it cannot be had. Only a database that does not answer is an
/// error: that passes.
pub(crate) async fn open(
    app: &App,
    run: &RunRecord,
    recorded: Recorded,
) -> Result<Option<(Descriptor, ObjectReader)>, StoreError> {
    let (objects, id) = (&app.store.objects, recorded.object);
    let Some(found) = objects.describe(run.organization, id).await? else {
        tracing::error!(run.id = %run.id, object.id = %id, "An artifact that a run recorded is gone");
        return Ok(None);
    };
    if let Some(what) = recorded.first_difference(&found, run) {
        tracing::error!(run.id = %run.id, object.id = %id, what, "An artifact is not what its run recorded");
        return Ok(None);
    }
    match objects.reader(run.organization, id, recorded.kind).await {
        Ok(reader) if reader.bytes() == found.bytes && reader.sha256() == found.sha256 => {
            Ok(Some((found, reader)))
        }
        Ok(_) => {
            tracing::error!(run.id = %run.id, object.id = %id, "An artifact changed while it was opened");
            Ok(None)
        }
        Err(error @ StoreError::Unavailable(_)) => Err(error),
        Err(error) => {
            tracing::error!(run.id = %run.id, object.id = %id, error = %error, "An artifact cannot be opened");
            Ok(None)
        }
    }
}
