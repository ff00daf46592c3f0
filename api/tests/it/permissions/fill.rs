//! What the routes are called with: credentials of every kind, and something of acme's for every
//! parameter.

use serde_json::{Value, json};
use stackship_domain::Role;
use stackship_domain::ids::{AttemptId, RunId, StateVersionId};
use stackship_domain::run::RunKind;
use stackship_domain::variable::VariableCategory;
use stackship_store::clock;
use stackship_store::records::grants::{self, Grant, Scope};
use stackship_store::records::tokens::{self, Descent, NewToken};
use stackship_store::records::users;
use stackship_store::records::variables::{self, NewVariable};

use super::routes::Who;
use crate::world::{World, new_user, origin};

pub struct Fill<'a> {
    world: &'a World,
    run: RunId,
    attempt: AttemptId,
    policy_set: String,
    pub run_token: String,
    pub lease_token: String,
    pub other_lease_token: String,
    pub runner_token: String,
}

impl<'a> Fill<'a> {
    /// A run that waits for a person, with its lease; and another run's lease.
    pub async fn new(world: &'a World) -> Self {
        let (run, fence) = world.run_that_asks().await;
        world.seen_run(run).await;
        let (runner_token, leased) = world.lease(run, Some(fence)).await;
        let other = world.run(RunKind::Speculative).await;
        let (_, other) = world.lease(other, None).await;
        Self {
            world,
            run,
            attempt: leased.attempt.id,
            policy_set: world.policies("baseline").await,
            run_token: leased.run_token,
            lease_token: leased.lease_token,
            other_lease_token: other.lease_token,
            runner_token,
        }
    }

    /// The credential that gets furthest on a route.
    pub fn strongest(&self, who: Who) -> &str {
        match who {
            Who::Runner => &self.runner_token,
            Who::Lease => &self.lease_token,
            Who::RunAlone | Who::Applying => &self.run_token,
            _ => &self.world.acme.owner.token,
        }
    }

    /// Names something of acme's for every parameter; what a call may use up is made anew.
    pub async fn path(&self, template: &str) -> String {
        let acme = &self.world.acme;
        let digits = self.run.to_string().split_off("run-".len());
        let mut filled = template.to_owned();
        if template.ends_with("{attempt}/logs") {
            filled.push_str("?sequence=0");
        }
        for (name, value) in [
            ("organization", acme.name.to_owned()),
            ("project", acme.project.to_string()),
            ("workspace", acme.workspace.to_string()),
            ("name", "net".to_owned()),
            ("run", self.run.to_string()),
            ("phase", "plan".to_owned()),
            ("plan", format!("plan-{digits}")),
            ("apply", format!("apply-{digits}")),
            ("check", format!("polchk-{digits}")),
            ("signature", "wrong".to_owned()),
            ("kind", "plan".to_owned()),
            ("input", "configuration".to_owned()),
            ("attempt", self.attempt.to_string()),
            ("policy_set", self.policy_set.clone()),
            ("version", "1".to_owned()),
            ("state", clock::fresh::<StateVersionId>().to_string()),
            ("output", "wsout-1".to_owned()),
        ] {
            filled = filled.replace(&format!("{{{name}}}"), &value);
        }
        self.made_anew(filled).await
    }

    async fn made_anew(&self, mut filled: String) -> String {
        if filled.contains("{configuration}") {
            let configuration = self.world.configuration(false).await.to_string();
            filled = filled.replace("{configuration}", &configuration);
        }
        if filled.contains("{variable}") {
            filled = filled.replace("{variable}", &variable(self.world).await);
        }
        if filled.contains("{user}") {
            filled = filled.replace("{user}", &member(self.world).await);
        }
        if filled.contains("{token}") {
            filled = filled.replace("{token}", &token(self.world).await);
        }
        filled
    }

    /// Enough of a body to get to the check of the permission, where that comes after reading it.
    pub async fn body(&self, template: &str) -> Value {
        match template {
            "/v1/organizations/{organization}/workspaces" => {
                json!({"name": "w", "project": "default"})
            }
            "/api/v2/organizations/{organization}/workspaces" => {
                json!({"data": {"type": "workspaces", "attributes": {"name": "w2"}}})
            }
            "/api/v2/runs" => {
                let id = self.world.configuration(false).await;
                let named = json!({"data": {"type": "configuration-versions", "id": id}});
                let relationships = json!({"configuration-version": named});
                json!({"data": {"type": "runs", "attributes": {}, "relationships": relationships}})
            }
            _ => json!({}),
        }
    }
}

async fn variable(world: &World) -> String {
    let new = NewVariable {
        key: format!("v{}", clock::fresh_text()),
        value: "1".to_owned(),
        category: VariableCategory::Terraform,
        hcl: false,
        sensitive: false,
        description: String::new(),
    };
    let context = origin(world.acme.owner.user).within(world.acme.organization);
    let variable = variables::set(&world.store, &context, world.acme.workspace, &new).await;
    variable.unwrap().id.to_string()
}

async fn member(world: &World) -> String {
    let new = new_user(&clock::fresh_text());
    let user = users::create(&world.store, None, &new).await.unwrap();
    let context = origin(world.acme.owner.user).within(world.acme.organization);
    let grant = Grant {
        scope: Scope::Organization,
        user,
        role: Role::Reader,
    };
    grants::grant(&world.store, &context, grant).await.unwrap();
    user.to_string()
}

async fn token(world: &World) -> String {
    let new = NewToken {
        user: member(world).await.parse().unwrap(),
        description: "test".to_owned(),
        expires_at: None,
        descent: Descent::Machine,
    };
    let context = origin(world.acme.owner.user).within(world.acme.organization);
    let (id, _) = tokens::create(&world.store, &context, &new).await.unwrap();
    id.to_string()
}
