//! What the tofu CLI would take for more than text. It reads a streamed log line by line, and a line that
//! is a JSON object is a structured message to it: it decodes it, escape sequences and all, and prints it
//! as its own. Releases before 1.12 also take words in brackets for colours, `[hidden]` among them. Both
//! can stand in any value that a plan shows.

/// Stands before a line that would be taken for a message.
const MARK: &str = "| ";
/// The colours of the CLI; each also with a prefix, and between underscores for the background.
const COLOURS: [&str; 10] = [
    "default", "black", "red", "green", "yellow", "blue", "magenta", "cyan", "gray", "white",
];
/// Its other words.
const ATTRIBUTES: [&str; 9] = [
    "bold",
    "dim",
    "underline",
    "blink_slow",
    "blink_fast",
    "invert",
    "hidden",
    "reset",
    "reset_bold",
];

/// Appends whole lines to `out` in a form that is only text to the CLI.
pub(super) fn pass_on(lines: &str, out: &mut String) {
    for line in lines.split_inclusive('\n') {
        let rest = line.trim_start();
        if is_message(rest.trim_end()) {
            out.push_str(&line[..line.len() - rest.len()]);
            out.push_str(MARK);
            without_colours(rest, out);
        } else {
            without_colours(line, out);
        }
    }
}

/// Not whether it is valid JSON: readers of it differ in what they take.
fn is_message(text: &str) -> bool {
    text == "null" || (text.starts_with('{') && text.ends_with('}'))
}

/// A blank after the bracket makes a colour a word.
fn without_colours(line: &str, out: &mut String) {
    let mut rest = line;
    while let Some(at) = rest.find('[') {
        let (before, after) = rest.split_at(at + 1);
        out.push_str(before);
        if after
            .split_once(']')
            .is_some_and(|(word, _)| is_colour(word))
        {
            out.push(' ');
        }
        rest = after;
    }
    out.push_str(rest);
}

fn is_colour(word: &str) -> bool {
    let background = word
        .strip_prefix('_')
        .and_then(|word| word.strip_suffix('_'));
    let colour = background.unwrap_or(word);
    let plain = colour
        .strip_prefix("light_")
        .or_else(|| colour.strip_prefix("dark_"));
    COLOURS.contains(&plain.unwrap_or(colour)) || ATTRIBUTES.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(lines: &str) -> String {
        let mut out = String::new();
        pass_on(lines, &mut out);
        out
    }

    #[test]
    fn a_line_that_is_a_message_to_the_cli_is_marked() {
        for (line, expected) in [
            (
                "{\"@message\":\"\\u001b[2J\"}\n",
                "| {\"@message\":\"\\u001b[2J\"}\n",
            ),
            ("\t  {\"a\":{}} \n", "\t  | {\"a\":{}} \n"),
            ("{}\n", "| {}\n"),
            (" null\n", " | null\n"),
            // Deeper than some readers of JSON go, and text that others would still take.
            ("{\"a\":\u{fffd}}\n", "| {\"a\":\u{fffd}}\n"),
        ] {
            assert_eq!(passed(line), expected);
        }
    }

    #[test]
    fn what_no_client_takes_for_more_than_text_stays() {
        let text =
            "  + input = {\n  {\n}\n      null,\nPlan: 1 to add\n[0] [\"a\"] x[each.key] [hidden\n";
        assert_eq!(passed(text), text);
        assert_eq!(passed(""), "");
    }

    #[test]
    fn a_colour_is_a_word() {
        let text =
            "one.a[\"[hidden]\"]: destroy [_light_red_][dark_gray]x[reset_bold] [Red] [reds]\n";
        let expected =
            "one.a[\"[ hidden]\"]: destroy [ _light_red_][ dark_gray]x[ reset_bold] [Red] [reds]\n";
        assert_eq!(passed(text), expected);
    }
}
