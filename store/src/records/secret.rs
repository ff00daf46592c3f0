//! Secrets that are shown once: 256 random bits behind a prefix that says what they open.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::Rng as _;
use stackship_domain::Sha256Digest;
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

/// The longest text that is digested to look a secret up.
const PRESENTED_BYTES_MAX: usize = 128;

/// A secret in clear. It exists once, on its way to whoever asked for it; only its digest is kept.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// A fresh secret.
    pub(crate) fn fresh(prefix: &str) -> Self {
        let mut bits = Zeroizing::new([0_u8; 32]);
        rand::rng().fill(bits.as_mut_slice());
        let digits = Zeroizing::new(URL_SAFE_NO_PAD.encode(bits.as_slice()));
        Self(Zeroizing::new(format!("{prefix}{}", *digits)))
    }

    /// The text to hand out.
    pub fn expose(&self) -> &str {
        &self.0
    }

    pub(crate) fn digest(&self) -> Sha256Digest {
        Sha256Digest::of(self.0.as_bytes())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(..)")
    }
}

/// What to look a presented secret up by; `None` when it cannot be one. A digest tells an attacker
/// who times the look-up nothing about the secret behind it.
pub(crate) fn presented_digest(prefix: &str, presented: &str) -> Option<Sha256Digest> {
    let plausible = presented.starts_with(prefix) && presented.len() <= PRESENTED_BYTES_MAX;
    plausible.then(|| Sha256Digest::of(presented.as_bytes()))
}

/// Compares what was found with what was presented once more, in constant time.
pub(crate) fn same_digest(found: &Sha256Digest, presented: &Sha256Digest) -> bool {
    found.as_bytes().ct_eq(presented.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_256_bits_and_no_debug_text() {
        let (one, other) = (Secret::fresh("ss_"), Secret::fresh("ss_"));
        assert_eq!(one.expose().len(), "ss_".len() + 43);
        assert_ne!(one.expose(), other.expose());
        assert_eq!(format!("{one:?}"), "Secret(..)");
    }

    #[test]
    fn only_what_can_be_a_secret_is_looked_up() {
        let secret = Secret::fresh("ss_");
        assert_eq!(
            presented_digest("ss_", secret.expose()),
            Some(secret.digest())
        );
        assert_eq!(presented_digest("ssr_", secret.expose()), None);
        assert_eq!(
            presented_digest("ss_", &format!("ss_{}", "x".repeat(1000))),
            None
        );
    }
}
