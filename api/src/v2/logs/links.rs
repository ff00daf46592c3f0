//! Addresses of logs. The client sends no credential with them and replaces their query, so the secret
//! is in the path, for one phase of one run.

use stackship_domain::ids::{OrganizationId, RunId};
use stackship_domain::run::Phase;
use stackship_store::clock;

use crate::App;
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
    /// The run.
    pub run: RunId,
    /// The phase.
    pub phase: Phase,
}

/// The address of a phase's log.
pub fn log_url(app: &App, organization: OrganizationId, run: RunId, phase: Phase) -> String {
    let path = SignedPath {
        purpose: PURPOSE,
        organization,
        subject: format!("{run} {phase}"),
    };
    let token = app.signer.sign(&path, urls::in_seconds(LIFETIME_SECONDS));
    urls::api(app, Base::Public, &format!("logs/{token}"))
}

impl LogLink {
    /// Which log a token opens.
    pub fn open(app: &App, token: &str) -> Option<Self> {
        let path = app.signer.open(PURPOSE, token, clock::now())?;
        let (run, phase) = path.subject.split_once(' ')?;
        Some(Self {
            organization: path.organization,
            run: run.parse().ok()?,
            phase: Phase::ALL
                .iter()
                .copied()
                .find(|known| known.as_str() == phase)?,
        })
    }
}
