//! A server on loopback with everything behind it: log, projector, workflow; one organization with a
//! planner and an operator, and a stranger from elsewhere.

use std::time::Duration;

use sqlx::postgres::PgPoolOptions;
use sqlx::{Executor as _, PgPool};
use stackship_api::signed_path::{KEY_LABEL, SignedPaths};
use stackship_api::{ApiSettings, App, AppInner};
use stackship_domain::ids::{OrganizationId, ProjectId, RunId, RunnerId, UserId, WorkspaceId};
use stackship_domain::run::Status;
use stackship_domain::{Actor, Role};
use stackship_projections::{CursorKey, Projector, RunReview, ViewWaiter, Views};
use stackship_store::notify::{Nudges, Topic};
use stackship_store::objects::{KeyRing, Objects};
use stackship_store::records::grants::{self, Grant, Scope};
use stackship_store::records::tokens::{self, NewToken};
use stackship_store::records::users::{self, NewUser, UserKind};
use stackship_store::records::workspaces::{self, NewWorkspace};
use stackship_store::records::{Origin, organizations, projects, runners};
use stackship_store::{Store, clock};
use stackship_workflow::engine::Engine;
use tokio_util::sync::CancellationToken;

/// How long something that must come true may take, on a machine that does much else.
pub const SOON: Duration = Duration::from_secs(90);
const CONNECTIONS_MAX: u32 = 8;

pub struct World {
    pub store: Store,
    pub views: Views,
    pub nudges: Nudges,
    /// `http://127.0.0.1:port`
    pub url: String,
    pub organization: OrganizationId,
    pub project: ProjectId,
    pub workspace: WorkspaceId,
    pub runner: RunnerId,
    pub operator: Member,
    pub planner: Member,
    pub reader: Member,
    /// The owner of another organization.
    pub stranger: Member,
    stop: CancellationToken,
    _directory: tempfile::TempDir,
}

pub struct Member {
    pub token: String,
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl World {
    pub async fn new(owner: PgPool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let pool = pool_as(&owner, "set role stackship_api");
        let keys = KeyRing::load_or_create(&directory.path().join("keys/key")).unwrap();
        let objects = Objects::open(&directory.path().join("objects"), keys, pool.clone()).unwrap();
        let store = Store::new(pool.clone(), objects);
        let (nudges, stop) = (Nudges::default(), CancellationToken::new());
        tokio::spawn(nudges.clone().listen(pool.clone(), stop.clone()));
        let projector = pool_as(&owner, "set role stackship_projector");
        tokio::spawn(Projector::new(projector, nudges.clone()).run(stop.clone()));
        tokio::spawn(Engine::new(store.clone(), nudges.clone()).run(stop.clone()));
        let views = Views::new(pool, CursorKey::new([7; 32]));
        let url = serve(&store, &views, &nudges, stop.clone()).await;

        let boss = user(&store, "ada").await;
        let organization =
            organizations::create(&store, &origin(boss), &"acme".parse().unwrap(), boss)
                .await
                .unwrap();
        let context = origin(boss).within(organization);
        let project = projects::create(&store, &context, &"default".parse().unwrap())
            .await
            .unwrap();
        let new = NewWorkspace {
            project,
            name: "net".parse().unwrap(),
            tofu_version: "1.12.6".parse().unwrap(),
            working_directory: String::new(),
            region: "local".to_owned(),
            platform: "linux_amd64".to_owned(),
            approval_seconds: 3600,
        };
        let workspace = workspaces::create(&store, &context, &new).await.unwrap();
        let (runner, _) = runners::create(&store, "tester").await.unwrap();
        let elsewhere = user(&store, "mallory").await;
        let other = organizations::create(
            &store,
            &origin(elsewhere),
            &"umbrella".parse().unwrap(),
            elsewhere,
        )
        .await
        .unwrap();
        Self {
            operator: member(&store, boss, organization, "opal", Role::Operator).await,
            planner: member(&store, boss, organization, "pia", Role::Planner).await,
            reader: member(&store, boss, organization, "rita", Role::Reader).await,
            stranger: Member {
                token: token(&store, elsewhere, other, elsewhere).await,
            },
            store,
            views,
            nudges,
            url,
            organization,
            project,
            workspace,
            runner,
            stop,
            _directory: directory,
        }
    }

    pub async fn review(&self, run: RunId) -> Option<RunReview> {
        self.views.review(self.organization, run).await.unwrap()
    }

    /// Waits until the run stands here.
    pub async fn until(&self, run: RunId, wanted: Status) -> RunReview {
        let looking = async {
            let mut nudges = self.nudges.subscribe();
            loop {
                if let Some(review) = self.review(run).await
                    && review.status == wanted
                {
                    return review;
                }
                let pause = Duration::from_millis(200);
                Nudges::wait(&mut nudges, Topic::Projected, None, pause).await;
            }
        };
        let found = tokio::time::timeout(SOON, looking).await;
        found.unwrap_or_else(|_| panic!("{run} never was {wanted}"))
    }

    /// How many runs there are.
    pub async fn runs(&self) -> i64 {
        sqlx::query_scalar("select count(*) from record.runs")
            .fetch_one(&self.store.pool)
            .await
            .unwrap()
    }
}

async fn serve(store: &Store, views: &Views, nudges: &Nudges, stop: CancellationToken) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let app = App::new(AppInner {
        store: store.clone(),
        views: views.clone(),
        waiter: ViewWaiter::new(store.pool.clone(), nudges.clone()),
        nudges: nudges.clone(),
        signer: SignedPaths::new(store.objects.keys().derive(KEY_LABEL)),
        settings: ApiSettings {
            public_url: url.clone(),
            hostname: "ship.test".to_owned(),
            gateway_url: url.clone(),
            default_tofu_version: "1.12.6".parse().unwrap(),
            default_region: "local".to_owned(),
            ready_lag_seconds: 30,
            lease_seconds: 30,
            plan_seconds_max: 600,
            apply_seconds_max: 600,
            snapshot_interval_seconds: 20,
        },
    });
    let router = stackship_api::router(app);
    tokio::spawn(async move {
        let served = axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned());
        served.await.unwrap();
    });
    url
}

fn pool_as(owner: &PgPool, role: &'static str) -> PgPool {
    PgPoolOptions::new()
        .max_connections(CONNECTIONS_MAX)
        .after_connect(move |connection, _| {
            Box::pin(async move {
                connection.execute(role).await?;
                Ok(())
            })
        })
        .connect_lazy_with((*owner.connect_options()).clone())
}

fn origin(user: UserId) -> Origin {
    Origin {
        actor: Actor::User(user),
        request_id: clock::fresh_text(),
        command_id: clock::fresh_text(),
    }
}

async fn user(store: &Store, login: &str) -> UserId {
    let new = NewUser {
        login: login.to_owned(),
        display_name: login.to_owned(),
        kind: UserKind::Person,
    };
    users::create(store, None, &new).await.unwrap()
}

async fn token(store: &Store, by: UserId, organization: OrganizationId, user: UserId) -> String {
    let new = NewToken {
        user,
        description: "test".to_owned(),
        expires_at: None,
    };
    let context = origin(by).within(organization);
    let (_, secret) = tokens::create(store, &context, &new).await.unwrap();
    secret.expose().to_owned()
}

async fn member(
    store: &Store,
    by: UserId,
    organization: OrganizationId,
    login: &str,
    role: Role,
) -> Member {
    let user = user(store, login).await;
    let grant = Grant {
        scope: Scope::Organization,
        user,
        role,
    };
    grants::grant(store, &origin(by).within(organization), grant)
        .await
        .unwrap();
    Member {
        token: token(store, by, organization, user).await,
    }
}
