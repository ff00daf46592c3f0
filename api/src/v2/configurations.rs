//! Configuration versions: announced, uploaded once, polled.

use std::io::ErrorKind;

use axum::body::{Body as RawBody, HttpBody as _};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use stackship_domain::run::SourceKind;
use stackship_store::clock;
use stackship_store::objects::{NewObject, ObjectKind};
use stackship_store::records::configuration_versions::{
    self, ConfigurationVersion, NewConfigurationVersion,
};
use stackship_store::records::tokens;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::access::{May, Signature};
use super::error::V2Error;
use super::uploads::reader;
use super::urls::{self, Base};
use super::wire::{
    Body, ConfigurationAttributes, ConfigurationRequest, ConfigurationResource,
    ConfigurationStatus, Document, Kind, respond,
};
use crate::auth::{Caller, Denied, InConfiguration, InWorkspace, RunCreate, RunRead};
use crate::serving::AtHand;
use crate::signed_path::SignedPath;
use crate::{App, reading};

/// The largest packed configuration, in bytes.
pub const CONFIGURATION_BYTES_MAX: u64 = 100 * 1024 * 1024;
/// How every gzip file begins.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// What an upload's signature is for.
const PURPOSE: &str = "v2-configuration";
/// How long an upload's address holds: the client uploads at once, and tries for six minutes.
const UPLOAD_SECONDS: i64 = 60 * 60;

/// `POST workspaces/{workspace}/configuration-versions`
pub async fn create(
    State(app): State<App>,
    May(may): May<InWorkspace<RunCreate>>,
    Body(request): Body<ConfigurationRequest>,
) -> Result<Response, V2Error> {
    let new = NewConfigurationVersion {
        workspace: may.workspace.id,
        speculative: request.data.attributes.speculative,
        source: SourceKind::Cli,
    };
    let created = configuration_versions::create(&app.store, &may.caller.command()?, new).await?;
    let resource = resource(&app, &may.caller, &created);
    Ok(respond(StatusCode::CREATED, &Document::of(resource)))
}

/// `GET configuration-versions/{configuration}`
pub async fn read(State(app): State<App>, May(may): May<InConfiguration<RunRead>>) -> Response {
    respond(
        StatusCode::OK,
        &Document::of(resource(&app, &may.caller, &may.configuration)),
    )
}

/// `PUT uploads/configurations/{token}`: no credential comes with it. Of a refusal the person sees only
/// the status, and after it nobody looks at the configuration version again.
pub async fn upload(
    State(app): State<App>,
    Signature(token): Signature,
    at_hand: AtHand,
    body: RawBody,
) -> Result<StatusCode, V2Error> {
    let hidden = || V2Error::not_found("upload");
    let path = app
        .signer
        .open(PURPOSE, &token, clock::now())
        .ok_or_else(hidden)?;
    let (id, token) = path.subject.split_once(' ').ok_or_else(hidden)?;
    let token = token.parse().map_err(|_| hidden())?;
    // The address does not outlive the token that it was given to.
    let caller = Caller::behind(&app, path.organization, token).await?;
    let may = InConfiguration::<RunCreate>::find(&app, caller.ok_or_else(hidden)?, id).await;
    let may = may.map_err(|denied| match denied {
        failure @ Denied::Store(_) => failure.into(),
        _ => hidden(),
    })?;
    at_hand.is_of(may.caller.account()).map_err(Denied::from)?;
    if body.size_hint().lower() > CONFIGURATION_BYTES_MAX {
        return Err(reading::too_large(CONFIGURATION_BYTES_MAX).into());
    }
    let (packed, version) = (checked(reader(body)).await?, &may.configuration);
    let new = NewObject {
        organization: version.organization,
        workspace: Some(version.workspace),
        kind: ObjectKind::Configuration,
        bytes_max: CONFIGURATION_BYTES_MAX,
    };
    let stored = app.store.objects.put(new, packed).await?;
    let context = may.caller.context(format!("{}/upload", version.id));
    configuration_versions::uploaded(&app.store, &context, version.id, stored).await?;
    Ok(StatusCode::OK)
}

/// The same bytes, once they are seen to begin like a packed configuration.
async fn checked<R: AsyncRead + Unpin>(mut source: R) -> Result<impl AsyncRead, V2Error> {
    let mut beginning = [0; GZIP_MAGIC.len()];
    let is_gzip = match source.read_exact(&mut beginning).await {
        Ok(_) => beginning == GZIP_MAGIC,
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => false,
        Err(error) => return Err(reading::unread(&error).into()),
    };
    if !is_gzip {
        return Err(V2Error::refused(
            "not a configuration",
            "The upload is not a gzip-compressed tar archive.",
        ));
    }
    Ok(std::io::Cursor::new(beginning).chain(source))
}

fn resource(app: &App, caller: &Caller, version: &ConfigurationVersion) -> ConfigurationResource {
    let uploader = caller.user();
    let (status, upload_url) = match version.upload {
        Some(_) => (ConfigurationStatus::Uploaded, None),
        None => (
            ConfigurationStatus::Pending,
            uploader.map(|uploader| upload_url(app, uploader, version)),
        ),
    };
    let attributes = ConfigurationAttributes {
        status,
        upload_url,
        auto_queue_runs: false,
        speculative: version.speculative,
        source: super::mapping::SOURCE,
    };
    ConfigurationResource::plain(Kind::ConfigurationVersions, version.id, attributes)
}

fn upload_url(app: &App, uploader: &tokens::Principal, version: &ConfigurationVersion) -> String {
    let path = SignedPath {
        purpose: PURPOSE,
        organization: version.organization,
        subject: format!("{} {}", version.id, uploader.token),
    };
    let token = app.signer.sign(&path, urls::in_seconds(UPLOAD_SECONDS));
    urls::api(
        app,
        Base::Public,
        &format!("uploads/configurations/{token}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_what_begins_like_gzip_is_passed_on_and_whole() {
        let mut passed = Vec::new();
        let packed = checked(&[0x1f, 0x8b, 8, 0][..]).await.unwrap();
        tokio::pin!(packed);
        packed.read_to_end(&mut passed).await.unwrap();
        assert_eq!(passed, [0x1f, 0x8b, 8, 0]);
        for other in [&b""[..], b"\x1f", b"PK\x03\x04"] {
            assert!(checked(other).await.is_err(), "{other:?} was taken");
        }
    }
}
