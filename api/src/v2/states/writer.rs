//! Who writes state: an applying run into its own workspace, and nobody else.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use stackship_domain::run::Phase;
use stackship_store::attempts::RunPrincipal;

use crate::App;
use crate::auth::{Caller, InWorkspace, OrRun, Principal, StateRead};
use crate::v2::access::May;
use crate::v2::error::V2Error;

/// An applying run, before the workspace `{workspace}`, which is its own.
pub struct Writer {
    /// Who calls.
    pub caller: Caller,
    /// The run.
    pub run: RunPrincipal,
}

impl FromRequestParts<App> for Writer {
    type Rejection = V2Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, V2Error> {
        let May(reached) =
            May::<InWorkspace<OrRun<StateRead>>>::from_request_parts(parts, app).await?;
        let run = allowed(&reached.caller.principal)?;
        Ok(Self {
            caller: reached.caller,
            run,
        })
    }
}

/// The refusals are 403 with a text, not 404: OpenTofu then says why and leaves its state in a file.
fn allowed(principal: &Principal) -> Result<RunPrincipal, V2Error> {
    match principal {
        Principal::Run(run) if run.phase == Phase::Apply && run.fence.is_some() => Ok(*run),
        Principal::Run(_) => Err(V2Error::forbidden(
            "state is written while applying",
            "Only the apply of an approved plan writes state; a plan does not.",
        )),
        Principal::User(_) => Err(V2Error::forbidden(
            "state is written by runs alone",
            "State here is written by runs, not from a terminal: use tofu plan and tofu apply without \
             TF_FORCE_LOCAL_BACKEND. If this command has changed infrastructure, keep its errored.tfstate and ask an owner \
             of the organization.",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::StatusCode;
    use stackship_domain::Fence;
    use stackship_domain::run::samples::{fence, id};
    use stackship_store::records::tokens;

    fn run(phase: Phase, fence: Option<Fence>) -> Principal {
        Principal::Run(RunPrincipal {
            organization: id(1),
            workspace: id(2),
            run: id(3),
            phase,
            attempt: id(4),
            fence,
        })
    }

    #[test]
    fn an_applying_run_with_a_fence_writes_and_nobody_else() {
        assert!(allowed(&run(Phase::Apply, Some(fence()))).is_ok());
        let person = Principal::User(tokens::Principal {
            user: id(1),
            organization: id(1),
            token: id(2),
        });
        for principal in [
            person,
            run(Phase::Plan, Some(fence())),
            run(Phase::Apply, None),
        ] {
            let refused = allowed(&principal).unwrap_err();
            assert_eq!(refused.status, StatusCode::FORBIDDEN, "{principal:?}");
            assert!(!refused.detail.is_empty());
        }
    }
}
