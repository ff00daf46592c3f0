//! Which hosts and ports may be reached.

use thiserror::Error;

/// Port of a rule that names none.
const DEFAULT_PORT: u16 = 443;
/// Most rules of one policy.
const RULES_MAX: usize = 1024;
/// Longest host name.
const HOST_MAX: usize = 253;

/// A list of `host`, `host:port`, `*.suffix` and `*.suffix:port` rules. Without a port, 443.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EgressPolicy {
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    host: Host,
    port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    Exact(String),
    /// With its leading dot; a name must have something before it.
    Suffix(String),
}

/// A rule that cannot be understood.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
#[error("egress rule `{rule}`: {reason}")]
pub struct PolicyError {
    /// The rule as given.
    pub rule: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl EgressPolicy {
    /// Parses the rules.
    pub fn parse<R: AsRef<str>>(rules: impl IntoIterator<Item = R>) -> Result<Self, PolicyError> {
        let mut parsed = Vec::new();
        for rule in rules {
            let rule = rule.as_ref();
            let wrong = |reason| PolicyError {
                rule: rule.to_owned(),
                reason,
            };
            if parsed.len() == RULES_MAX {
                return Err(wrong("there are too many rules"));
            }
            parsed.push(Rule::parse(rule).map_err(wrong)?);
        }
        Ok(Self { rules: parsed })
    }

    /// Whether a lower-case host name and a port are on the list.
    pub fn allows(&self, host: &str, port: u16) -> bool {
        self.rules.iter().any(|rule| {
            rule.port == port
                && match &rule.host {
                    Host::Exact(name) => host == name,
                    Host::Suffix(suffix) => host.len() > suffix.len() && host.ends_with(suffix),
                }
        })
    }
}

impl Rule {
    fn parse(text: &str) -> Result<Self, &'static str> {
        if text.contains('/') {
            return Err("a host stands alone, without `https://` and without a path");
        }
        let (host, port) = match text.rsplit_once(':') {
            None => (text, DEFAULT_PORT),
            Some((host, port)) => match port.parse() {
                Ok(port) if port > 0 => (host, port),
                _ => return Err("the port is not a number from 1 to 65535"),
            },
        };
        let host = host.to_ascii_lowercase();
        let host = match host.strip_prefix('*') {
            None => Host::Exact(host),
            Some(suffix) if suffix.starts_with('.') => Host::Suffix(suffix.to_owned()),
            Some(_) => return Err("`*` must be followed by a dot"),
        };
        let (Host::Exact(name) | Host::Suffix(name)) = &host;
        if is_host_name(name.trim_start_matches('.')) {
            Ok(Self { host, port })
        } else {
            Err("the host is not a lower-case DNS name")
        }
    }
}

/// Letters, digits, hyphens and dots, in parts that are not empty. Addresses in dotted form pass;
/// they are judged like everything else that resolves.
pub(super) fn is_host_name(name: &str) -> bool {
    let plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    let label = |label: &str| (1..=63).contains(&label.len()) && label.bytes().all(plain);
    name.len() <= HOST_MAX && name.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_allows_exactly_its_host_and_port() {
        let policy = EgressPolicy::parse(["a.example", "*.b.example", "db.example:5432"]).unwrap();
        for (host, port, expected) in [
            ("a.example", 443, true),
            ("a.example", 80, false),
            ("x.a.example", 443, false),
            ("b.example", 443, false),
            (".b.example", 443, false),
            ("x.b.example", 443, true),
            ("xb.example", 443, false),
            ("db.example", 5432, true),
            ("db.example", 443, false),
        ] {
            assert_eq!(policy.allows(host, port), expected, "{host}:{port}");
        }
    }

    #[test]
    fn a_rule_that_cannot_be_meant_is_refused() {
        for rule in [
            "",
            "*",
            "*example",
            "a b",
            "a.example:0",
            "a.example:https",
            "https://a",
            "a..b",
            "[::1]:443",
        ] {
            assert!(EgressPolicy::parse([rule]).is_err(), "{rule}");
        }
    }
}
