//! The first pass: masks. A value and its masks become a [`Redacted`] value, or a reason not to
//! show anything of it. Whatever the masks do not say clearly is not shown.

mod mask;
mod pair;
mod value;

pub(crate) use mask::Plain;
pub(crate) use pair::Pair;
pub(crate) use value::{Hidden, Redacted};
