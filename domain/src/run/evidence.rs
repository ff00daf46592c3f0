//! What an approval is bound to (S-RUN-7): if any part differs, the approval is for another plan.

use serde::{Deserialize, Serialize};

use super::status::closed_set;
use crate::ids::StateVersionId;
use crate::{Sha256Digest, TofuVersion, canonical};

/// The state a plan was made against.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Predecessor {
    /// The workspace had no state.
    None,
    /// A published state version.
    Version {
        /// Which one.
        id: StateVersionId,
        /// Its serial.
        serial: i64,
        /// SHA-256 of its exact bytes.
        digest: Sha256Digest,
    },
}

/// Everything a reviewer's decision rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// SHA-256 of the exact plan file.
    pub plan: Sha256Digest,
    /// SHA-256 of the plan as JSON.
    pub plan_json: Sha256Digest,
    /// SHA-256 of the canonical policy result.
    pub policy: Sha256Digest,
    /// The state it was planned against.
    pub predecessor: Predecessor,
    /// SHA-256 of the dependency bundle: lock file, provider packages, module tree.
    pub dependencies: Sha256Digest,
    /// SHA-256 of the packed configuration.
    pub configuration: Sha256Digest,
    /// SHA-256 of the input snapshot.
    pub inputs: Sha256Digest,
    /// The OpenTofu release that planned and will apply.
    pub tofu_version: TofuVersion,
}

closed_set! {
    /// A part of the evidence, named in a refusal.
    EvidencePart {
        /// The plan file.
        Plan = "plan",
        /// The plan as JSON.
        PlanJson = "plan_json",
        /// The policy result.
        Policy = "policy_result",
        /// The predecessor state.
        Predecessor = "predecessor_state",
        /// The dependency bundle.
        Dependencies = "dependency_bundle",
        /// The configuration.
        Configuration = "configuration",
        /// The input snapshot.
        Inputs = "input_snapshot",
        /// The OpenTofu release.
        TofuVersion = "tofu_version",
        /// The digest over all parts, when only that was presented.
        Binding = "binding_digest",
    }
}

impl Evidence {
    /// The digest a reviewer approves: SHA-256 over the canonical JSON of every part.
    pub fn binding(&self) -> Sha256Digest {
        let bytes =
            canonical::to_bytes(self).expect("evidence holds digests, texts and integers only");
        Sha256Digest::of(&bytes)
    }

    /// The first part in which `other` differs.
    pub fn first_difference(&self, other: &Self) -> Option<EvidencePart> {
        [
            (self.plan != other.plan, EvidencePart::Plan),
            (self.plan_json != other.plan_json, EvidencePart::PlanJson),
            (self.policy != other.policy, EvidencePart::Policy),
            (
                self.predecessor != other.predecessor,
                EvidencePart::Predecessor,
            ),
            (
                self.dependencies != other.dependencies,
                EvidencePart::Dependencies,
            ),
            (
                self.configuration != other.configuration,
                EvidencePart::Configuration,
            ),
            (self.inputs != other.inputs, EvidencePart::Inputs),
            (
                self.tofu_version != other.tofu_version,
                EvidencePart::TofuVersion,
            ),
        ]
        .into_iter()
        .find_map(|(differs, part)| differs.then_some(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::samples;

    #[test]
    fn every_part_changes_the_binding_and_is_named() {
        let evidence = samples::evidence();
        let other = Sha256Digest::of(b"another");
        let changed: [(Evidence, EvidencePart); 8] = [
            (
                Evidence {
                    plan: other,
                    ..evidence.clone()
                },
                EvidencePart::Plan,
            ),
            (
                Evidence {
                    plan_json: other,
                    ..evidence.clone()
                },
                EvidencePart::PlanJson,
            ),
            (
                Evidence {
                    policy: other,
                    ..evidence.clone()
                },
                EvidencePart::Policy,
            ),
            (
                Evidence {
                    predecessor: Predecessor::None,
                    ..evidence.clone()
                },
                EvidencePart::Predecessor,
            ),
            (
                Evidence {
                    dependencies: other,
                    ..evidence.clone()
                },
                EvidencePart::Dependencies,
            ),
            (
                Evidence {
                    configuration: other,
                    ..evidence.clone()
                },
                EvidencePart::Configuration,
            ),
            (
                Evidence {
                    inputs: other,
                    ..evidence.clone()
                },
                EvidencePart::Inputs,
            ),
            (
                Evidence {
                    tofu_version: "1.12.5".parse().unwrap(),
                    ..evidence.clone()
                },
                EvidencePart::TofuVersion,
            ),
        ];
        for (tampered, part) in changed {
            assert_ne!(tampered.binding(), evidence.binding(), "{part}");
            assert_eq!(evidence.first_difference(&tampered), Some(part));
        }
        assert_eq!(evidence.first_difference(&evidence), None);
    }
}
