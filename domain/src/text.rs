//! Text that people write and others read, beside names that decide something.

/// Whether a character shows as what it is, wherever it stands: it does not steer a terminal, is not
/// invisible, and does not break a line or turn the direction of what stands around it.
pub fn is_plain(character: char) -> bool {
    !character.is_control() && !hides_or_turns(character)
}

/// The format characters that cannot be seen, the separators of lines and paragraphs, and letters that
/// are blank.
fn hides_or_turns(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{70f}' | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_or_turns_a_line_is_not_plain() {
        for hidden in [
            '\0',
            '\n',
            '\t',
            '\u{1b}',
            '\u{85}',
            '\u{9b}',
            '\u{ad}',
            '\u{200b}',
            '\u{200d}',
            '\u{200e}',
            '\u{2028}',
            '\u{2029}',
            '\u{202e}',
            '\u{2060}',
            '\u{2066}',
            '\u{2069}',
            '\u{feff}',
            '\u{fff9}',
            '\u{fffb}',
            '\u{e0041}',
            '\u{3164}',
        ] {
            assert!(!is_plain(hidden), "{hidden:?}");
        }
        for seen in "aZ9 .,_-/ä߀漢字עब…–\u{a0}\u{301}\u{fe0f}🚀".chars() {
            assert!(is_plain(seen), "{seen:?}");
        }
    }
}
