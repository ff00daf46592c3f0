//! `stackship admin`: what only somebody at the machine may set up.

use stackship_domain::ids::{OrganizationId, ProjectId, UserId};
use stackship_domain::{Actor, Name};
use stackship_store::log::Context;
use stackship_store::records::passwords::{self, Password};
use stackship_store::records::tokens::{Descent, NewToken};
use stackship_store::records::users::{NewUser, UserKind};
use stackship_store::records::{Origin, Secret, organizations, projects, runners, tokens, users};
use stackship_store::{Store, clock};

use crate::Failure;
use crate::answer::answer;
use crate::cli::Admin;
use crate::database::Database;
use crate::settings::Settings;

/// Carries out one administrative command.
pub async fn run(settings: &Settings, command: Admin) -> Result<(), Failure> {
    let database = match &command {
        Admin::Bootstrap { .. } => Database::join_or_make(settings).await?,
        _ => Database::join(settings).await?,
    };
    let store = database.store(settings)?;
    let outcome = match command {
        Admin::Bootstrap {
            organization,
            login,
            display_name,
            project,
            json,
        } => {
            let owner = Owner {
                display_name: display_name.unwrap_or_else(|| login.clone()),
                login,
            };
            bootstrap(&store, &organization, &owner, &project, json).await
        }
        Admin::SetPassword {
            organization,
            login,
        } => set_password(&store, &organization, &login).await,
        Admin::CreateToken {
            organization,
            login,
        } => create_token(&store, &organization, &login).await,
        Admin::CreateRunner { name } => create_runner(&store, &name).await,
    };
    store.pool.close().await;
    database.close().await?;
    outcome
}

/// Whoever an organization is made for.
pub struct Owner {
    pub login: String,
    pub display_name: String,
}

async fn bootstrap(
    store: &Store,
    organization: &str,
    owner: &Owner,
    project: &str,
    json: bool,
) -> Result<(), Failure> {
    let organization: Name = organization
        .parse()
        .map_err(|error| format!("--organization: {error}"))?;
    let project: Name = project
        .parse()
        .map_err(|error| format!("--project: {error}"))?;
    if organizations::by_name(&store.pool, &organization)
        .await?
        .is_some()
    {
        return Err(format!(
            "--organization: `{organization}` exists already; its owner makes further tokens"
        )
        .into());
    }
    let made = set_up(store, &organization, owner, &project).await?;
    let (id, user, project_id) = (made.organization, made.owner, made.project);
    if json {
        let made = serde_json::json!({
            "organization": organization, "organization_id": id, "project": project, "project_id": project_id,
            "user_id": user, "token": made.token.expose(),
        });
        answer(made)?;
    } else {
        answer(format_args!("Organization  {organization} ({id})"))?;
        answer(format_args!("Owner         {} ({user})", owner.login))?;
        answer(format_args!("Project       {project} ({project_id})"))?;
        answer(format_args!("Token         {}", made.token.expose()))?;
        answer("The token is shown this once; keep it where secrets are kept.")?;
    }
    Ok(())
}

/// A new organization with what it needs to be used.
pub struct Made {
    pub organization: OrganizationId,
    pub owner: UserId,
    pub project: ProjectId,
    pub token: Secret,
}

/// Makes an organization, its owner unless there is such a user, and its first project.
pub async fn set_up(
    store: &Store,
    organization: &Name,
    owner: &Owner,
    project: &Name,
) -> Result<Made, Failure> {
    let origin = operator();
    let user = if let Some(user) = users::by_login(&store.pool, &owner.login).await? {
        user.id
    } else {
        users::check_login(&owner.login).map_err(|invalid| format!("--login: {invalid}"))?;
        let new = NewUser {
            login: owner.login.clone(),
            display_name: owner.display_name.clone(),
            kind: UserKind::Person,
        };
        users::create(store, None, &new).await?
    };
    let id = organizations::create(store, &origin, organization, user).await?;
    let context = origin.within(id);
    let project = projects::create(store, &context, project).await?;
    let new = NewToken {
        user,
        description: "Made by stackship admin bootstrap".to_owned(),
        expires_at: None,
        descent: Descent::Machine,
    };
    let (_, token) = tokens::create(store, &context, &new).await?;
    Ok(Made {
        organization: id,
        owner: user,
        project,
        token,
    })
}

/// Whoever has the machine.
fn operator() -> Origin {
    Origin {
        actor: Actor::Operator,
        request_id: clock::fresh_text(),
        command_id: clock::fresh_text(),
    }
}

/// A member of an organization, both found by their names.
async fn member(store: &Store, organization: &str, login: &str) -> Result<Member, Failure> {
    let name: Name = organization
        .parse()
        .map_err(|error| format!("--organization: {error}"))?;
    let organization = organizations::by_name(&store.pool, &name)
        .await?
        .ok_or_else(|| format!("--organization: there is no `{name}`"))?;
    let user = users::by_login(&store.pool, login)
        .await?
        .ok_or_else(|| format!("--login: there is no user `{login}`"))?;
    if users::member(&store.pool, organization.id, user.id)
        .await?
        .is_none()
    {
        return Err(format!("--login: `{login}` is no member of `{name}`").into());
    }
    Ok(Member {
        context: operator().within(organization.id),
        user: user.id,
    })
}

struct Member {
    context: Context,
    user: UserId,
}

async fn set_password(store: &Store, organization: &str, login: &str) -> Result<(), Failure> {
    let member = member(store, organization, login).await?;
    let password = tokio::task::spawn_blocking(read_line).await??;
    let password = Password::new(password)?;
    passwords::set(store, &member.context, member.user, password).await?;
    answer(format_args!("The password of {login} is set."))?;
    Ok(())
}

async fn create_token(store: &Store, organization: &str, login: &str) -> Result<(), Failure> {
    let member = member(store, organization, login).await?;
    let new = NewToken {
        user: member.user,
        description: "Made by stackship admin create-token".to_owned(),
        expires_at: None,
        descent: Descent::Machine,
    };
    let (id, token) = tokens::create(store, &member.context, &new).await?;
    answer(format_args!("Owner  {login} ({})", member.user))?;
    answer(format_args!("Token  {} ({id})", token.expose()))?;
    answer("The token is shown this once; keep it where secrets are kept.")?;
    Ok(())
}

/// One line, without its end; nothing longer than a password may be.
fn read_line() -> std::io::Result<String> {
    use std::io::{BufRead as _, Read as _};
    let mut line = String::new();
    let longest = passwords::PASSWORD_BYTES_MAX as u64 + 2;
    std::io::stdin().lock().take(longest).read_line(&mut line)?;
    line.truncate(line.trim_end_matches(['\r', '\n']).len());
    Ok(line)
}

async fn create_runner(store: &Store, name: &str) -> Result<(), Failure> {
    let (id, token) = runners::create(store, name).await?;
    answer(format_args!("Runner  {name} ({id})"))?;
    answer(format_args!("Token   {}", token.expose()))?;
    answer("The token is shown this once; put it into a file for `runner.token_file`.")?;
    Ok(())
}
