//! The policies that a run pins (S-RUN-2): what is changed, attached or detached later belongs to the
//! next run.

use serde::{Deserialize, Serialize};

use crate::ids::{ObjectId, PolicySetId};
use crate::{Sha256Digest, canonical};

/// One version of a policy set, as a run pins it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedPolicySet {
    /// Which set.
    pub set: PolicySetId,
    /// Its name when the run was created, for people.
    pub name: String,
    /// Which of its versions.
    pub version: u32,
    /// SHA-256 of that version's bundle.
    pub bundle: Sha256Digest,
    /// The stored bundle.
    pub object: ObjectId,
}

/// Every policy set that a run is judged by, and their digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct PolicyPins {
    digest: Sha256Digest,
    sets: Vec<PinnedPolicySet>,
}

/// The same as it stands in the log.
#[derive(Deserialize)]
struct Written {
    digest: Sha256Digest,
    sets: Vec<PinnedPolicySet>,
}

/// The digest of pinned policies is not that of their bundles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the digest of the pinned policies is not that of their bundles")]
pub struct WrongPolicyDigest;

impl TryFrom<Written> for PolicyPins {
    type Error = WrongPolicyDigest;

    fn try_from(written: Written) -> Result<Self, WrongPolicyDigest> {
        let pins = Self::new(written.sets);
        if pins.digest == written.digest {
            Ok(pins)
        } else {
            Err(WrongPolicyDigest)
        }
    }
}

impl Default for PolicyPins {
    /// No policies: what a run has pinned that was created before there were any.
    fn default() -> Self {
        Self::new(vec![])
    }
}

impl PolicyPins {
    /// Pins these versions.
    pub fn new(sets: Vec<PinnedPolicySet>) -> Self {
        let bundles: Vec<_> = sets.iter().map(|pinned| pinned.bundle).collect();
        Self {
            digest: policy_set_digest(&bundles),
            sets,
        }
    }

    /// The digest over all bundles. A policy result names it, and an approval rests on the result.
    pub const fn digest(&self) -> Sha256Digest {
        self.digest
    }

    /// What is pinned.
    pub fn sets(&self) -> &[PinnedPolicySet] {
        &self.sets
    }
}

/// The digest of a set of bundles, whatever their order; the empty set has one too.
pub fn policy_set_digest(bundles: &[Sha256Digest]) -> Sha256Digest {
    let mut sorted = bundles.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let list = serde_json::json!({ "schema": "stackship.policy-set/v1", "bundles": sorted });
    let bytes = canonical::to_bytes(&list).expect("the list has only texts");
    Sha256Digest::of(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::samples;

    #[test]
    fn a_digest_that_is_not_that_of_the_bundles_is_not_read() {
        let pins = samples::judged_facts().pins.policies;
        let mut written = serde_json::to_value(&pins).unwrap();
        let read = serde_json::from_value::<PolicyPins>(written.clone());
        assert_eq!(read.unwrap(), pins);
        written["digest"] = serde_json::json!(Sha256Digest::of(b"another"));
        assert!(serde_json::from_value::<PolicyPins>(written).is_err());
    }

    #[test]
    fn the_digest_is_of_the_bundles_in_any_order_and_of_nothing_else() {
        let [one, other] = [b"one", b"two"].map(|text| Sha256Digest::of(text));
        let together = policy_set_digest(&[one, other]);
        assert_eq!(policy_set_digest(&[other, one, one]), together);
        assert_ne!(policy_set_digest(&[one]), together);
        assert_eq!(PolicyPins::default().digest(), policy_set_digest(&[]));
    }
}
