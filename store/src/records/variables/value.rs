//! Variables as values: what is shown, what is sealed, and what no debug text may hold.

use std::fmt;

use stackship_domain::Timestamp;
use stackship_domain::ids::{OrganizationId, VariableId, WorkspaceId};
use stackship_domain::variable::VariableCategory;

use crate::StoreError;
use crate::columns::Columns;
use crate::objects::{KeyRing, Sealed};

/// A variable to be created.
#[derive(Clone)]
pub struct NewVariable {
    /// Its name.
    pub key: String,
    /// Its value.
    pub value: String,
    /// Where it goes.
    pub category: VariableCategory,
    /// Whether the value is an HCL expression.
    pub hcl: bool,
    /// Whether the value must never be shown.
    pub sensitive: bool,
    /// What it is for.
    pub description: String,
}

/// What is to be different; everything else stays.
#[derive(Clone, Default)]
pub struct VariableChange {
    /// The name.
    pub key: Option<String>,
    /// The value.
    pub value: Option<String>,
    /// Whether the value is an HCL expression.
    pub hcl: Option<bool>,
    /// Whether the value must never be shown; it cannot be taken back.
    pub sensitive: Option<bool>,
    /// What it is for.
    pub description: Option<String>,
}

/// A variable, as people see it.
#[derive(Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its id.
    pub id: VariableId,
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// Its name.
    pub key: String,
    /// Where it goes.
    pub category: VariableCategory,
    /// Whether the value is an HCL expression.
    pub hcl: bool,
    /// Whether the value is never shown.
    pub sensitive: bool,
    /// What it is for.
    pub description: String,
    /// Its value; absent when it is sensitive.
    pub value: Option<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

macro_rules! debug_without_value {
    ($($name:ident),+) => { $(
        impl fmt::Debug for $name {
            /// Leaves the value out: even a plain variable may hold what nobody meant to log.
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.debug_struct(stringify!($name)).field("key", &self.key).finish_non_exhaustive()
            }
        }
    )+ };
}
debug_without_value!(NewVariable, VariableChange, Variable);

/// The one row in which a sealed value may be opened.
pub(super) struct Place {
    pub organization: OrganizationId,
    pub workspace: WorkspaceId,
    pub variable: VariableId,
}

impl Place {
    fn context(&self) -> String {
        format!(
            "variable/{}/{}/{}",
            self.organization, self.workspace, self.variable
        )
    }
}

/// A value as its row keeps it.
pub(super) enum StoredValue {
    Plain(String),
    Sealed(Sealed),
}

impl StoredValue {
    pub(super) fn new(
        keys: &KeyRing,
        place: &Place,
        value: &str,
        sensitive: bool,
    ) -> Result<Self, StoreError> {
        if sensitive {
            Ok(Self::Sealed(keys.seal(&place.context(), value.as_bytes())?))
        } else {
            Ok(Self::Plain(value.to_owned()))
        }
    }

    pub(super) fn from_row(columns: &Columns<'_>) -> Result<Self, StoreError> {
        if let Some(value) = columns.plain::<Option<String>>("value")? {
            return Ok(Self::Plain(value));
        }
        Ok(Self::Sealed(Sealed {
            key_id: columns.plain("sealed_key_id")?,
            bytes: columns.plain("sealed_value")?,
        }))
    }

    /// The value in clear; `None` when what was sealed is no text.
    pub(super) fn open(self, keys: &KeyRing, place: &Place) -> Result<Option<String>, StoreError> {
        match self {
            Self::Plain(value) => Ok(Some(value)),
            Self::Sealed(sealed) => {
                let value = keys.open(&place.context(), &sealed.key_id, &sealed.bytes)?;
                Ok(std::str::from_utf8(&value).ok().map(ToOwned::to_owned))
            }
        }
    }

    pub(super) fn plain(&self) -> Option<&str> {
        match self {
            Self::Plain(value) => Some(value),
            Self::Sealed(_) => None,
        }
    }

    pub(super) fn sealed_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Plain(_) => None,
            Self::Sealed(sealed) => Some(&sealed.bytes),
        }
    }

    pub(super) fn sealed_key_id(&self) -> Option<&str> {
        match self {
            Self::Plain(_) => None,
            Self::Sealed(sealed) => Some(&sealed.key_id),
        }
    }
}
