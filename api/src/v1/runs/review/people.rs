//! Who did something: always an id, and a name where somebody has one.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;
use stackship_domain::Actor;
use stackship_domain::ids::UserId;
use stackship_projections::RunReview;
use stackship_projections::run_review::Decision;
use utoipa::ToSchema;

use super::known::Known;

/// Whoever did something.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub(super) struct Person {
    /// Its id; `system` or `operator` where nobody has one.
    #[schema(value_type = String)]
    actor: Actor,
    /// Who or what that is.
    kind: PersonKind,
    /// What others see.
    display_name: Known<String>,
}

/// Who or what can do something.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum PersonKind {
    /// A person or a service account.
    User,
    /// A runner.
    Runner,
    /// StackShip itself.
    System,
    /// Somebody at the machine itself.
    Operator,
}

/// What others see of the users that a review names.
#[derive(Debug, Default)]
pub(super) struct Names(HashMap<UserId, String>);

impl Names {
    pub(super) const fn new(names: HashMap<UserId, String>) -> Self {
        Self(names)
    }

    pub(super) fn person(&self, actor: Actor) -> Person {
        let (kind, name) = match actor {
            Actor::User(user) => (PersonKind::User, self.0.get(&user).cloned()),
            Actor::Runner(_) => (PersonKind::Runner, None),
            Actor::System => (PersonKind::System, None),
            Actor::Operator => (PersonKind::Operator, None),
        };
        Person {
            actor,
            kind,
            display_name: name.into(),
        }
    }
}

/// Every user that a review names, each once.
pub(super) fn named_users(review: &RunReview) -> Vec<UserId> {
    let decision = review.approval.decision.as_ref();
    let resolved = review
        .recovery
        .as_ref()
        .and_then(|recovery| recovery.resolved.as_ref());
    let actors = [
        Some(review.facts.created_by),
        decision.and_then(decided_by),
        resolved.map(|resolved| resolved.by),
        review.ended.as_ref().map(|end| end.by),
        review.cancel_requested.as_ref().map(|asked| asked.by),
    ];
    let overrides = review.policy.overrides.iter().map(|given| given.by);
    let users = actors
        .into_iter()
        .flatten()
        .chain(overrides)
        .filter_map(|actor| match actor {
            Actor::User(user) => Some(user),
            Actor::Runner(_) | Actor::System | Actor::Operator => None,
        });
    users.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Whoever answered a question; nobody when a newer run or the clock did.
pub(super) const fn decided_by(decision: &Decision) -> Option<Actor> {
    match decision {
        Decision::Approved { by, .. }
        | Decision::Discarded { by, .. }
        | Decision::Canceled { by, .. } => Some(*by),
        Decision::Superseded { .. } | Decision::Expired { .. } => None,
    }
}
