//! Random values with the masks that belong to them.

use serde_json::{Map, Value, json};

use crate::dice::Dice;
use crate::forms;

/// How deep a value nests below its members.
const DEPTH_MAX: usize = 4;
/// How many members or elements anything has.
const WIDTH_MAX: usize = 4;

/// A value with its masks. `unknown` is the mask of the side after.
#[derive(Debug)]
struct Masked {
    value: Option<Value>,
    sensitive: Value,
    unknown: Value,
}

/// The side of a change that a value stands on: nothing is unknown before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    After,
}

/// A change from one random value to another.
pub(crate) fn change(markers: &[String], dice: &mut Dice) -> Value {
    let before = tree(markers, Side::Before, dice);
    let after = tree(markers, Side::After, dice);
    json!({
        "before": before.value, "before_sensitive": before.sensitive,
        "after": after.value, "after_sensitive": after.sensitive, "after_unknown": after.unknown,
    })
}

fn tree(markers: &[String], side: Side, dice: &mut Dice) -> Masked {
    let members = 1 + dice.below(WIDTH_MAX);
    object((0..members).map(|_| node(markers, side, DEPTH_MAX, dice)))
}

fn node(markers: &[String], side: Side, depth: usize, dice: &mut Dice) -> Masked {
    // Half of what may nest does.
    let shape = if depth == 0 { 3 } else { dice.below(4) };
    if shape > 1 {
        return leaf(dice.one(markers).clone(), side, dice);
    }
    let length = dice.below(WIDTH_MAX);
    let inner = (0..length).map(|_| node(markers, side, depth - 1, dice));
    if shape == 0 {
        list(inner)
    } else {
        object(inner)
    }
}

fn leaf(marker: String, side: Side, dice: &mut Dice) -> Masked {
    let known = |value, sensitive: bool| Masked {
        value: Some(value),
        sensitive: json!(sensitive),
        unknown: json!(false),
    };
    match dice.below(if side == Side::After { 10 } else { 9 }) {
        0 | 1 => known(json!("open"), false),
        2 => known(json!(12.50), false),
        3 => known(json!(null), false),
        4 => known(json!(marker), true),
        5 => known(json!({ "deep": [marker] }), true),
        6 | 7 => known(json!(forms::copy(&marker, dice)), false),
        8 => Masked {
            value: Some(json!({ marker: "in a key" })),
            sensitive: json!({}),
            unknown: json!({}),
        },
        _ => Masked {
            value: None,
            sensitive: json!(false),
            unknown: json!(true),
        },
    }
}

fn list(elements: impl Iterator<Item = Masked>) -> Masked {
    let (mut values, mut sensitive, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for element in elements {
        values.push(element.value.unwrap_or_default());
        sensitive.push(element.sensitive);
        unknown.push(element.unknown);
    }
    Masked {
        value: Some(values.into()),
        sensitive: sensitive.into(),
        unknown: unknown.into(),
    }
}

fn object(members: impl Iterator<Item = Masked>) -> Masked {
    let (mut values, mut sensitive, mut unknown) = (Map::new(), Map::new(), Map::new());
    for (index, member) in members.enumerate() {
        let key = format!("k{index}");
        if let Some(value) = member.value {
            values.insert(key.clone(), value);
        }
        if member.sensitive != json!(false) {
            sensitive.insert(key.clone(), member.sensitive);
        }
        if member.unknown != json!(false) {
            unknown.insert(key, member.unknown);
        }
    }
    Masked {
        value: Some(values.into()),
        sensitive: sensitive.into(),
        unknown: unknown.into(),
    }
}
