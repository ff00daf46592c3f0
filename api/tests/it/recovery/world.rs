//! Applies that end in doubt.

use md5::{Digest as _, Md5};
use serde_json::{Value, json};
use stackship_domain::ids::RunId;
use stackship_domain::run::{Predecessor, Status};
use stackship_domain::workspace;
use stackship_runner_protocol::{ApplyEnd, PhaseResult};
use stackship_store::attempts;
use stackship_store::states::{self, Arrival, NewState, StateVersionRow};
use stackship_workflow::decisions;
use stackship_workflow::leasing::Leased;

use crate::documents::assert_described;
use crate::http::Answer;
use crate::v2::world::Served;
use crate::world::{origin, until};

pub const LINEAGE: &str = "lin";
pub const REASON: &str = "The machine lost power; its state was compared by hand.";

pub fn state(serial: i64, lineage: &str) -> Vec<u8> {
    let outputs = json!({"address": {"value": "10.0.0.1", "type": "string"}});
    json!({"version": 4, "serial": serial, "lineage": lineage, "outputs": outputs, "resources": []})
        .to_string()
        .into_bytes()
}

/// A run whose apply is leased.
pub struct Applying {
    pub run: RunId,
    pub leased: Leased,
}

/// A run whose apply is in doubt.
pub struct Doubtful {
    pub run: RunId,
}

impl Doubtful {
    pub async fn applying(world: &Served) -> Applying {
        let run: RunId = crate::v2::edge::create_run(world, false)
            .await
            .parse()
            .unwrap();
        let plan = world.lease().await;
        let planned = world.planned(b"plan", 1).await;
        world.report(&plan.attempt, &planned).await;
        world.until(run, Status::AwaitingApproval).await;
        let context = origin(world.acme.owner.user).within(world.acme.organization);
        decisions::approve_current(&world.store, &context, run)
            .await
            .unwrap();
        let leased = world.lease().await;
        Applying { run, leased }
    }

    /// An apply that staged these serials and lineages before it was killed.
    pub async fn with_states(world: &Served, staged: &[(i64, &str)]) -> Self {
        let applying = Self::applying(world).await;
        for (serial, lineage) in staged {
            applying.stage(world, *serial, lineage).await;
        }
        applying.killed(world).await
    }

    pub fn path(&self, choice: &str) -> String {
        format!("/v1/runs/{}/recovery/{choice}", self.run)
    }

    pub async fn evidence(&self, world: &Served) -> Value {
        let path = format!("/v1/runs/{}/recovery", self.run);
        let answer = world.send("GET", &path, &Value::Null).await;
        assert_described("GET", "/v1/runs/{run}/recovery", &answer);
        answer.data(200)
    }

    pub async fn decide(&self, world: &Served, choice: &str, reason: &str) -> Answer {
        let body = json!({"reason": reason});
        let answer = world.send("POST", &self.path(choice), &body).await;
        if answer.status.is_success() {
            let template = format!("/v1/runs/{{run}}/recovery/{choice}");
            assert_described("POST", &template, &answer);
        }
        answer
    }

    pub async fn status(&self, world: &Served) -> Status {
        let (run, _) = world.store.runs.load(self.run).await.unwrap();
        run.status().unwrap()
    }

    pub async fn workspace(&self, world: &Served) -> Value {
        let path = format!("/v1/workspaces/{}", world.acme.workspace);
        world.send("GET", &path, &Value::Null).await.data(200)
    }

    pub async fn lock(&self, world: &Served) -> Value {
        self.workspace(world).await["lock"].clone()
    }

    pub async fn until_unlocked(&self, world: &Served) {
        until("the lock is released", async || {
            self.lock(world).await.is_null()
        })
        .await;
    }

    /// The command that makes the newest staged state the workspace's state.
    pub async fn publication(&self, world: &Served) -> workspace::Command {
        let organization = world.acme.organization;
        let staged = states::newest_staged(&world.store, organization, self.run).await;
        publish(&staged.unwrap().unwrap())
    }
}

impl Applying {
    /// Stages a state as OpenTofu would, without the checks of the edge.
    pub async fn stage(&self, world: &Served, serial: i64, lineage: &str) -> StateVersionRow {
        let principal = attempts::by_run_token(&world.store, &self.leased.run_token).await;
        let principal = principal.unwrap().unwrap();
        let bytes = state(serial, lineage);
        let new = NewState {
            principal,
            serial,
            lineage: lineage.to_owned(),
            md5: hex::encode(Md5::digest(&bytes)),
            outputs: None,
        };
        let begun = states::begin(&world.store, new).await.unwrap();
        let same = async |_: &StateVersionRow| Ok(());
        states::stage(
            &world.store,
            principal,
            begun.id,
            (Arrival::Uploaded, bytes.as_slice()),
            same,
        )
        .await
        .unwrap()
    }

    /// The sandbox dies.
    pub async fn killed(self, world: &Served) -> Doubtful {
        let end = ApplyEnd::Killed {
            limit_exceeded: false,
            detail: "The sandbox was killed.".to_owned(),
            seen: None,
            errored_state: None,
        };
        self.ended(world, end).await
    }

    /// The apply ends like this, in doubt.
    pub async fn ended(self, world: &Served, end: ApplyEnd) -> Doubtful {
        world
            .report(&self.leased.attempt, &PhaseResult::Apply { end })
            .await;
        world.until(self.run, Status::RecoveryRequired).await;
        Doubtful { run: self.run }
    }
}

/// The command that makes a staged state the workspace's state.
pub fn publish(staged: &StateVersionRow) -> workspace::Command {
    workspace::Command::PublishState {
        run: staged.author.run().unwrap(),
        fence: staged.fence,
        predecessor: Predecessor::None,
        state: workspace::StateHead {
            version: staged.id,
            serial: staged.serial,
            lineage: staged.lineage.clone(),
            digest: staged.sha256.unwrap(),
        },
    }
}

/// An event with whoever caused it.
#[derive(sqlx::FromRow)]
pub struct Recorded {
    #[sqlx(rename = "global_position")]
    pub position: i64,
    pub actor: String,
    pub request_id: String,
    pub payload: Value,
}

/// Events of this name, each as the audit has it, oldest first.
pub async fn events(world: &Served, name: &str) -> Vec<Recorded> {
    let written = "select count(*) from log.events where event_type = $1";
    let audited = "select audit.global_position, audit.actor, audit.request_id, event.payload \
        from view.audit_entries audit join log.events event using (aggregate_type, aggregate_id, sequence) \
        where audit.event_type = $1 order by audit.number";
    let mut found: Vec<Recorded> = Vec::new();
    until("the audit has every event", async || {
        let query = sqlx::query_scalar::<_, i64>(written).bind(name);
        let expected = query.fetch_one(&world.owner).await.unwrap();
        let query = sqlx::query_as(audited).bind(name);
        found = query.fetch_all(&world.owner).await.unwrap();
        i64::try_from(found.len()).unwrap() == expected
    })
    .await;
    found
}
