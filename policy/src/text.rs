//! Text that is shown to people: one line, no control characters, a bounded length.

/// What stands at the end of a text that was cut.
const CUT: char = '…';

/// `text` on one line, without characters that steer a terminal or reorder a line, and at most
/// `chars_max` characters long.
pub(crate) fn plain(text: &str, chars_max: usize) -> String {
    let spaced = |character: char| {
        if character.is_whitespace() {
            ' '
        } else {
            character
        }
    };
    let line: String = text.chars().filter(|c| !steers(*c)).map(spaced).collect();
    let line = line.trim();
    if line.chars().count() <= chars_max {
        return line.to_owned();
    }
    let kept = line.chars().take(chars_max.saturating_sub(1));
    kept.chain([CUT]).collect()
}

/// Whether `text` is what [`plain`] would leave as it is.
pub(crate) fn is_plain(text: &str, chars_max: usize) -> bool {
    plain(text, chars_max) == text
}

/// Control characters other than white space, and the marks that change the direction of a text.
fn steers(character: char) -> bool {
    (character.is_control() && !character.is_whitespace())
        || matches!(character,
            '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{feff}'
            | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_steers_a_terminal_stays() {
        assert_eq!(plain(" a\u{1b}[31m\nb\tc\u{202e}d\0 ", 100), "a[31m b cd");
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        assert_eq!(plain("äöü", 3), "äöü");
        assert_eq!(plain("äöüß", 3), "äö…");
        assert_eq!(plain("", 3), "");
    }

    proptest::proptest! {
        #[test]
        fn cleaning_twice_is_cleaning_once(text in "(?s).{0,60}", chars_max in 1_usize..40) {
            let once = plain(&text, chars_max);
            proptest::prop_assert!(once.chars().count() <= chars_max);
            proptest::prop_assert!(is_plain(&once, chars_max), "{once:?}");
        }
    }
}
