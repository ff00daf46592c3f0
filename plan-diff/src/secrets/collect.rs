//! Where a plan says what is sensitive. Read leniently: a mask that fits only in part still names
//! secrets, and the strict reading withholds what it does not fit.

use std::collections::HashSet;

use super::Secrets;
use crate::Reason;
use crate::change::{Change, ResourceChange, Values};
use crate::document::Document;
use crate::json::{Cursor, JsonError, Node, member};

/// Adds everything that the plan itself declares sensitive.
pub(crate) fn collect(document: &Document<'_>, secrets: &mut Secrets) -> Result<(), JsonError> {
    let changes = [&document.resource_changes, &document.resource_drift];
    for text in changes.into_iter().flatten() {
        change(ResourceChange::read(text)?.change.values(), secrets);
    }
    for text in &document.deferred_changes {
        Cursor::new(text).object(|cursor, key| {
            if key != "resource_change" {
                return cursor.skip();
            }
            change(
                ResourceChange::read(cursor.slice()?)?.change.values(),
                secrets,
            );
            Ok(())
        })?;
    }
    for (_, text) in &document.output_changes {
        change(Change::read(text)?.values(), secrets);
    }
    for text in [document.planned_values, document.prior_state]
        .into_iter()
        .flatten()
    {
        state(&mut Cursor::new(text), secrets)?;
    }
    configuration(document, secrets)
}

fn change(values: Result<Values<'_>, Reason>, secrets: &mut Secrets) {
    let Ok(values) = values else {
        return secrets.miss();
    };
    masked(
        values.before.as_ref(),
        values.before_sensitive.as_ref(),
        secrets,
    );
    masked(
        values.after.as_ref(),
        values.after_sensitive.as_ref(),
        secrets,
    );
}

fn masked(value: Option<&Node<'_>>, mask: Option<&Node<'_>>, secrets: &mut Secrets) {
    match (value, mask) {
        (Some(value), Some(Node::Bool(true))) => secrets.add_node(value),
        (Some(Node::Array(values)), Some(Node::Array(masks))) => {
            for (value, mask) in values.iter().zip(masks) {
                masked(Some(value), Some(mask), secrets);
            }
        }
        (Some(Node::Object(values)), Some(Node::Object(masks))) => {
            for (key, mask) in masks {
                masked(member(values, key), Some(mask), secrets);
            }
        }
        _ => {}
    }
}

/// `prior_state` (its `values`) or `planned_values`: outputs, and modules of resources.
fn state(cursor: &mut Cursor<'_>, secrets: &mut Secrets) -> Result<(), JsonError> {
    cursor.object(|cursor, key| match key.as_ref() {
        "values" => state(cursor, secrets),
        "root_module" => module(cursor, secrets),
        "outputs" => cursor
            .object(|cursor, _| value_with_mask(cursor.slice()?, "value", "sensitive", secrets)),
        _ => cursor.skip(),
    })
}

fn module(cursor: &mut Cursor<'_>, secrets: &mut Secrets) -> Result<(), JsonError> {
    cursor.object(|cursor, key| match key.as_ref() {
        "child_modules" => cursor.array(|cursor| module(cursor, secrets)),
        "resources" => cursor.array(|cursor| {
            value_with_mask(cursor.slice()?, "values", "sensitive_values", secrets)
        }),
        _ => cursor.skip(),
    })
}

fn value_with_mask(
    text: &str,
    value_key: &str,
    mask_key: &str,
    secrets: &mut Secrets,
) -> Result<(), JsonError> {
    let (mut value, mut mask) = (None, None);
    Cursor::new(text).object(|cursor, key| {
        match key.as_ref() {
            key if key == value_key => value = Some(cursor.slice()?),
            key if key == mask_key => mask = Some(cursor.slice()?),
            _ => cursor.skip()?,
        }
        Ok(())
    })?;
    if let (Some(value), Some(mask)) = (value, mask) {
        let (Some(value), Some(mask)) = (Node::parse(value), Node::parse(mask)) else {
            secrets.miss();
            return Ok(());
        };
        masked(Some(&value), Some(&mask), secrets);
    }
    Ok(())
}

/// Values of sensitive variables have no mask; the configuration says which variables are.
fn configuration(document: &Document<'_>, secrets: &mut Secrets) -> Result<(), JsonError> {
    let Some(text) = document.configuration else {
        return Ok(());
    };
    let mut sensitive = HashSet::new();
    Cursor::new(text).object(|cursor, key| {
        if key == "root_module" {
            sensitive = module_configuration(cursor, secrets)?;
            return Ok(());
        }
        cursor.skip()
    })?;
    for (name, text) in &document.variables {
        if sensitive.contains(name.as_ref()) {
            member_of(text, "value", secrets)?;
        }
    }
    Ok(())
}

/// Adds what a module of the configuration tells; gives the names of its sensitive variables.
fn module_configuration(
    cursor: &mut Cursor<'_>,
    secrets: &mut Secrets,
) -> Result<HashSet<String>, JsonError> {
    let mut sensitive = HashSet::new();
    cursor.object(|cursor, key| match key.as_ref() {
        "variables" => cursor.object(|cursor, name| {
            let text = cursor.slice()?;
            if is_sensitive(text)? {
                sensitive.insert(name.clone().into_owned());
                member_of(text, "default", secrets)?;
            }
            Ok(())
        }),
        "module_calls" => cursor.object(|cursor, _| module_call(cursor, secrets)),
        _ => cursor.skip(),
    })?;
    Ok(sensitive)
}

/// What a caller writes down for a sensitive variable of the called module.
fn module_call(cursor: &mut Cursor<'_>, secrets: &mut Secrets) -> Result<(), JsonError> {
    let (mut sensitive, mut expressions) = (HashSet::new(), Vec::new());
    cursor.object(|cursor, key| match key.as_ref() {
        "module" => {
            sensitive = module_configuration(cursor, secrets)?;
            Ok(())
        }
        "expressions" => cursor.object(|cursor, name| {
            expressions.push((name.clone(), cursor.slice()?));
            Ok(())
        }),
        _ => cursor.skip(),
    })?;
    for (name, text) in expressions {
        if sensitive.contains(name.as_ref()) {
            member_of(text, "constant_value", secrets)?;
        }
    }
    Ok(())
}

fn is_sensitive(variable: &str) -> Result<bool, JsonError> {
    let mut is_sensitive = false;
    Cursor::new(variable).object(|cursor, key| {
        let text = cursor.slice()?;
        if key == "sensitive" {
            // Anything but a clear `false` counts.
            is_sensitive = text != "false";
        }
        Ok(())
    })?;
    Ok(is_sensitive)
}

fn member_of(text: &str, name: &str, secrets: &mut Secrets) -> Result<(), JsonError> {
    if !text.starts_with('{') {
        return Ok(());
    }
    Cursor::new(text).object(|cursor, key| {
        let text = cursor.slice()?;
        if key == name {
            match Node::parse(text) {
                Some(node) => secrets.add_node(&node),
                None => secrets.miss(),
            }
        }
        Ok(())
    })
}
