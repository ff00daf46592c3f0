//! A version's content, read back: the very bundle that was published, or an error.

use stackship_domain::ids::OrganizationId;
use stackship_policy::Bundle;
use stackship_policy::bundle::STORED_BYTES_MAX;
use stackship_store::StoreError;
use stackship_store::records::policy_sets::{self, CONTENT_BYTES_MAX, Version};

use super::conflict;
use crate::{ApiError, App};

const _: () = assert!(STORED_BYTES_MAX as u64 <= CONTENT_BYTES_MAX);

/// Opens a version.
pub(super) async fn open(
    app: &App,
    organization: OrganizationId,
    version: &Version,
) -> Result<Bundle, ApiError> {
    let stored = match policy_sets::content(&app.store, organization, version.object).await {
        Ok(stored) => stored,
        Err(StoreError::Object(error)) => return Err(unreadable(version, &error.to_string())),
        Err(error) => return Err(error.into()),
    };
    let bundle = unhurried(move || Bundle::from_stored(&stored)).await?;
    let bundle = bundle.map_err(|error| unreadable(version, &error.to_string()))?;
    if bundle.digest() != version.bundle {
        return Err(unreadable(version, "it has another digest"));
    }
    Ok(bundle)
}

/// The cause is for the operator; whoever asks can only publish anew.
fn unreadable(version: &Version, cause: &str) -> ApiError {
    tracing::error!(
        policy_set.id = %version.set,
        policy_set.version = version.number,
        error = cause,
        alarm = "policy_bundle_unreadable",
        "A policy version cannot be read"
    );
    let message = format!(
        "version {} of this policy set cannot be read, so no run can be judged by it; \
         upload the policies again, or detach the set",
        version.number
    );
    conflict("POLICY_BUNDLE_UNREADABLE", message)
}

/// Does something that takes its time without holding up other requests.
pub(super) async fn unhurried<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|failure| ApiError::Internal(failure.into()))
}
