//! The value before and the value after, redacted together: what one side must not show, the other
//! must not give away.

use super::mask::{Masks, Sensitive, redact};
use super::{Plain, Redacted};
use crate::Reason;
use crate::action::Action;
use crate::change::Values;
use crate::json::Node;
use crate::secrets::Needles;

/// A change after both passes.
pub(crate) struct Pair<'t> {
    pub before: Redacted<'t>,
    pub after: Redacted<'t>,
}

impl<'t> Pair<'t> {
    pub fn redact(
        values: &'t Values<'t>,
        action: Action,
        plain: Plain,
        needles: &Needles,
    ) -> Result<Self, Reason> {
        let is_value = !matches!(values.after, None | Some(Node::Null));
        if is_value && values.after_unknown.is_none() {
            return Err(Reason::MaskMissing);
        }
        let before = Masks {
            sensitive: sensitive(values.before_sensitive.as_ref(), plain),
            unknown: None,
        };
        let after = Masks {
            sensitive: sensitive(values.after_sensitive.as_ref(), plain),
            unknown: values.after_unknown.as_ref().filter(|mask| {
                // With nothing unknown an empty object stands there, whatever the value is.
                !matches!(mask, Node::Object(members) if members.is_empty())
            }),
        };
        let mut pair = Self {
            before: redact(values.before.as_ref(), before, 0)?,
            after: redact(values.after.as_ref(), after, 0)?,
        };
        // An output's mask says `true` on both sides, so a side without a value has one, too.
        if action == Action::Create {
            pair.before = Redacted::Absent;
        }
        if action.leaves_nothing() {
            pair.after = Redacted::Absent;
        }
        unite(&mut pair.before, &mut pair.after);
        needles.withhold_echoes(&mut pair.before);
        needles.withhold_echoes(&mut pair.after);
        Ok(pair)
    }
}

fn sensitive<'t>(mask: Option<&'t Node<'t>>, plain: Plain) -> Sensitive<'t> {
    match mask {
        None => Sensitive::Missing,
        Some(Node::Bool(false)) if plain == Plain::Allowed => Sensitive::Nothing,
        Some(mask) => Sensitive::Mask(mask),
    }
}

/// A value that becomes sensitive was often the same before, and the other way round.
fn unite<'t>(before: &mut Redacted<'t>, after: &mut Redacted<'t>) {
    match (before, after) {
        (Redacted::Sensitive(_), other) | (other, Redacted::Sensitive(_)) => other.make_sensitive(),
        (Redacted::List(_, before), Redacted::List(_, after)) => {
            for (before, after) in before.iter_mut().zip(after) {
                unite(before, after);
            }
        }
        (Redacted::Object(_, before), Redacted::Object(_, after)) => {
            for (key, after) in after {
                if let Ok(index) = before.binary_search_by_key(key, |(key, _)| *key) {
                    unite(&mut before[index].1, after);
                }
            }
        }
        _ => {}
    }
}
