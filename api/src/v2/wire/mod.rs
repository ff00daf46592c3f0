//! Wire types: JSON:API as the client's decoder wants it. A wrong type name, a number where a text
//! belongs or a time that does not end in `Z` makes the client throw the whole answer away, so every
//! document here has a golden file.

mod body;
mod configuration;
mod organization;
mod policy;
mod run;
mod state;
mod workspace;

#[cfg(test)]
mod golden;

pub use body::{Body, MEDIA_TYPE, Path, Query, respond};
pub use configuration::{
    ConfigurationAttributes, ConfigurationRequest, ConfigurationResource, ConfigurationStatus,
};
pub use organization::{
    CapacityAttributes, CapacityResource, EntitlementAttributes, EntitlementResource,
    ProjectAttributes, ProjectRequest, ProjectResource,
};
pub use policy::{
    PolicyCheckActions, PolicyCheckAttributes, PolicyCheckPermissions, PolicyCheckRelationships,
    PolicyCheckResource, PolicyCheckResult,
};
pub use run::{
    ActionFlags, ApplyAttributes, ApplyResource, ListedRun, ListedRunAttributes, PlanAttributes,
    PlanResource, RunAttributes, RunEventAttributes, RunEventResource, RunPermissions,
    RunRelationships, RunRequest, RunRequestAttributes, RunRequestRelationships, RunResource,
    StatusTimes,
};
pub use state::{
    OutputAttributes, OutputResource, StateAttributes, StateRelationships, StateRequest,
    StateRequestAttributes, StateResource,
};
pub use workspace::{
    WorkspaceActions, WorkspaceAttributes, WorkspaceChangeRequest, WorkspacePermissions,
    WorkspaceRelationships, WorkspaceRequest, WorkspaceRequestAttributes, WorkspaceResource,
};

use serde::{Deserialize, Serialize};

/// The type names of resources, exactly as the client compares them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// An apply.
    Applies,
    /// A configuration version.
    ConfigurationVersions,
    /// What an organization may do.
    EntitlementSets,
    /// How busy an organization is.
    OrganizationCapacity,
    /// An organization.
    Organizations,
    /// A plan.
    Plans,
    /// What policies say about a run.
    PolicyChecks,
    /// A project.
    Projects,
    /// A notice about a run.
    RunEvents,
    /// A run.
    Runs,
    /// One output of a state.
    StateVersionOutputs,
    /// A state version.
    StateVersions,
    /// A workspace.
    Workspaces,
}

/// A document with one resource, or with a list of them.
#[derive(Debug, Serialize)]
pub struct Document<D> {
    /// The resource or resources.
    pub data: D,
    /// Resources that the request asked to get along with it; never the primary one, and none that
    /// points at another one in here: the client expands them without an end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub included: Vec<Included>,
    /// Only a list has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl<D> Document<D> {
    /// A document with nothing beside its data.
    pub const fn of(data: D) -> Self {
        Self {
            data,
            included: Vec::new(),
            meta: None,
        }
    }
}

impl<R> Document<Vec<R>> {
    /// A list that fits one page.
    pub fn list(items: Vec<R>) -> Self {
        let total = items.len();
        Self {
            meta: Some(Meta {
                pagination: Pagination::single(total),
            }),
            ..Self::of(items)
        }
    }
}

/// What a list says about itself.
#[derive(Debug, Serialize)]
pub struct Meta {
    pagination: Pagination,
}

/// Where a list stands. Every list of this edge is one page: a total that is larger than the page it
/// comes with would make the client ask for ever.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Pagination {
    current_page: u32,
    prev_page: Option<u32>,
    next_page: Option<u32>,
    total_pages: u32,
    total_count: usize,
}

impl Pagination {
    const fn single(total_count: usize) -> Self {
        Self {
            current_page: 1,
            prev_page: None,
            next_page: None,
            total_pages: 1,
            total_count,
        }
    }
}

/// A resource that comes along.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Included {
    /// The plan of a run.
    Plan(PlanResource),
    /// The workspace of a run.
    Workspace(Box<WorkspaceResource>),
}

/// A resource.
#[derive(Debug, Serialize)]
pub struct Resource<A, R = NoRelationships> {
    /// Its id; no slash and no space.
    pub id: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// What it says of itself.
    pub attributes: A,
    /// What it points at.
    pub relationships: R,
}

impl<A> Resource<A> {
    /// A resource that points at nothing.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "ids are copied, and names are borrowed"
    )]
    pub fn plain(kind: Kind, id: impl ToString, attributes: A) -> Self {
        Self {
            id: id.to_string(),
            kind,
            attributes,
            relationships: NoRelationships {},
        }
    }
}

/// Points at nothing.
#[derive(Debug, Serialize)]
pub struct NoRelationships {}

/// Points at one resource, or at none.
#[derive(Debug, Serialize)]
pub struct ToOne {
    data: Option<Pointer>,
}

impl ToOne {
    /// Points at this.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "ids are copied, and names are borrowed"
    )]
    pub fn to(kind: Kind, id: impl ToString) -> Self {
        Self {
            data: Some(Pointer {
                id: id.to_string(),
                kind,
            }),
        }
    }

    /// Points at nothing.
    pub const NONE: Self = Self { data: None };
}

/// Points at a list.
#[derive(Debug, Serialize)]
pub struct ToMany {
    data: Vec<Pointer>,
}

impl ToMany {
    /// Points at this one, or at nothing.
    pub fn of(kind: Kind, id: Option<String>) -> Self {
        Self {
            data: id.into_iter().map(|id| Pointer { id, kind }).collect(),
        }
    }
}

/// Points at a list that is always empty here.
#[derive(Debug, Serialize)]
pub struct ToNobody {
    data: [Pointer; 0],
}

impl ToNobody {
    /// The empty list.
    pub const EMPTY: Self = Self { data: [] };
}

#[derive(Debug, Serialize)]
struct Pointer {
    id: String,
    #[serde(rename = "type")]
    kind: Kind,
}

/// A relationship in a request. Its type is not looked at: the place says what it must be.
#[derive(Debug, Clone, Deserialize)]
pub struct Named {
    /// The resource.
    pub data: Option<NamedData>,
}

/// A resource that a request names.
#[derive(Debug, Clone, Deserialize)]
pub struct NamedData {
    /// Its id; absent for what does not exist yet.
    pub id: Option<String>,
}

impl Named {
    /// The id, when there is one.
    pub fn id(this: Option<&Self>) -> Option<&str> {
        this?.data.as_ref()?.id.as_deref()
    }
}

/// A request with one resource in it.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "A: Deserialize<'de>, R: Deserialize<'de> + Default"))]
pub struct Request<A, R = Ignored> {
    /// The resource.
    pub data: RequestData<A, R>,
}

/// The resource of a request. Its type is not looked at: some requests of the client leave it empty.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "A: Deserialize<'de>, R: Deserialize<'de> + Default"))]
pub struct RequestData<A, R> {
    /// What it says.
    pub attributes: A,
    /// What it points at.
    #[serde(default)]
    pub relationships: R,
}

/// What a request says and nobody looks at.
#[derive(Debug, Default, Deserialize)]
pub struct Ignored {}
