//! What is wrong with a setting, in words for people: the reader of a file names types of this program.

use figment::Source;
use figment::error::{Actual, Kind};

use super::InvalidSetting;
use super::table;

impl From<figment::Error> for InvalidSetting {
    fn from(error: figment::Error) -> Self {
        let file = match error.metadata.as_ref().and_then(|met| met.source.as_ref()) {
            Some(Source::File(path)) => Some(path.display().to_string()),
            _ => None,
        };
        let setting = error.path.join(".");
        let what = match (setting.is_empty(), file) {
            (false, Some(file)) => format!("setting `{setting}` in `{file}`"),
            (false, None) => format!("setting `{setting}`"),
            (true, Some(file)) => format!("`{file}`"),
            (true, None) => "the settings".to_owned(),
        };
        Self::of(what, words(&setting, &error.kind))
    }
}

fn words(setting: &str, kind: &Kind) -> String {
    match kind {
        Kind::UnknownField(..) => {
            let instead = table::nearest(setting);
            let instead = instead.map(|setting| format!("did you mean `{setting}`? "));
            let instead = instead.unwrap_or_default();
            format!("there is no such setting; {instead}`stackship settings` lists all")
        }
        Kind::UnknownVariant(found, expected) => {
            format!("must be {}, and is `{found}`", one_of(expected))
        }
        Kind::InvalidType(found, expected) | Kind::InvalidValue(found, expected) => {
            format!("must be {}, and is {}", wanted(expected), shown(found))
        }
        // What an address says of itself when it cannot be read.
        Kind::Message(text) if text == "invalid socket address syntax" => {
            format!("must be {}", wanted("socket address"))
        }
        other => other.to_string(),
    }
}

fn one_of(expected: &[&str]) -> String {
    let quoted: Vec<String> = expected.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(" or ")
}

/// What is wanted; the types are those of the settings.
fn wanted(expected: &str) -> &str {
    match expected {
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" => "a whole number, 0 or more",
        "socket address" => "an address with a port, such as `127.0.0.1:8300`",
        "path string" => "a path in quotes",
        "a string" => "a text in quotes",
        "a boolean" => "`true` or `false`",
        "a sequence" => "a list, such as [\"registry.opentofu.org\"]",
        "a map" => "a table",
        other if other.starts_with("struct ") => "a table of settings",
        other => other,
    }
}

fn shown(found: &Actual) -> String {
    match found {
        Actual::Bool(value) => value.to_string(),
        Actual::Unsigned(value) => value.to_string(),
        Actual::Signed(value) => value.to_string(),
        Actual::Float(value) => value.to_string(),
        Actual::Str(value) => format!("{value:?}"),
        Actual::Seq => "a list".to_owned(),
        Actual::Map => "a table".to_owned(),
        other => other.to_string(),
    }
}
