//! Looking again at an object that something rests on.

use futures::TryStreamExt as _;
use stackship_domain::Sha256Digest;
use stackship_domain::ids::{ObjectId, OrganizationId};

use super::{ObjectError, ObjectKind, Objects};
use crate::StoreError;

impl Objects {
    /// Reads an object to its end and says what its bytes are; `None` when it is gone, or is not what
    /// was written.
    pub async fn digest_again(
        &self,
        organization: OrganizationId,
        id: ObjectId,
        kind: ObjectKind,
    ) -> Result<Option<Sha256Digest>, StoreError> {
        match self.read_again(organization, id, kind).await {
            Ok(digest) => Ok(Some(digest)),
            Err(StoreError::Object(error)) if is_other(&error) => {
                tracing::error!(error = %error, object.id = %id, kind = kind.as_str(), "A stored object is not what was written");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    async fn read_again(
        &self,
        organization: OrganizationId,
        id: ObjectId,
        kind: ObjectKind,
    ) -> Result<Sha256Digest, StoreError> {
        let mut reader = self.reader(organization, id, kind).await?;
        // The last frame comes only after everything before it was found to be this digest's.
        while reader.try_next().await?.is_some() {}
        Ok(reader.sha256())
    }
}

/// Whether it says something about the object, and not about the way to it.
fn is_other(error: &ObjectError) -> bool {
    match error {
        ObjectError::NotFound | ObjectError::Corrupt(_) => true,
        ObjectError::Storage(error) => matches!(error, object_store::Error::NotFound { .. }),
        ObjectError::TooLarge { .. }
        | ObjectError::Source(_)
        | ObjectError::File(_)
        | ObjectError::Key(_) => false,
    }
}
