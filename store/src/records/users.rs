//! Users: people, made by the operator, and service accounts, made within an organization. Grants say
//! what each may do in one.

use std::collections::HashMap;

use serde_json::json;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, PgPool};
use stackship_domain::Timestamp;
use stackship_domain::ids::{OrganizationId, UserId};

use super::{Page, commit, tell};
use crate::columns::Columns;
use crate::log::Context;
use crate::{Store, StoreError, Violation, clock};

const COLUMNS: &str = "user_id, login, display_name, kind, created_at, disabled_at";
/// Whether a user belongs to the organization `$1`: made in it, or with a role in it.
const IS_MEMBER: &str = "(created_in = $1 or exists (select from record.role_grants granted \
     where granted.organization_id = $1 and granted.user_id = users.user_id))";

/// The longest login, in characters.
pub const LOGIN_CHARS_MAX: usize = 200;

/// A text that cannot be a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a login has 1 to 200 letters, digits, `.`, `_`, `-`, `+` or `@` and begins with a letter or a digit"
)]
pub struct InvalidLogin;

/// Whether a new user may sign in with this: what stands in commands and logs has no blanks, and does
/// not look like another one's.
pub fn check_login(login: &str) -> Result<(), InvalidLogin> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+@".contains(&byte);
    let begins_well = login
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphanumeric());
    let fits = begins_well && login.len() <= LOGIN_CHARS_MAX && login.bytes().all(is_allowed);
    fits.then_some(()).ok_or(InvalidLogin)
}

/// Whether a user is a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserKind {
    /// A person.
    Person,
    /// A program.
    Service,
}

impl UserKind {
    const ALL: [Self; 2] = [Self::Person, Self::Service];

    /// The name in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Service => "service",
        }
    }
}

/// A user to be created.
#[derive(Debug, Clone)]
pub struct NewUser {
    /// What the user signs in with; unique among people, and among an organization's service accounts.
    pub login: String,
    /// What others see.
    pub display_name: String,
    /// Whether it is a person.
    pub kind: UserKind,
}

/// A user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Its id.
    pub id: UserId,
    /// What the user signs in with.
    pub login: String,
    /// What others see.
    pub display_name: String,
    /// Whether it is a person.
    pub kind: UserKind,
    /// When it was created.
    pub created_at: Timestamp,
    /// Since when it may do nothing any more.
    pub disabled_at: Option<Timestamp>,
}

/// Creates a user. The fact is told in the organization of `context`; without one (the first user of
/// an installation) there is nobody to tell. Personal data stays out of the log.
pub async fn create(
    store: &Store,
    context: Option<&Context>,
    new: &NewUser,
) -> Result<UserId, StoreError> {
    let id: UserId = clock::fresh();
    let mut transaction = store.pool.begin().await?;
    if let Some(context) = context {
        is_no_persons(&mut transaction, context.organization, &new.login).await?;
    }
    sqlx::query(
        "insert into record.users (user_id, login, display_name, kind, created_in) values ($1, $2, $3, $4, $5)",
    )
    .bind(id.to_string())
    .bind(&new.login)
    .bind(&new.display_name)
    .bind(new.kind.as_str())
    .bind(context.map(|context| context.organization.to_string()))
    .execute(&mut *transaction)
    .await?;
    if let Some(context) = context {
        tell(
            &mut transaction,
            context,
            "user_created",
            json!({"user": id, "kind": new.kind.as_str()}),
        )
        .await?;
    }
    commit(store, transaction).await?;
    Ok(id)
}

/// Whoever reads a name in a review or a history must not take a service account for a person beside
/// it. Only the organization's own people count: others are none of its business.
async fn is_no_persons(
    connection: &mut PgConnection,
    organization: OrganizationId,
    login: &str,
) -> Result<(), StoreError> {
    let is_taken: bool = sqlx::query_scalar(&format!(
        "select exists (select from record.users \
           where kind = $2 and lower(login) = lower($3) and {IS_MEMBER})"
    ))
    .bind(organization.to_string())
    .bind(UserKind::Person.as_str())
    .bind(login)
    .fetch_one(connection)
    .await?;
    if is_taken {
        return Err(Violation::Taken { field: "login" }.into());
    }
    Ok(())
}

/// The person who signs in with this.
pub async fn by_login(pool: &PgPool, login: &str) -> Result<Option<User>, StoreError> {
    let row = sqlx::query(&format!(
        "select {COLUMNS} from record.users where login = $1 and created_in is null"
    ))
    .bind(login)
    .fetch_optional(pool)
    .await?;
    row.as_ref().map(parse).transpose()
}

/// The user with this id.
pub async fn by_id(pool: &PgPool, id: UserId) -> Result<Option<User>, StoreError> {
    let row = sqlx::query(&format!(
        "select {COLUMNS} from record.users where user_id = $1"
    ))
    .bind(id.to_string())
    .fetch_optional(pool)
    .await?;
    row.as_ref().map(parse).transpose()
}

/// What others see of these users; unknown ones are left out.
pub async fn display_names(
    pool: &PgPool,
    ids: &[UserId],
) -> Result<HashMap<UserId, String>, StoreError> {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let rows =
        sqlx::query("select user_id, display_name from record.users where user_id = any($1)")
            .bind(ids)
            .fetch_all(pool)
            .await?;
    let name = |row: &PgRow| {
        let columns = Columns::new(row, "record.users", "user_id")?;
        Ok((columns.parsed("user_id")?, columns.plain("display_name")?))
    };
    rows.iter().map(name).collect()
}

fn parse(row: &PgRow) -> Result<User, StoreError> {
    let columns = Columns::new(row, "record.users", "user_id")?;
    Ok(User {
        id: columns.parsed("user_id")?,
        login: columns.plain("login")?,
        display_name: columns.plain("display_name")?,
        kind: columns.member("kind", &UserKind::ALL, UserKind::as_str)?,
        created_at: columns.time("created_at")?,
        disabled_at: columns.time_or_null("disabled_at")?,
    })
}

/// The organization's members, in the order of their ids: whoever was made in it or has a role in it.
pub async fn members(
    pool: &PgPool,
    organization: OrganizationId,
    page: &Page,
) -> Result<Vec<User>, StoreError> {
    let rows = sqlx::query(&format!(
        "select {COLUMNS} from record.users where user_id > $2 and {IS_MEMBER} order by user_id limit $3"
    ))
    .bind(organization.to_string())
    .bind(page.after())
    .bind(page.limit())
    .fetch_all(pool)
    .await?;
    rows.iter().map(parse).collect()
}

/// The organization's member with this id.
pub async fn member(
    pool: &PgPool,
    organization: OrganizationId,
    id: UserId,
) -> Result<Option<User>, StoreError> {
    let row = sqlx::query(&format!(
        "select {COLUMNS} from record.users where user_id = $2 and {IS_MEMBER}"
    ))
    .bind(organization.to_string())
    .bind(id.to_string())
    .fetch_optional(pool)
    .await?;
    row.as_ref().map(parse).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_one_plain_word() {
        for login in ["ada", "ada.l", "ada@example.com", "ci-1_x+y", "7"] {
            assert_eq!(check_login(login), Ok(()), "{login}");
        }
        let long = "a".repeat(LOGIN_CHARS_MAX + 1);
        for login in [
            "",
            "Ada L",
            "-ada",
            "@ada",
            "ada\n",
            "\u{430}da",
            "a/b",
            &long,
        ] {
            assert_eq!(check_login(login), Err(InvalidLogin), "{login:?}");
        }
    }
}
