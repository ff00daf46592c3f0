//! One change of a resource or an output, as OpenTofu wrote it down.

use std::borrow::Cow;

use crate::Reason;
use crate::action::Action;
use crate::json::{Cursor, JsonError, Node};

/// An entry of `resource_changes`.
#[derive(Default)]
pub(crate) struct ResourceChange<'a> {
    pub address: Option<Cow<'a, str>>,
    pub previous_address: Option<Cow<'a, str>>,
    pub module_address: Option<Cow<'a, str>>,
    pub mode: Cow<'a, str>,
    pub kind: Cow<'a, str>,
    pub name: Cow<'a, str>,
    /// A string or a number, as JSON.
    pub index: Option<&'a str>,
    pub provider: Cow<'a, str>,
    pub deposed: Option<Cow<'a, str>>,
    pub action_reason: Option<Cow<'a, str>>,
    pub change: Change<'a>,
}

/// The `change` of a resource, or an entry of `output_changes`.
#[derive(Default)]
pub(crate) struct Change<'a> {
    pub action: Action,
    pub importing: bool,
    before: Option<&'a str>,
    after: Option<&'a str>,
    before_sensitive: Option<&'a str>,
    after_sensitive: Option<&'a str>,
    after_unknown: Option<&'a str>,
    replace_paths: Option<&'a str>,
}

/// The values of a change with their masks.
pub(crate) struct Values<'a> {
    pub before: Option<Node<'a>>,
    pub after: Option<Node<'a>>,
    pub before_sensitive: Option<Node<'a>>,
    pub after_sensitive: Option<Node<'a>>,
    pub after_unknown: Option<Node<'a>>,
}

impl<'a> ResourceChange<'a> {
    pub fn read(text: &'a str) -> Result<Self, JsonError> {
        let mut this = Self::default();
        Cursor::new(text).object(|cursor, key| {
            match key.as_ref() {
                "address" => this.address = Some(cursor.string()?),
                "previous_address" => this.previous_address = Some(cursor.string()?),
                "module_address" => this.module_address = Some(cursor.string()?),
                "mode" => this.mode = cursor.string()?,
                "type" => this.kind = cursor.string()?,
                "name" => this.name = cursor.string()?,
                "index" => this.index = Some(cursor.slice()?),
                "provider_name" => this.provider = cursor.string()?,
                "deposed" => this.deposed = Some(cursor.string()?),
                "action_reason" => this.action_reason = Some(cursor.string()?),
                "change" => this.change.members(cursor)?,
                _ => cursor.skip()?,
            }
            Ok(())
        })?;
        Ok(this)
    }

    /// An address that is the same as before is no move.
    pub fn is_moved(&self) -> bool {
        self.previous_address.is_some() && self.previous_address != self.address
    }

    /// Whether a reader of the plan has to see it: reading data changes nothing.
    pub fn is_shown(&self) -> bool {
        !matches!(self.change.action, Action::NoOp | Action::Read)
            || self.is_moved()
            || self.change.importing
    }

    /// The mode, when it is one that this reader knows.
    pub fn known_mode(&self) -> Option<&'static str> {
        ["managed", "data", "ephemeral"]
            .into_iter()
            .find(|known| self.mode == *known)
    }
}

impl<'a> Change<'a> {
    pub fn read(text: &'a str) -> Result<Self, JsonError> {
        let mut this = Self::default();
        this.members(&mut Cursor::new(text))?;
        Ok(this)
    }

    fn members(&mut self, cursor: &mut Cursor<'a>) -> Result<(), JsonError> {
        cursor.object(|cursor, key| {
            match key.as_ref() {
                "actions" => self.action = Action::read(cursor)?,
                "before" => self.before = Some(cursor.slice()?),
                "after" => self.after = Some(cursor.slice()?),
                "before_sensitive" => self.before_sensitive = Some(cursor.slice()?),
                "after_sensitive" => self.after_sensitive = Some(cursor.slice()?),
                "after_unknown" => self.after_unknown = Some(cursor.slice()?),
                "replace_paths" => self.replace_paths = Some(cursor.slice()?),
                "importing" => self.importing = cursor.slice()? != "null",
                _ => cursor.skip()?,
            }
            Ok(())
        })
    }

    pub fn values(&self) -> Result<Values<'a>, Reason> {
        let held = |text: Option<&'a str>| {
            text.map(|text| Node::parse(text).ok_or(Reason::TooLarge))
                .transpose()
        };
        Ok(Values {
            before: held(self.before)?,
            after: held(self.after)?,
            before_sensitive: held(self.before_sensitive)?,
            after_sensitive: held(self.after_sensitive)?,
            after_unknown: held(self.after_unknown)?,
        })
    }

    /// The paths that make a replacement necessary.
    pub fn replace_paths(&self) -> Option<Node<'a>> {
        self.replace_paths.and_then(Node::parse)
    }
}
