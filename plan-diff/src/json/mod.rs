//! A reader of JSON that never changes what it read: numbers keep their text, a doubled key is an
//! error, and nothing is kept that was not asked for. It borrows from the document.

mod cursor;
mod node;

pub(crate) use cursor::{Cursor, JsonError, JsonErrorKind};
pub(crate) use node::{Members, Node, member};
