//! Where things stand in a plan's JSON. One pass over the whole document, which is taken strictly from
//! end to end; what is kept are borrowed texts, so a plan is never held as a tree.

use std::borrow::Cow;

use crate::InspectError;
use crate::json::{Cursor, JsonError};

/// How many resource changes, outputs or variables a plan may list.
const LISTED_MAX: usize = 200_000;

/// The parts of a plan that are looked at. Whatever else it has is read and dropped.
#[derive(Default)]
pub(crate) struct Document<'a> {
    pub format_version: Cow<'a, str>,
    pub tofu_version: Option<Cow<'a, str>>,
    pub errored: bool,
    /// `false` says that changes were left for a later plan.
    pub complete: Option<bool>,
    pub resource_changes: Vec<&'a str>,
    pub resource_drift: Vec<&'a str>,
    pub deferred_changes: Vec<&'a str>,
    pub output_changes: Vec<(Cow<'a, str>, &'a str)>,
    pub variables: Vec<(Cow<'a, str>, &'a str)>,
    pub configuration: Option<&'a str>,
    pub prior_state: Option<&'a str>,
    pub planned_values: Option<&'a str>,
}

impl<'a> Document<'a> {
    pub fn read(text: &'a str) -> Result<Self, InspectError> {
        let mut document = Self::default();
        let mut has_version = false;
        let mut cursor = Cursor::new(text);
        cursor
            .object(|cursor, key| {
                has_version |= key == "format_version";
                document.member(cursor, key)
            })
            .and_then(|()| cursor.end())?;
        if !has_version {
            return Err(InspectError::Missing {
                name: "format_version",
            });
        }
        document.check()?;
        Ok(document)
    }

    fn member(&mut self, cursor: &mut Cursor<'a>, key: &str) -> Result<(), JsonError> {
        match key {
            "format_version" => self.format_version = cursor.string()?,
            "terraform_version" => self.tofu_version = Some(cursor.string()?),
            "errored" => self.errored = cursor.boolean()?,
            "complete" => self.complete = Some(cursor.boolean()?),
            "resource_changes" => list(cursor, &mut self.resource_changes)?,
            "resource_drift" => list(cursor, &mut self.resource_drift)?,
            "deferred_changes" => list(cursor, &mut self.deferred_changes)?,
            "output_changes" => named(cursor, &mut self.output_changes)?,
            "variables" => named(cursor, &mut self.variables)?,
            "configuration" => self.configuration = Some(cursor.slice()?),
            "prior_state" => self.prior_state = Some(cursor.slice()?),
            "planned_values" => self.planned_values = Some(cursor.slice()?),
            _ => cursor.skip()?,
        }
        Ok(())
    }

    fn check(&self) -> Result<(), InspectError> {
        // Another major version may give a mask another meaning.
        let minor = self.format_version.strip_prefix("1.");
        if !minor.is_some_and(|minor| {
            (1..=6).contains(&minor.len()) && minor.bytes().all(|byte| byte.is_ascii_digit())
        }) {
            return Err(InspectError::FormatVersion);
        }
        let longest = self.resource_changes.len().max(self.output_changes.len());
        if longest.max(self.variables.len()) > LISTED_MAX {
            return Err(InspectError::TooMany { limit: LISTED_MAX });
        }
        Ok(())
    }

    /// Whether OpenTofu left changes for a later plan: what is listed may then not be all of it.
    pub fn is_partial(&self) -> bool {
        self.complete == Some(false) || !self.deferred_changes.is_empty()
    }
}

fn list<'a>(cursor: &mut Cursor<'a>, out: &mut Vec<&'a str>) -> Result<(), JsonError> {
    cursor.array(|cursor| {
        let text = cursor.slice()?;
        // One more than the limit shows that it was passed; the rest need not be kept for that.
        if out.len() <= LISTED_MAX {
            out.push(text);
        }
        Ok(())
    })
}

fn named<'a>(
    cursor: &mut Cursor<'a>,
    out: &mut Vec<(Cow<'a, str>, &'a str)>,
) -> Result<(), JsonError> {
    cursor.object(|cursor, key| {
        let text = cursor.slice()?;
        if out.len() <= LISTED_MAX {
            out.push((key.clone(), text));
        }
        Ok(())
    })
}
