//! A look at a policy's brackets before the engine parses it: the parser's time doubles with each
//! level of nested collections.

use std::iter::Peekable;
use std::str::Chars;

/// The deepest nesting of `[` and `{` outside strings and comments.
pub const NESTING_MAX: usize = 8;

/// The line on which brackets nest deeper than [`NESTING_MAX`], if there is one.
pub(super) fn too_deep_at(source: &str) -> Option<usize> {
    let mut scanner = Scanner {
        rest: source.chars().peekable(),
        line: 1,
    };
    let mut depth = 0_usize;
    while let Some(character) = scanner.next() {
        match character {
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            '"' => scanner.skip_string(),
            '`' => scanner.skip_past('`'),
            '#' => scanner.skip_comment(),
            _ => {}
        }
        if depth > NESTING_MAX {
            return Some(scanner.line);
        }
    }
    None
}

struct Scanner<'a> {
    rest: Peekable<Chars<'a>>,
    line: usize,
}

impl Scanner<'_> {
    fn next(&mut self) -> Option<char> {
        let character = self.rest.next()?;
        self.line += usize::from(character == '\n');
        Some(character)
    }

    fn skip_past(&mut self, end: char) {
        while self.next().is_some_and(|character| character != end) {}
    }

    /// A string ends at its line's end too: the engine refuses a string that goes on, so text after
    /// it must not hide in one.
    fn skip_string(&mut self) {
        while let Some(character) = self.next() {
            match character {
                '"' | '\n' => return,
                '\\' => drop(self.next()),
                _ => {}
            }
        }
    }

    fn skip_comment(&mut self) {
        while self.rest.peek().is_some_and(|character| *character != '\n') {
            self.rest.next();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(depth: usize) -> String {
        format!("x := {}1{}", "[".repeat(depth), "]".repeat(depth))
    }

    #[test]
    fn eight_levels_pass_and_nine_do_not() {
        assert_eq!(too_deep_at(&nested(NESTING_MAX)), None);
        assert_eq!(
            too_deep_at(&format!("\n\n{}", nested(NESTING_MAX + 1))),
            Some(3)
        );
        assert_eq!(too_deep_at(&"[{".repeat(5)), Some(1));
        assert_eq!(too_deep_at(&"[]{}".repeat(50)), None);
    }

    #[test]
    fn what_stands_in_a_string_or_a_comment_does_not_count() {
        let deep = "[".repeat(20);
        for source in [
            format!("\"{deep}\""),
            format!("\"\\\"{deep}\""),
            format!("`{deep}\n\"{deep}`"),
            format!("# {deep} \"\n"),
        ] {
            assert_eq!(too_deep_at(&source), None, "{source}");
        }
    }

    #[test]
    fn nothing_can_hide_behind_a_string_or_a_comment_that_ended() {
        let deep = "[".repeat(20);
        for source in [
            format!("\"a\" {deep}"),
            format!("\"a\\\\\" {deep}"),
            format!("\"a\n{deep}"),
            format!("`a` {deep}"),
            format!("`\\` {deep}"),
            format!("# \"\n{deep}"),
            format!("# `\n{deep}"),
        ] {
            assert!(too_deep_at(&source).is_some(), "{source}");
        }
    }
}
