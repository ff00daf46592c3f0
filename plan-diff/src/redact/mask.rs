//! A value with its masks, checked node by node. The masks are OpenTofu's: `true` means all of this,
//! an object leaves out the keys it has nothing to say about, a list has an entry for every element.

use super::{Hidden, Redacted};
use crate::Reason;
use crate::json::{Members, Node, member};

/// How deep a value may nest.
const VALUE_DEPTH_MAX: usize = 64;

/// Whether a plain `false` may stand for a whole list or object: it does for outputs, and never for
/// resources.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plain {
    Allowed,
    Refused,
}

/// The masks that belong to one place.
#[derive(Clone, Copy)]
pub(super) struct Masks<'t> {
    pub sensitive: Sensitive<'t>,
    /// Absent for what is known.
    pub unknown: Option<&'t Node<'t>>,
}

#[derive(Clone, Copy)]
pub(super) enum Sensitive<'t> {
    /// A mask that should be there is not.
    Missing,
    /// Left out of the mask of the object around it, which is right for a primitive.
    LeftOut,
    /// Nothing here, however deep, is sensitive.
    Nothing,
    Mask(&'t Node<'t>),
}

pub(super) fn redact<'t>(
    value: Option<&'t Node<'t>>,
    masks: Masks<'t>,
    depth: usize,
) -> Result<Redacted<'t>, Reason> {
    if depth > VALUE_DEPTH_MAX {
        return Err(Reason::TooDeep);
    }
    let unknown = match masks.unknown {
        Some(Node::Bool(true)) => return unknown(value),
        Some(Node::Bool(false)) | None => None,
        Some(mask @ (Node::Array(_) | Node::Object(_))) => Some(mask),
        Some(Node::Null | Node::Number(_) | Node::String(_)) => return Err(Reason::MaskMismatch),
    };
    if let Sensitive::Mask(Node::Bool(true)) = masks.sensitive {
        if unknown.is_some() {
            // Hidden anyway, but a mask that does not fit casts doubt on all of them.
            let sensitive = Sensitive::Nothing;
            redact(value, Masks { sensitive, unknown }, depth)?;
        }
        let has_unknown = unknown.is_some_and(has_true);
        return Ok(Redacted::Sensitive(Hidden::new(value, has_unknown)));
    }
    let masks = Masks { unknown, ..masks };
    match value {
        Some(node @ Node::Array(elements)) => list(node, elements, masks, depth),
        Some(node @ Node::Object(members)) => object(node, members, masks, depth),
        Some(node) => leaf(Some(node), masks).map(|()| Redacted::Scalar(node)),
        None => leaf(None, masks).map(|()| Redacted::Absent),
    }
}

/// An unknown value is left out, or null in a list. Its sensitivity is not known either.
fn unknown<'t>(value: Option<&Node<'_>>) -> Result<Redacted<'t>, Reason> {
    match value {
        None | Some(Node::Null) => Ok(Redacted::Unknown),
        Some(_) => Err(Reason::MaskMismatch),
    }
}

fn leaf(value: Option<&Node<'_>>, masks: Masks<'_>) -> Result<(), Reason> {
    if masks.unknown.is_some() {
        return Err(Reason::MaskMismatch);
    }
    match masks.sensitive {
        Sensitive::LeftOut | Sensitive::Nothing | Sensitive::Mask(Node::Bool(false)) => Ok(()),
        Sensitive::Missing if matches!(value, None | Some(Node::Null)) => Ok(()),
        Sensitive::Missing => Err(Reason::MaskMissing),
        Sensitive::Mask(_) => Err(Reason::MaskMismatch),
    }
}

fn list<'t>(
    node: &'t Node<'t>,
    elements: &'t [Node<'t>],
    masks: Masks<'t>,
    depth: usize,
) -> Result<Redacted<'t>, Reason> {
    let sensitive = match masks.sensitive {
        Sensitive::Missing => return Err(Reason::MaskMissing),
        Sensitive::Nothing => None,
        Sensitive::Mask(Node::Array(masks)) if masks.len() == elements.len() => Some(masks),
        Sensitive::LeftOut | Sensitive::Mask(_) => return Err(Reason::MaskMismatch),
    };
    let unknown = match masks.unknown {
        None => None,
        Some(Node::Array(masks)) if masks.len() == elements.len() => Some(masks),
        Some(_) => return Err(Reason::MaskMismatch),
    };
    let redacted = elements.iter().enumerate().map(|(index, element)| {
        let masks = Masks {
            sensitive: sensitive.map_or(Sensitive::Nothing, |list| Sensitive::Mask(&list[index])),
            unknown: unknown.map(|list| &list[index]),
        };
        redact(Some(element), masks, depth + 1)
    });
    Ok(Redacted::List(node, redacted.collect::<Result<_, _>>()?))
}

fn object<'t>(
    node: &'t Node<'t>,
    members: &'t Members<'t>,
    masks: Masks<'t>,
    depth: usize,
) -> Result<Redacted<'t>, Reason> {
    let sensitive = match masks.sensitive {
        Sensitive::Missing => return Err(Reason::MaskMissing),
        Sensitive::Nothing => None,
        Sensitive::Mask(Node::Object(masks)) => Some(masks),
        Sensitive::LeftOut | Sensitive::Mask(_) => return Err(Reason::MaskMismatch),
    };
    let unknown = match masks.unknown {
        None => None,
        Some(Node::Object(masks)) => Some(masks),
        Some(_) => return Err(Reason::MaskMismatch),
    };
    let of = |key: &str| Masks {
        sensitive: sensitive.map_or(Sensitive::Nothing, |masks| {
            member(masks, key).map_or(Sensitive::LeftOut, Sensitive::Mask)
        }),
        unknown: unknown.and_then(|masks| member(masks, key)),
    };
    let mut redacted = Vec::with_capacity(members.len());
    for (key, value) in members {
        redacted.push((key.as_ref(), redact(Some(value), of(key), depth + 1)?));
    }
    for (key, mask) in unknown.into_iter().flatten() {
        if member(members, key).is_none() {
            // A key that the value lacks is one whose value is unknown.
            if *mask != Node::Bool(true) {
                return Err(Reason::MaskMismatch);
            }
            redacted.push((key.as_ref(), Redacted::Unknown));
        }
    }
    redacted.sort_unstable_by_key(|(key, _)| *key);
    let is_stray = |key: &str| {
        redacted
            .binary_search_by_key(&key, |(key, _)| *key)
            .is_err()
    };
    if sensitive
        .into_iter()
        .flatten()
        .any(|(key, _)| is_stray(key))
    {
        return Err(Reason::MaskMismatch);
    }
    Ok(Redacted::Object(node, redacted))
}

fn has_true(mask: &Node<'_>) -> bool {
    match mask {
        Node::Bool(is_unknown) => *is_unknown,
        Node::Null | Node::Number(_) | Node::String(_) => false,
        Node::Array(masks) => masks.iter().any(has_true),
        Node::Object(masks) => masks.iter().any(|(_, mask)| has_true(mask)),
    }
}
