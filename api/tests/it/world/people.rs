//! Organizations and who is in them.

use stackship_domain::ids::{OrganizationId, ProjectId, UserId, WorkspaceId};
use stackship_domain::{Actor, Role};
use stackship_store::records::grants::{self, Grant, Scope};
use stackship_store::records::tokens::{self, Descent, NewToken};
use stackship_store::records::users::{self, NewUser, UserKind};
use stackship_store::records::workspaces::{self, NewWorkspace};
use stackship_store::records::{Origin, organizations, projects};
use stackship_store::{Store, clock};

/// One organization with its people.
pub struct Tenant {
    pub name: &'static str,
    pub organization: OrganizationId,
    pub project: ProjectId,
    pub workspace: WorkspaceId,
    pub owner: Member,
    pub operator: Member,
    pub planner: Member,
    pub reader: Member,
}

pub struct Member {
    pub user: UserId,
    pub token: String,
}

impl Tenant {
    pub async fn new(store: &Store, name: &'static str) -> Self {
        let owner = users::create(store, None, &new_user(&format!("{name}-owner")))
            .await
            .unwrap();
        let origin = origin(owner);
        let organization = organizations::create(store, &origin, &name.parse().unwrap(), owner)
            .await
            .unwrap();
        let context = origin.within(organization);
        let project = projects::create(store, &context, &"default".parse().unwrap())
            .await
            .unwrap();
        let new = new_workspace(project, "net");
        let workspace = workspaces::create(store, &context, &new).await.unwrap();
        let mut tenant = Self {
            name,
            organization,
            project,
            workspace,
            owner: Member {
                user: owner,
                token: token(store, organization, owner).await,
            },
            operator: Member::none(),
            planner: Member::none(),
            reader: Member::none(),
        };
        tenant.operator = tenant.member(store, Role::Operator).await;
        tenant.planner = tenant.member(store, Role::Planner).await;
        tenant.reader = tenant.member(store, Role::Reader).await;
        tenant
    }

    async fn member(&self, store: &Store, role: Role) -> Member {
        let user = users::create(store, None, &new_user(&format!("{}-{role}", self.name)))
            .await
            .unwrap();
        let context = origin(self.owner.user).within(self.organization);
        let grant = Grant {
            scope: Scope::Organization,
            user,
            role,
        };
        grants::grant(store, &context, grant).await.unwrap();
        Member {
            user,
            token: token(store, self.organization, user).await,
        }
    }

    pub fn path(&self, rest: &str) -> String {
        format!("/v1/organizations/{}/{rest}", self.name)
    }
}

impl Member {
    fn none() -> Self {
        Self {
            user: clock::fresh(),
            token: String::new(),
        }
    }
}

pub fn new_user(login: &str) -> NewUser {
    NewUser {
        login: login.to_owned(),
        display_name: "Somebody".to_owned(),
        kind: UserKind::Service,
    }
}

pub fn new_workspace(project: ProjectId, name: &str) -> NewWorkspace {
    NewWorkspace {
        project,
        name: name.parse().unwrap(),
        tofu_version: "1.12.6".parse().unwrap(),
        working_directory: String::new(),
        region: "local".to_owned(),
        platform: "linux_amd64".to_owned(),
        approval_seconds: 3600,
    }
}

pub async fn token(store: &Store, organization: OrganizationId, user: UserId) -> String {
    let new = NewToken {
        user,
        description: "test".to_owned(),
        expires_at: None,
        descent: Descent::Machine,
    };
    let (_, secret) = tokens::create(store, &origin(user).within(organization), &new)
        .await
        .unwrap();
    secret.expose().to_owned()
}

pub fn origin(user: UserId) -> Origin {
    Origin {
        actor: Actor::User(user),
        request_id: "test".to_owned(),
        command_id: clock::fresh_text(),
    }
}
