//! State versions and their outputs.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stackship_domain::Timestamp;

use super::{Named, Request, Resource, ToOne};

/// A state version.
pub type StateResource = Resource<StateAttributes, StateRelationships>;

/// What a state version says of itself.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct StateAttributes {
    /// Its serial.
    pub serial: i64,
    /// When it was begun.
    pub created_at: Timestamp,
    /// How far it has come.
    pub status: &'static str,
    /// Where its bytes are read, with the same credential.
    pub hosted_state_download_url: String,
    /// Where its bytes are written, without a credential; for its run only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosted_state_upload_url: Option<String>,
    /// Where its external JSON form is written; the client takes its absence for a lost connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosted_json_state_upload_url: Option<String>,
}

/// What a state version points at.
#[derive(Debug, Serialize)]
pub struct StateRelationships {
    /// The run that wrote it; nothing when a person rolled back to it.
    pub run: ToOne,
}

/// A state version to be begun.
pub type StateRequest = Request<StateRequestAttributes, StateRequestRelationships>;

/// What is said of it.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct StateRequestAttributes {
    /// Its serial.
    pub serial: i64,
    /// MD5 of the bytes that will follow.
    pub md5: String,
    /// Its lineage.
    pub lineage: String,
    /// Base64 of its outputs, sensitive values in clear.
    pub json_state_outputs: Option<String>,
}

impl std::fmt::Debug for StateRequestAttributes {
    /// Leaves the outputs out: they hold secrets.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("StateRequestAttributes")
            .field("serial", &self.serial)
            .field("lineage", &self.lineage)
            .finish_non_exhaustive()
    }
}

/// Where it comes from.
#[derive(Debug, Default, Deserialize)]
pub struct StateRequestRelationships {
    /// The run, as `TFE_RUN_ID` names it.
    pub run: Option<Named>,
}

/// One output of a state.
pub type OutputResource = Resource<OutputAttributes>;

/// What an output says of itself.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct OutputAttributes {
    /// Its name.
    pub name: String,
    /// Whether its value is only for those who may read state.
    pub sensitive: bool,
    /// The outermost part of its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its type constraint as JSON.
    pub detailed_type: Value,
    /// Its value; null where it is withheld.
    pub value: Value,
}
