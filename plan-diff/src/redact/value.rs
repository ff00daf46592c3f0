//! A value of which only what may be shown can be reached.

use crate::json::Node;

/// A value after the passes. The lifetimes are those of the value it was made from.
pub(crate) enum Redacted<'t> {
    /// There is no value.
    Absent,
    /// Known only after the apply.
    Unknown,
    /// Masked as sensitive.
    Sensitive(Hidden<'t>),
    /// Contains something that is masked elsewhere.
    Withheld(Hidden<'t>),
    /// Null, a boolean, a number or a string.
    Scalar(&'t Node<'t>),
    List(&'t Node<'t>, Vec<Redacted<'t>>),
    /// Members in the order of their keys.
    Object(&'t Node<'t>, Vec<(&'t str, Redacted<'t>)>),
}

/// A value that is not shown. All it tells is whether it changes.
pub(crate) struct Hidden<'t> {
    value: Option<&'t Node<'t>>,
    has_unknown: bool,
}

impl<'t> Hidden<'t> {
    pub fn new(value: Option<&'t Node<'t>>, has_unknown: bool) -> Self {
        Self { value, has_unknown }
    }

    fn is_same(&self, other: Option<&Node<'_>>) -> bool {
        !self.has_unknown && self.value == other
    }
}

impl<'t> Redacted<'t> {
    /// Whether the value certainly stays what it is. Containers answer no: their members are asked.
    pub fn stays(&self, after: &Self) -> bool {
        match (self, after) {
            (Self::Absent, Self::Absent | Self::Scalar(Node::Null))
            | (Self::Scalar(Node::Null), Self::Absent) => true,
            (Self::Scalar(before), Self::Scalar(after)) => before == after,
            (Self::Sensitive(before) | Self::Withheld(before), after) => {
                after.has_value() && !after.has_unknown() && before.is_same(after.raw())
            }
            (before, Self::Withheld(after)) => before.has_value() && after.is_same(before.raw()),
            _ => false,
        }
    }

    pub fn has_unknown(&self) -> bool {
        match self {
            Self::Unknown => true,
            Self::Absent | Self::Scalar(_) => false,
            Self::Sensitive(hidden) | Self::Withheld(hidden) => hidden.has_unknown,
            Self::List(_, elements) => elements.iter().any(Self::has_unknown),
            Self::Object(_, members) => members.iter().any(|(_, member)| member.has_unknown()),
        }
    }

    /// Puts a sensitive value in place of this one, if there is a value.
    pub fn make_sensitive(&mut self) {
        if self.has_value() {
            *self = Self::Sensitive(self.hide());
        }
    }

    /// Puts a withheld value in place of this one.
    pub fn withhold(&mut self) {
        *self = Self::Withheld(self.hide());
    }

    fn hide(&self) -> Hidden<'t> {
        Hidden::new(self.raw(), self.has_unknown())
    }

    fn has_value(&self) -> bool {
        !matches!(self, Self::Absent | Self::Unknown)
    }

    fn raw(&self) -> Option<&'t Node<'t>> {
        match self {
            Self::Absent | Self::Unknown => None,
            Self::Sensitive(hidden) | Self::Withheld(hidden) => hidden.value,
            Self::Scalar(node) | Self::List(node, _) | Self::Object(node, _) => Some(node),
        }
    }
}
