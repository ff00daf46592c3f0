//! States of acme's workspace, published as an apply does it.

use md5::{Digest as _, Md5};
use serde_json::json;
use stackship_domain::run::{Phase, Predecessor, samples};
use stackship_domain::workspace::{Command, StateHead};
use stackship_store::attempts::{self, Offer};
use stackship_store::clock;
use stackship_store::records::runners;
use stackship_store::states::{self, Arrival, NewState, StateVersionRow};

use super::World;
use super::runs::LEASE_SECONDS;

pub const LINEAGE: &str = "6d6f2a52";

/// A state with a secret in clear.
pub fn content(serial: i64, secret: &str) -> Vec<u8> {
    json!({"version": 4, "serial": serial, "lineage": LINEAGE, "outputs": {}, "secret": secret})
        .to_string()
        .into_bytes()
}

impl World {
    /// A state that became the workspace's by an apply, which ended. Nobody else may work on the runs of
    /// this world meanwhile.
    pub async fn published_state(&self, serial: i64, secret: &str) -> StateVersionRow {
        let (organization, workspace) = (self.acme.organization, self.acme.workspace);
        let (run, fence) = self.holding_run().await;
        let current = states::current(&self.store, organization, workspace).await;
        let none = Predecessor::None;
        let predecessor = current.unwrap().map_or(none, |row| Predecessor::Version {
            id: row.id,
            serial: row.serial,
            digest: row.sha256.unwrap(),
        });
        let offer = Offer {
            organization,
            workspace,
            run,
            phase: Phase::Apply,
            number: 1,
            region: "local".to_owned(),
            platform: "linux_amd64".to_owned(),
            fence: Some(fence),
            binding: Some(samples::evidence().binding()),
            predecessor: predecessor.clone(),
        };
        attempts::offer(&self.store, &offer).await.unwrap();
        let (runner, _) = runners::create(&self.store, &clock::fresh_text())
            .await
            .unwrap();
        let leased =
            attempts::lease_next(&self.store, runner, "local", "linux_amd64", LEASE_SECONDS);
        let leased = leased.await.unwrap().unwrap();
        let principal = attempts::by_run_token(&self.store, &leased.run_token).await;
        let principal = principal.unwrap().unwrap();
        let bytes = content(serial, secret);
        let new = NewState {
            principal,
            serial,
            lineage: LINEAGE.to_owned(),
            md5: hex::encode(Md5::digest(&bytes)),
            outputs: None,
        };
        let begun = states::begin(&self.store, new).await.unwrap();
        let same = async |_: &StateVersionRow| Ok(());
        let staged = states::stage(
            &self.store,
            principal,
            begun.id,
            (Arrival::Uploaded, bytes.as_slice()),
            same,
        );
        let staged = staged.await.unwrap();
        let state = StateHead {
            version: staged.id,
            serial,
            lineage: staged.lineage,
            digest: staged.sha256.unwrap(),
        };
        self.workspace_command(Command::PublishState {
            run,
            fence,
            predecessor,
            state,
        })
        .await;
        attempts::record_result(&self.store, principal.attempt, &json!({}))
            .await
            .unwrap();
        self.workspace_command(Command::ReleaseByRun {
            run,
            fence,
            left_behind: None,
        })
        .await;
        let row = states::by_id(&self.store, organization, staged.id).await;
        row.unwrap().unwrap()
    }
}
