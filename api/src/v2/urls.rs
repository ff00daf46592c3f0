//! Absolute URLs that answers carry.

use stackship_domain::Timestamp;
use stackship_domain::ids::RunId;
use stackship_store::clock;

use crate::App;
use crate::auth::{Caller, Principal};

/// From where a URL will be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// By people.
    Public,
    /// From inside a sandbox, which reaches the gateway alone.
    Gateway,
}

impl Base {
    /// From where this caller follows URLs.
    pub const fn of(caller: &Caller) -> Self {
        match caller.principal {
            Principal::User(_) => Self::Public,
            Principal::Run(_) => Self::Gateway,
        }
    }
}

/// The absolute URL of a path of this edge.
pub fn api(app: &App, base: Base, path: &str) -> String {
    let base = match base {
        Base::Public => &app.settings.public_url,
        Base::Gateway => &app.settings.gateway_url,
    };
    format!("{base}/api/v2/{path}")
}

/// The page of a run, as the client prints it.
pub fn run_page(app: &App, organization: &str, workspace: &str, run: RunId) -> String {
    format!(
        "{}/app/{organization}/{workspace}/runs/{run}",
        app.settings.public_url
    )
}

/// A moment so many seconds from now.
pub fn in_seconds(seconds: i64) -> Timestamp {
    let now = clock::now();
    Timestamp::from_second(now.as_second().saturating_add(seconds)).unwrap_or(now)
}
