//! Policy sets: their versions stay, and the newest ones apply.

mod apply;
mod stay;

use stackship_domain::Sha256Digest;
use stackship_domain::ids::PolicySetId;
use stackship_store::StoreError;
use stackship_store::records::grants::Scope;
use stackship_store::records::policy_sets::{
    self, Attaching, NewVersion, Published, Version, attached_to,
};

use crate::support::{World, name};

pub const REASON: &str = "tried in a test";

impl World {
    pub async fn policy_set(&self, text: &str) -> PolicySetId {
        let set = policy_sets::create(&self.store, &self.context(), &name(text)).await;
        set.unwrap().id
    }

    pub async fn publish(
        &self,
        set: PolicySetId,
        content: &str,
        policies: usize,
    ) -> Result<Published, StoreError> {
        let new = NewVersion {
            bundle: Sha256Digest::of(content.as_bytes()),
            label: "1.0",
            policies,
            content: content.as_bytes(),
        };
        policy_sets::publish(&self.store, &self.context(), set, new).await
    }

    pub async fn version(&self, set: PolicySetId, content: &str) -> Version {
        match self.publish(set, content, 1).await.unwrap() {
            Published::New(version) => version,
            Published::Same(version) => panic!("no new version: {version:?}"),
        }
    }

    pub async fn attach(&self, set: PolicySetId, scope: Scope) -> Result<Attaching, StoreError> {
        policy_sets::attach(&self.store, &self.context(), set, scope, REASON).await
    }

    /// Names and versions of what a run of the workspace would pin.
    pub async fn applying(&self) -> Vec<(String, u32)> {
        let (pool, organization) = (&self.store.pool, self.organization);
        let attached = attached_to(pool, organization, self.project, self.workspace);
        let mut applying: Vec<_> = attached
            .await
            .unwrap()
            .into_iter()
            .map(|one| (one.name, one.version))
            .collect();
        applying.sort();
        applying
    }

    pub fn here(&self) -> Scope {
        Scope::Workspace {
            workspace: self.workspace,
        }
    }
}
