//! Leaving out dumped states. When OpenTofu can neither upload a state nor write it to a file, it
//! prints the whole of it, with every secret in it, as its last resort.

use super::lines::Piece;

/// What stands in place of a state.
const LEFT_OUT: &str = "(a state that OpenTofu printed is left out here)\n";
/// The members a state begins with: plain, or encrypted by OpenTofu.
const FIRST_MEMBERS: [&str; 5] = [
    "\"version\"",
    "\"serial\"",
    "\"lineage\"",
    "\"meta\"",
    "\"encrypted_data\"",
];

#[derive(Default)]
pub(super) struct DumpFilter {
    at: At,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum At {
    #[default]
    Log,
    /// A line that is a lone brace is held back: the next one tells whether it begins a state.
    Brace,
    /// In a state that is one line.
    StateLine,
    /// In a state that is spread over lines, up to the closing brace at their left.
    StateBlock,
}

impl DumpFilter {
    pub(super) fn take(&mut self, piece: Piece<'_>, out: &mut String) {
        match self.at {
            At::StateLine if !piece.begins => {}
            At::StateBlock => {
                if piece.begins && piece.ends && piece.text == "}" {
                    self.at = At::Log;
                }
                return;
            }
            At::Brace if piece.begins && is_member(piece.text) => {
                out.push_str(LEFT_OUT);
                self.at = At::StateBlock;
                return;
            }
            At::Brace => {
                out.push_str("{\n");
                self.look(piece, out);
            }
            At::Log | At::StateLine => self.look(piece, out),
        }
        if self.at == At::StateLine && piece.ends {
            self.at = At::Log;
        }
    }

    pub(super) fn finish(&mut self, out: &mut String) {
        if std::mem::take(&mut self.at) == At::Brace {
            out.push_str("{\n");
        }
    }

    fn look(&mut self, piece: Piece<'_>, out: &mut String) {
        let state = piece
            .begins
            .then(|| piece.text.trim_start().strip_prefix('{'))
            .flatten();
        if state.is_some_and(is_member) {
            out.push_str(LEFT_OUT);
            self.at = At::StateLine;
        } else if piece.begins && piece.ends && piece.text == "{" {
            self.at = At::Brace;
        } else {
            out.push_str(piece.text);
            out.push('\n');
            self.at = At::Log;
        }
    }
}

fn is_member(text: &str) -> bool {
    FIRST_MEMBERS
        .iter()
        .any(|member| text.trim_start().starts_with(member))
}
