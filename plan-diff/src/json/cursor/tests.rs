//! What the cursor takes and refuses.

use super::*;

fn whole(text: &str) -> Result<(), JsonErrorKind> {
    let mut cursor = Cursor::new(text);
    cursor
        .skip()
        .and_then(|()| cursor.end())
        .map_err(|error| error.kind)
}

#[test]
fn it_takes_what_the_common_reader_takes_and_nothing_else() {
    for text in [
        "null",
        " true ",
        "false",
        "0",
        "-0",
        "10",
        "1.5e-7",
        "\"\"",
        "[]",
        "{}",
        "[1,2]",
        "[ ]",
        "{\"a\":[{}]}",
        "\"a\\u00e9\\n\\ud83d\\ude00\\/\"",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "+1",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{\"a\"}",
        "{a:1}",
        "{\"a\":1,}",
        "\"\n\"",
        "\"\\x\"",
        "\"\\ud83d\"",
        "\"\\ud83d\\u0041\"",
        "\"\\udc00\"",
        "\"\\u12",
        "\"\\u+123\"",
        "tru",
        "nul",
        "\"a",
        "{\"a\":",
        "[",
        "]",
        "",
        "NaN",
        "1 1",
        "{\"a\":1]",
        "\u{feff}1",
    ] {
        assert_eq!(
            whole(text).is_ok(),
            serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
                && !text.contains("\\udc00")
                && !text.contains("\\ud83d\"")
                && !text.contains("\\ud83d\\u0041"),
            "{text}"
        );
    }
}

#[test]
fn a_string_is_decoded_as_the_common_reader_does() {
    for text in [
        r#""plain ä""#,
        r#""a\"b\\c\/\b\f\n\r\t\u00e9\ud83d\ude00z""#,
    ] {
        assert_eq!(
            Cursor::new(text).string().unwrap(),
            serde_json::from_str::<String>(text).unwrap()
        );
    }
}

#[test]
fn a_doubled_key_is_refused_at_every_depth_even_when_written_differently() {
    for text in [
        r#"{"a":1,"a":1}"#,
        r#"[{"x":{"a":1,"b":2,"\u0061":3}}]"#,
        r#"{"a":{"b":1},"b":1,"a":2}"#,
    ] {
        assert_eq!(whole(text), Err(JsonErrorKind::DoubledKey), "{text}");
    }
    assert_eq!(
        whole(r#"{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}"#),
        Ok(())
    );
}

#[test]
fn depth_and_keys_have_a_limit() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(whole(&nested(DOCUMENT_DEPTH_MAX)), Ok(()));
    assert_eq!(
        whole(&nested(DOCUMENT_DEPTH_MAX + 1)),
        Err(JsonErrorKind::TooDeep)
    );
    let keys: Vec<_> = (0..=OPEN_KEYS_MAX).map(|n| format!("\"{n}\":0")).collect();
    assert_eq!(
        whole(&format!("{{{}}}", keys.join(","))),
        Err(JsonErrorKind::TooManyKeys)
    );
}

#[test]
fn another_value_than_the_one_asked_for_is_named_apart_from_bad_syntax() {
    let error = Cursor::new("[1]").object(|_, _| Ok(())).unwrap_err();
    assert_eq!((error.kind, error.offset), (JsonErrorKind::Shape, 0));
    let error = Cursor::new("}").object(|_, _| Ok(())).unwrap_err();
    assert_eq!(error.kind, JsonErrorKind::Syntax);
}
