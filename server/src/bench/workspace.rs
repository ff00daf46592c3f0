//! `stackship bench workspace`: what it costs that a workspace is made anew from its events each time
//! somebody asks it something, on a private database.

use std::time::{Duration, Instant};

use sqlx::PgPool;
use stackship_domain::ids::{OrganizationId, UserId, WorkspaceId};
use stackship_domain::workspace::Command;
use stackship_domain::{Actor, Name};
use stackship_store::log::Context;
use stackship_store::records::users::{NewUser, UserKind};
use stackship_store::records::workspaces::NewWorkspace;
use stackship_store::records::{Origin, organizations, projects, users, workspaces};
use stackship_store::{Store, clock};

use super::Bench;
use super::figures::{Figure, seconds};
use crate::Failure;
use crate::database::Database;
use crate::settings::Settings;

/// The events of a workspace that was used for years: some 2,500 runs.
const MANY: i32 = 10_000;
/// The events of one that is rather new.
const FEW: i32 = 100;

/// Locks and unlocks by hand, written at once: carried out one by one, each would be measured already.
const HISTORY: &str = "\
insert into log.events (aggregate_type, aggregate_id, sequence, event_type, event_version, payload, metadata) \
select 'workspace', $1, number, case when number % 2 = 1 then 'lock_acquired' else 'lock_released' end, '1.0', \
    jsonb_build_object('holder', jsonb_build_object('kind', 'user', 'user', $2), 'fence', (number + 1) / 2) \
    || case when number % 2 = 1 \
        then jsonb_build_object('type', 'lock_acquired', 'reason', 'Maintenance of the network.') \
        else jsonb_build_object('type', 'lock_released', 'cause', jsonb_build_object('kind', 'by_holder')) end, \
    jsonb_build_object('organization_id', $3, 'actor', $2, 'request_id', 'bench', 'command_id', 'bench-' || number) \
from generate_series(1, $4) as number";

struct Place {
    store: Store,
    owner: PgPool,
    organization: OrganizationId,
    user: UserId,
}

/// Measures pairs, one after the other.
pub async fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let home = tempfile::tempdir()?;
    let settings = Settings {
        data_dir: home.path().to_owned(),
        ..Settings::default()
    };
    let database = Database::open(&settings, None).await?;
    let (store, owner) = (database.store(&settings)?, database.owner()?);
    let figures = in_database(bench, &store, &owner).await;
    store.pool.close().await;
    owner.close().await;
    database.close().await?;
    figures
}

async fn in_database(bench: &Bench, store: &Store, owner: &PgPool) -> Result<Vec<Figure>, Failure> {
    let new = NewUser {
        login: "bench".to_owned(),
        display_name: "Bench".to_owned(),
        kind: UserKind::Person,
    };
    let user = users::create(store, None, &new).await?;
    let organization = organizations::create(store, &origin(user), &name("bench")?, user).await?;
    let place = Place {
        store: store.clone(),
        owner: owner.clone(),
        organization,
        user,
    };
    let (many, few) = (place.workspace(MANY).await?, place.workspace(FEW).await?);
    // Once each first: pages and connections are warm in every measured pair.
    place.load(many).await?;
    place.load(few).await?;
    let (mut loads, mut few_loads) = (Vec::new(), Vec::new());
    let (mut commands, mut few_commands) = (Vec::new(), Vec::new());
    for _ in 0..bench.n {
        loads.push(place.load(many).await?);
        few_loads.push(place.load(few).await?);
        commands.push(place.lock_and_unlock(many).await? / 2);
        few_commands.push(place.lock_and_unlock(few).await? / 2);
    }
    Ok(vec![
        seconds(
            "workspace of 10,000 events, loaded",
            &loads,
            Some(&few_loads),
        ),
        seconds("a command to it", &commands, Some(&few_commands)),
    ])
}

impl Place {
    /// A workspace with so many events.
    async fn workspace(&self, events: i32) -> Result<WorkspaceId, Failure> {
        let context = self.context();
        let text = format!("events-{events}");
        let project = projects::create(&self.store, &context, &name(&text)?).await?;
        let defaults = Settings::default();
        let new = NewWorkspace {
            project,
            name: name(&text)?,
            tofu_version: defaults.default_tofu_version.parse()?,
            working_directory: String::new(),
            region: "local".to_owned(),
            platform: "linux_amd64".to_owned(),
            approval_seconds: 3600,
        };
        let workspace = workspaces::create(&self.store, &self.context(), &new).await?;
        sqlx::query(HISTORY)
            .bind(workspace.to_string())
            .bind(self.user.to_string())
            .bind(self.organization.to_string())
            .bind(events)
            .execute(&self.owner)
            .await?;
        Ok(workspace)
    }

    async fn load(&self, workspace: WorkspaceId) -> Result<Duration, Failure> {
        let began = Instant::now();
        let (state, _) = self.store.workspaces.load(workspace).await?;
        let took = began.elapsed();
        if state.lock.is_some() {
            return Err("a history that ends with an unlock left a lock".into());
        }
        Ok(took)
    }

    async fn lock_and_unlock(&self, workspace: WorkspaceId) -> Result<Duration, Failure> {
        let (by, reason) = (self.user, None);
        let began = Instant::now();
        for command in [
            Command::LockByPerson { by, reason },
            Command::UnlockByPerson { by },
        ] {
            let context = self.context();
            let log = &self.store.workspaces;
            log.execute(workspace, command, &context).await?;
        }
        Ok(began.elapsed())
    }

    fn context(&self) -> Context {
        origin(self.user).within(self.organization)
    }
}

fn origin(user: UserId) -> Origin {
    Origin {
        actor: Actor::User(user),
        request_id: clock::fresh_text(),
        command_id: clock::fresh_text(),
    }
}

fn name(text: &str) -> Result<Name, Failure> {
    Ok(text.parse()?)
}
