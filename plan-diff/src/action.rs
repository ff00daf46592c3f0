//! What is going to happen to an object.

use serde::Serialize;
use stackship_domain::run::Counts;

use crate::change::ResourceChange;
use crate::json::{Cursor, JsonError};

/// The list `actions` of a change, as one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Action {
    NoOp,
    Read,
    Create,
    Update,
    Delete,
    ReplaceDestroyFirst,
    ReplaceCreateFirst,
    Forget,
    /// The old object is let go and lives on; a new one takes its place.
    ReplaceForget,
    /// One this reader does not know. It may destroy.
    #[default]
    Other,
}

/// Longer lists are no actions that anybody knows.
const ACTIONS_MAX: usize = 2;

impl Action {
    pub fn read(cursor: &mut Cursor<'_>) -> Result<Self, JsonError> {
        let (mut words, mut length) = ([const { String::new() }; ACTIONS_MAX], 0);
        cursor.array(|cursor| {
            let word = cursor.string()?;
            if let Some(place) = words.get_mut(length) {
                *place = word.into_owned();
            }
            length += 1;
            Ok(())
        })?;
        if length > ACTIONS_MAX {
            return Ok(Self::Other);
        }
        Ok(match (words[0].as_str(), words[1].as_str(), length) {
            ("no-op", _, 1) => Self::NoOp,
            ("read", _, 1) => Self::Read,
            ("create", _, 1) => Self::Create,
            ("update", _, 1) => Self::Update,
            ("delete", _, 1) => Self::Delete,
            ("forget", _, 1) => Self::Forget,
            ("delete", "create", 2) => Self::ReplaceDestroyFirst,
            ("create", "delete", 2) => Self::ReplaceCreateFirst,
            ("forget", "create", 2) => Self::ReplaceForget,
            _ => Self::Other,
        })
    }

    /// The list as OpenTofu writes it; what it said when this reader does not know it, is not told.
    pub fn words(self) -> &'static [&'static str] {
        match self {
            Self::NoOp => &["no-op"],
            Self::Read => &["read"],
            Self::Create => &["create"],
            Self::Update => &["update"],
            Self::Delete => &["delete"],
            Self::ReplaceDestroyFirst => &["delete", "create"],
            Self::ReplaceCreateFirst => &["create", "delete"],
            Self::Forget => &["forget"],
            Self::ReplaceForget => &["forget", "create"],
            Self::Other => &["other"],
        }
    }

    pub fn creates(self) -> bool {
        matches!(self, Self::Create) || self.replaces() || self == Self::ReplaceForget
    }

    pub fn replaces(self) -> bool {
        matches!(self, Self::ReplaceDestroyFirst | Self::ReplaceCreateFirst)
    }

    pub fn forgets(self) -> bool {
        matches!(self, Self::Forget | Self::ReplaceForget)
    }

    /// Nothing is known to survive an action that nobody knows.
    pub fn destroys(self) -> bool {
        matches!(self, Self::Delete | Self::Other) || self.replaces()
    }

    /// The object does not exist, or not in the state, afterwards.
    pub fn leaves_nothing(self) -> bool {
        matches!(self, Self::Delete | Self::Forget)
    }
}

/// Adds a resource's change to the counters.
pub(crate) fn count(resource: &ResourceChange<'_>, counts: &mut Counts) {
    let action = resource.change.action;
    // Reading a data source changes nothing. What nobody knows might.
    if resource.mode == "data" && action != Action::Other {
        return;
    }
    let add = |number: &mut u32, is_one: bool| *number = number.saturating_add(u32::from(is_one));
    add(&mut counts.create, action.creates());
    add(
        &mut counts.change,
        matches!(action, Action::Update | Action::Other),
    );
    add(&mut counts.destroy, action.destroys());
    add(&mut counts.replace, action.replaces());
    add(&mut counts.forget, action.forgets());
    add(&mut counts.import, resource.change.importing);
    add(&mut counts.moved, resource.is_moved());
}
