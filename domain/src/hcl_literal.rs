//! Whether a text is one HCL literal and nothing more.
//!
//! A variable's expression is written into a file of definitions. A text that could end its own
//! expression could define a second variable that nobody reviewed, so only plain literals pass:
//! numbers, quoted strings, `true`, `false`, `null`, lists and maps. Such a file can use neither
//! references nor functions anyway. Linear and without recursion, whatever is thrown at it.

/// The deepest nesting of brackets.
pub const NESTING_MAX: usize = 64;

/// Whether `text` is a single literal: brackets match, strings end, and there is no template, no
/// comment, no here-document and no definition beside it.
pub fn is_literal(text: &str) -> bool {
    let mut open: Vec<char> = Vec::new();
    let mut letters = text.trim().chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => {
                if !skip_string(&mut letters) {
                    return false;
                }
            }
            '[' | '{' | '(' => {
                if open.len() == NESTING_MAX {
                    return false;
                }
                open.push(letter);
            }
            ']' | '}' | ')' => {
                if open.pop() != Some(opening(letter)) {
                    return false;
                }
            }
            // Two values on two lines are two things, and a definition is none.
            '=' | ':' | ',' | '\n' | '\r' if open.is_empty() => return false,
            '=' | ':' | ',' | '.' | '-' | '+' | '_' | ' ' | '\t' | '\n' | '\r' => {}
            plain if plain.is_alphanumeric() => {}
            _ => return false,
        }
    }
    open.is_empty() && !text.trim().is_empty()
}

const fn opening(closing: char) -> char {
    match closing {
        ']' => '[',
        '}' => '{',
        _ => '(',
    }
}

/// Passes a string to its closing quote; whether it ends, on its own line and without a template.
/// Doubled, `$${` and `%%{` are the text `${` and `%{`.
fn skip_string(letters: &mut std::str::Chars<'_>) -> bool {
    let mut marks = (' ', 0_usize);
    while let Some(letter) = letters.next() {
        match letter {
            '"' => return true,
            '\n' | '\r' => return false,
            '\\' => {
                if letters.next().is_none_or(|escaped| escaped == '\n') {
                    return false;
                }
                marks = (' ', 0);
            }
            '{' if marks.1 != 0 && marks.1 != 2 => return false,
            '$' | '%' if marks.0 == letter => marks.1 += 1,
            '$' | '%' => marks = (letter, 1),
            _ => marks = (' ', 0),
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_pass() {
        for text in [
            "5",
            "-1.5e+3",
            "true",
            "null",
            "\"x\"",
            "\"a \\\" b\"",
            "\"$${literal} 100% {}\"",
            "[1, \"]\", [2]]",
            "{ a = 1, \"b\" : [true] }",
            "{\n  a = 1\n  b = 2\n}\n",
            " [\n 1,\n 2\n] ",
        ] {
            assert!(is_literal(text), "{text} was refused");
        }
    }

    #[test]
    fn nothing_that_could_end_the_expression_passes() {
        let deep = "[".repeat(NESTING_MAX + 1) + &"]".repeat(NESTING_MAX + 1);
        for text in [
            "",
            " ",
            "1\nother = 2",
            "[1]\n[2]",
            "[1]\nother = 2",
            "1)\nother = (2",
            "\"a\"\nother = \"b\"",
            "} x = {",
            "[1",
            "1]",
            "[1)",
            "\"open",
            "\"line\nbreak\"",
            "\"${var.x}\"",
            "\"%{ if true }\"",
            "\"$$${var.x}\"",
            "\"a\\\nb\"",
            "1 # comment",
            "1 // comment",
            "/* comment */ 1",
            "<<EOT\ntext\nEOT\n",
            "a = 1",
            "1, 2",
            "file(`x`)",
            deep.as_str(),
        ] {
            assert!(!is_literal(text), "{text} was taken");
        }
    }
}
