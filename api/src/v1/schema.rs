//! Schemas of closed sets and ids, from the domain's own lists.

use serde_json::Value;
use stackship_domain::Role;
use stackship_domain::run::{
    DoubtReason, PlanChanges, PolicyOutcome, RunKind, SourceKind, Status, TerminalReason, Warning,
};
use stackship_domain::variable::VariableCategory;
use stackship_policy::Level;
use stackship_store::records::users::UserKind;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, SchemaType, Type};

/// One of these texts.
pub(super) fn one_of(names: impl IntoIterator<Item = &'static str>) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(names))
}

/// One of these texts, or null.
pub(super) fn one_of_or_null(names: impl IntoIterator<Item = &'static str>) -> ObjectBuilder {
    let names = names.into_iter().map(Value::from).chain([Value::Null]);
    ObjectBuilder::new()
        .schema_type(SchemaType::Array(vec![Type::String, Type::Null]))
        .enum_values(Some(names))
}

macro_rules! closed_sets {
    ($($name:ident = $set:ty),+ $(,)?) => { $(
        pub(super) fn $name() -> ObjectBuilder {
            one_of(<$set>::ALL.iter().map(|member| member.as_str()))
        }
    )+ };
}

closed_sets! {
    status = Status,
    reason = TerminalReason,
    run_kind = RunKind,
    source_kind = SourceKind,
    plan_changes = PlanChanges,
    policy_outcome = PolicyOutcome,
    role = Role,
    doubt_reason = DoubtReason,
}

pub(super) fn category() -> ObjectBuilder {
    one_of(
        [VariableCategory::Terraform, VariableCategory::Env]
            .into_iter()
            .map(VariableCategory::as_str),
    )
}

pub(super) fn warning() -> ObjectBuilder {
    one_of(Warning::CODES.iter().copied())
}

pub(super) fn user_kind() -> ObjectBuilder {
    one_of([UserKind::Person, UserKind::Service].map(UserKind::as_str))
}

pub(super) fn policy_level() -> ObjectBuilder {
    one_of([Level::Advisory, Level::SoftMandatory, Level::HardMandatory].map(Level::as_str))
}

pub(super) fn time() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
}
