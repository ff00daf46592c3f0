//! What the parser says about a document, in words that mean something outside of this program.

/// How the parser calls things by the names of our types, and what they are to a caller.
const KINDS: &[(&str, &str)] = &[
    ("internally tagged enum ", "an object that names its kind"),
    ("adjacently tagged enum ", "an object that names its kind"),
    ("struct variant ", "an object"),
    ("tuple variant ", "a list"),
    ("tuple struct ", "a list"),
    ("unit struct ", "nothing"),
    ("variant identifier", "one of the names"),
    ("field identifier", "a field's name"),
    ("unit variant ", "one of the names"),
    ("newtype variant ", "one of the names"),
    ("newtype struct ", "a value"),
    ("struct ", "an object"),
    ("enum ", "one of the names"),
];
const EXPECTED: &str = "expected ";

/// A message without the names of our types.
pub fn plain(text: &str) -> String {
    // What the caller sent stands before it, and may hold the same word.
    let Some(at) = text.rfind(EXPECTED) else {
        return text.to_owned();
    };
    let (before, wanted) = text.split_at(at + EXPECTED.len());
    for (kind, words) in KINDS {
        if let Some(name) = wanted.strip_prefix(kind) {
            let end = name.find(' ').unwrap_or(name.len());
            return format!("{before}{words}{}", &name[end..]);
        }
    }
    text.to_owned()
}

/// A message that names its field. Where it is in the text is of use only where no field is named.
pub fn about(field: &str, cause: &str) -> String {
    let text = plain(cause);
    if field.is_empty() {
        return text;
    }
    let text = without_place(&text);
    if text.contains(&format!("`{field}`")) {
        text.to_owned()
    } else {
        format!("`{field}`: {text}")
    }
}

/// A message without the line and the column at its end.
fn without_place(text: &str) -> &str {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let place = text.rfind(" at line ").map(|at| text.split_at(at));
    let Some((before, place)) = place else {
        return text;
    };
    let numbers = place.trim_start_matches(" at line ").split_once(" column ");
    if numbers.is_some_and(|(line, column)| is_number(line) && is_number(column)) {
        before
    } else {
        text
    }
}

/// The field that a missing-field or unknown-field error names; those have no path of their own.
pub fn named_field(text: &str) -> &str {
    let names_field = text.starts_with("missing field") || text.starts_with("unknown field");
    let name = names_field.then(|| text.split('`').nth(1)).flatten();
    name.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_told_where_no_field_is() {
        let place = "at line 1 column 3";
        assert_eq!(about("", &format!("EOF {place}")), format!("EOF {place}"));
        assert_eq!(
            about("name", &format!("too long {place}")),
            "`name`: too long"
        );
        let quoted = format!("unknown value `a {place}`");
        assert_eq!(about("kind", &quoted), format!("`kind`: {quoted}"));
    }

    #[test]
    fn the_names_of_types_are_replaced_and_what_was_sent_is_not() {
        for (text, expected) in [
            (
                "invalid type: integer `1`, expected internally tagged enum ScopeView",
                "invalid type: integer `1`, expected an object that names its kind",
            ),
            (
                "invalid type: string \"expected struct A\", expected struct B at line 1 column 3",
                "invalid type: string \"expected struct A\", expected an object at line 1 column 3",
            ),
            (
                "invalid length 1, expected struct B with 2 elements",
                "invalid length 1, expected an object with 2 elements",
            ),
            (
                "invalid type: null, expected a string",
                "invalid type: null, expected a string",
            ),
            (
                "invalid type: integer `5`, expected variant identifier at line 1",
                "invalid type: integer `5`, expected one of the names at line 1",
            ),
            ("EOF while parsing", "EOF while parsing"),
        ] {
            assert_eq!(plain(text), expected);
        }
    }
}
