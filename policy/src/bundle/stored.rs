//! The stored form of a bundle: one canonical document, the same bytes for the same bundle.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stackship_domain::canonical;

use super::{Bundle, BundleError, CONTENT_BYTES_MAX, Manifest, manifest};

/// Names the form, and the list that the bundle's digest is made of.
pub const BUNDLE_SCHEMA: &str = "stackship.policy-bundle/v1";
/// The largest stored bundle: every byte of content may need six in JSON.
pub const STORED_BYTES_MAX: usize = 6 * CONTENT_BYTES_MAX + 256 * 1024;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document<'a> {
    schema: Cow<'a, str>,
    manifest: Cow<'a, Manifest>,
    files: Cow<'a, BTreeMap<String, String>>,
}

impl Bundle {
    /// The bytes to store.
    pub fn to_stored(&self) -> Vec<u8> {
        let document = Document {
            schema: Cow::Borrowed(BUNDLE_SCHEMA),
            manifest: Cow::Borrowed(&self.manifest),
            files: Cow::Borrowed(&self.files),
        };
        canonical::to_bytes(&document).expect("a bundle has only texts and booleans")
    }

    /// Reads what [`Bundle::to_stored`] wrote, and nothing else: every rule of an upload is checked
    /// again, and the bytes must be the canonical ones.
    pub fn from_stored(bytes: &[u8]) -> Result<Self, BundleError> {
        let refuse = |detail: &str| BundleError::Stored {
            detail: crate::text::plain(detail, 300),
        };
        if bytes.len() > STORED_BYTES_MAX {
            return Err(refuse("it is too large"));
        }
        let document: Document<'_> =
            serde_json::from_slice(bytes).map_err(|error| refuse(&error.to_string()))?;
        if document.schema != BUNDLE_SCHEMA {
            return Err(refuse("it is of another schema"));
        }
        let manifest = serde_json::to_string(&document.manifest)
            .map_err(|error| refuse(&error.to_string()))?;
        let bundle = Self::from_parts(manifest::parse(&manifest)?, document.files.into_owned())?;
        if bundle.to_stored() != bytes {
            return Err(refuse("its bytes differ from the canonical ones"));
        }
        Ok(bundle)
    }
}
