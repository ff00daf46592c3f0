//! Addresses of logs. The client sends no credential with them and replaces their query, so the secret
//! is in the path, for one phase of one run. It is given to one token and does not outlive it.

use stackship_domain::ids::{OrganizationId, RunId, TokenId};
use stackship_domain::run::Phase;
use stackship_store::clock;
use stackship_store::records::tokens;

use crate::App;
use crate::auth::{Caller, Denied, InRun, RunRead};
use crate::serving::AtHand;
use crate::signed_path::SignedPath;
use crate::v2::urls::{self, Base};

/// What the signature is for.
const PURPOSE: &str = "v2-log";
/// How long an address holds: longer than any run can be watched, an approval's wait included.
const LIFETIME_SECONDS: i64 = 30 * 24 * 60 * 60;

/// Which log an address opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLink {
    /// The tenant.
    pub organization: OrganizationId,
    /// To which token it was given.
    token: TokenId,
    /// The run.
    pub run: RunId,
    /// The phase.
    pub phase: Phase,
}

/// The address of a phase's log, for the token that asks.
pub fn log_url(app: &App, reader: &tokens::Principal, run: RunId, phase: Phase) -> String {
    let path = SignedPath {
        purpose: PURPOSE,
        organization: reader.organization,
        subject: format!("{run} {phase} {}", reader.token),
    };
    let token = app.signer.sign(&path, urls::in_seconds(LIFETIME_SECONDS));
    urls::api(app, Base::Public, &format!("logs/{token}"))
}

impl LogLink {
    /// Which log a token opens.
    pub fn open(app: &App, token: &str) -> Option<Self> {
        let path = app.signer.open(PURPOSE, token, clock::now())?;
        let fields: Vec<&str> = path.subject.split(' ').collect();
        let [run, phase, token] = <[&str; 3]>::try_from(fields).ok()?;
        Some(Self {
            organization: path.organization,
            token: token.parse().ok()?,
            run: run.parse().ok()?,
            phase: Phase::ALL
                .iter()
                .copied()
                .find(|known| known.as_str() == phase)?,
        })
    }

    /// Whether the token it was given to is live and may still read the run. The request is its user's.
    pub async fn is_open(&self, app: &App, at_hand: &AtHand) -> Result<bool, Denied> {
        let Some(caller) = Caller::behind(app, self.organization, self.token).await? else {
            return Ok(false);
        };
        at_hand.is_of(caller.account())?;
        match InRun::<RunRead>::find(app, caller, &self.run.to_string()).await {
            Ok(_) => Ok(true),
            Err(failure @ Denied::Store(_)) => Err(failure),
            Err(_) => Ok(false),
        }
    }
}
