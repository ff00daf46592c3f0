//! Path tokens: whoever holds one may do one thing to one subject until it expires. They stand in
//! for a credential where a client sends none, so each is made for a single purpose.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use stackship_domain::Timestamp;
use stackship_domain::ids::OrganizationId;

/// Label under which the signing key is derived from the installation's key.
pub const KEY_LABEL: &str = "signed-paths/v1";
/// The longest token that is looked at, in bytes.
const TOKEN_BYTES_MAX: usize = 1024;
const SEPARATOR: char = '\n';
const FIELDS: usize = 4;

/// Makes and opens signed paths.
#[derive(Clone)]
pub struct SignedPaths {
    key: [u8; 32],
}

/// What a token allows: `purpose` on `subject`, within one organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedPath {
    /// The one thing it may be used for; letters, digits and `-`.
    pub purpose: &'static str,
    /// The tenant.
    pub organization: OrganizationId,
    /// What it is about: ids, separated by anything but a line break.
    pub subject: String,
}

impl SignedPaths {
    /// Signs with a key that was derived for this purpose alone ([`KEY_LABEL`]).
    pub const fn new(key: [u8; 32]) -> Self {
        Self { key }
    }

    /// A token for `path` that holds until `expires_at`; safe in a URL.
    pub fn sign(&self, path: &SignedPath, expires_at: Timestamp) -> String {
        let body = format!(
            "{}{SEPARATOR}{}{SEPARATOR}{}{SEPARATOR}{}",
            path.purpose,
            path.organization,
            path.subject,
            expires_at.as_second()
        );
        let tag = self.mac(body.as_bytes()).finalize().into_bytes();
        format!(
            "{}.{}",
            URL_SAFE_NO_PAD.encode(body),
            URL_SAFE_NO_PAD.encode(tag)
        )
    }

    /// What `token` allows; `None` when it was not made here, for another purpose, or is over.
    pub fn open(&self, purpose: &'static str, token: &str, now: Timestamp) -> Option<SignedPath> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let (body, tag) = token.split_once('.')?;
        let body = URL_SAFE_NO_PAD.decode(body).ok()?;
        self.mac(&body)
            .verify_slice(&URL_SAFE_NO_PAD.decode(tag).ok()?)
            .ok()?;
        let fields: Vec<&str> = std::str::from_utf8(&body).ok()?.split(SEPARATOR).collect();
        let [made_for, organization, subject, expires_at] =
            <[&str; FIELDS]>::try_from(fields).ok()?;
        let is_live = made_for == purpose && now.as_second() < expires_at.parse().ok()?;
        is_live.then_some(())?;
        Some(SignedPath {
            purpose,
            organization: organization.parse().ok()?,
            subject: subject.to_owned(),
        })
    }

    fn mac(&self, body: &[u8]) -> Hmac<Sha256> {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.key).expect("HMAC takes a key of any length");
        mac.update(body);
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn path() -> SignedPath {
        SignedPath {
            purpose: "upload",
            organization: stackship_store::clock::fresh(),
            subject: "cv-1".to_owned(),
        }
    }

    #[test]
    fn a_token_holds_for_its_purpose_until_it_expires() {
        let (signer, path) = (SignedPaths::new([1; 32]), path());
        let token = signer.sign(&path, at(100));
        assert_eq!(signer.open("upload", &token, at(99)), Some(path));
        assert_eq!(signer.open("upload", &token, at(100)), None, "it is over");
        assert_eq!(
            signer.open("download", &token, at(99)),
            None,
            "another purpose"
        );
        assert_eq!(
            SignedPaths::new([2; 32]).open("upload", &token, at(99)),
            None,
            "another key"
        );
    }

    #[test]
    fn a_changed_token_does_not_open() {
        let (signer, path) = (SignedPaths::new([1; 32]), path());
        let token = signer.sign(&path, at(100));
        for index in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[index] = if changed[index] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(
                signer.open("upload", &changed, at(99)),
                None,
                "byte {index}"
            );
        }
        assert_eq!(signer.open("upload", "", at(99)), None);
    }
}
