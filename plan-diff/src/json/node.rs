//! A JSON value that is held.

use std::borrow::Cow;

use super::{Cursor, JsonError, JsonErrorKind};

/// How many nodes one held value may have.
const NODES_MAX: usize = 1_000_000;

/// The members of an object, in the order of their keys.
pub(crate) type Members<'a> = Vec<(Cow<'a, str>, Node<'a>)>;

/// A value. It may be a secret, so it has no `Debug`.
#[derive(PartialEq, Eq)]
pub(crate) enum Node<'a> {
    Null,
    Bool(bool),
    /// The text as it stood in the document.
    Number(&'a str),
    String(Cow<'a, str>),
    Array(Vec<Node<'a>>),
    Object(Members<'a>),
}

impl<'a> Node<'a> {
    /// Holds a value of a document that was read before; `None` when it has too many nodes.
    pub fn parse(text: &'a str) -> Option<Self> {
        let mut left = NODES_MAX;
        Self::read(&mut Cursor::new(text), &mut left).ok()
    }

    fn read(cursor: &mut Cursor<'a>, left: &mut usize) -> Result<Self, JsonError> {
        let Some(fewer) = left.checked_sub(1) else {
            return Err(cursor.error(JsonErrorKind::TooManyNodes));
        };
        *left = fewer;
        Ok(match cursor.peek()? {
            b'{' => {
                let mut members = Members::new();
                cursor.object(|cursor, key| {
                    let node = Self::read(cursor, left)?;
                    members.push((key.clone(), node));
                    Ok(())
                })?;
                members.sort_unstable_by(|one, other| one.0.cmp(&other.0));
                Self::Object(members)
            }
            b'[' => {
                let mut elements = Vec::new();
                cursor.array(|cursor| {
                    elements.push(Self::read(cursor, left)?);
                    Ok(())
                })?;
                Self::Array(elements)
            }
            b'"' => Self::String(cursor.string()?),
            b't' | b'f' => Self::Bool(cursor.boolean()?),
            b'n' => {
                cursor.null()?;
                Self::Null
            }
            _ => Self::Number(cursor.number()?),
        })
    }

    /// Every string and number in here. Keys are not among them.
    pub fn texts(&self, each: &mut impl FnMut(&Self)) {
        match self {
            Self::Null | Self::Bool(_) => {}
            Self::Number(_) | Self::String(_) => each(self),
            Self::Array(elements) => elements.iter().for_each(|node| node.texts(each)),
            Self::Object(members) => members.iter().for_each(|(_, node)| node.texts(each)),
        }
    }
}

/// The member of that name.
pub(crate) fn member<'t, 'a>(members: &'t Members<'a>, name: &str) -> Option<&'t Node<'a>> {
    let found = members.binary_search_by(|(key, _)| key.as_ref().cmp(name));
    found.ok().map(|index| &members[index].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_every_digit_and_members_are_found_by_name() {
        let text = r#"{"z":123456789012345678901234567890.10,"a":[1e400,-0]}"#;
        let Some(Node::Object(members)) = Node::parse(text) else {
            panic!("an object")
        };
        assert!(member(&members, "z") == Some(&Node::Number("123456789012345678901234567890.10")));
        assert!(
            member(&members, "a")
                == Some(&Node::Array(vec![
                    Node::Number("1e400"),
                    Node::Number("-0")
                ]))
        );
        assert!(member(&members, "b").is_none());
    }

    #[test]
    fn a_value_of_too_many_nodes_is_not_held() {
        let list = |length: usize| format!("[{}0]", "0,".repeat(length - 1));
        assert!(Node::parse(&list(NODES_MAX - 1)).is_some());
        assert!(Node::parse(&list(NODES_MAX)).is_none());
    }
}
