//! Names, links and what a run must not bring.

use super::{Rule, SlugLimits};

/// A path below the root: plain parts only, at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SlugPath {
    text: String,
}

impl SlugPath {
    /// `None` stands for the root itself.
    pub(super) fn parse(bytes: &[u8], limits: &SlugLimits) -> Result<Option<Self>, Rule> {
        let text = text(bytes, limits)?;
        if text.starts_with('/') {
            return Err(Rule::Absolute);
        }
        let parts: Vec<&str> = text
            .split('/')
            .filter(|part| !matches!(*part, "" | "."))
            .collect();
        if parts.contains(&"..") {
            return Err(Rule::Climbs);
        }
        if parts.len() > limits.depth {
            return Err(Rule::TooDeep);
        }
        if parts.iter().any(|part| part.len() > limits.name_bytes) {
            return Err(Rule::NameTooLong);
        }
        Ok((!parts.is_empty()).then(|| Self {
            text: parts.join("/"),
        }))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// The directories above it, from the top.
    pub(super) fn parents(&self) -> impl Iterator<Item = &str> {
        self.text
            .match_indices('/')
            .map(|(end, _)| &self.text[..end])
    }

    fn parts(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.text.split('/')
    }

    /// Whether a run must not bring it, whatever it is.
    pub(super) fn is_dropped(&self) -> bool {
        let apple_double = |part: &str| part.starts_with("._");
        let mut parts = self.parts().peekable();
        while let Some(part) = parts.next() {
            // A `.terraform` without anything below it is dropped as well: it would be empty.
            let data = part == ".terraform" && parts.peek() != Some(&"modules");
            if data || part == ".git" || apple_double(part) {
                return true;
            }
        }
        let name = self.parts().next_back().unwrap_or_default();
        let state = name.ends_with(".tfstate") || name.contains(".tfstate.");
        state || name.ends_with(".tfplan")
    }
}

/// Checks a link's target, seen from the link's own directory.
pub(super) fn link_target(
    link: &SlugPath,
    bytes: &[u8],
    limits: &SlugLimits,
) -> Result<String, Rule> {
    let target = text(bytes, limits)?;
    if target.starts_with('/') {
        return Err(Rule::LinkAbsolute);
    }
    let mut climbs = 0;
    let mut descended = false;
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." if descended => return Err(Rule::LinkClimbsLate),
            ".." => climbs += 1,
            _ => descended = true,
        }
    }
    if climbs > link.parents().count() {
        return Err(Rule::LinkClimbs);
    }
    Ok(target.to_owned())
}

fn text<'a>(bytes: &'a [u8], limits: &SlugLimits) -> Result<&'a str, Rule> {
    if bytes.is_empty() {
        return Err(Rule::EmptyName);
    }
    if bytes.len() > limits.path_bytes {
        return Err(Rule::NameTooLong);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| Rule::NotUtf8)?;
    if text.chars().any(char::is_control) {
        return Err(Rule::ControlCharacter);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> SlugPath {
        SlugPath::parse(text.as_bytes(), &SlugLimits::default())
            .unwrap()
            .unwrap()
    }

    #[test]
    fn paths_are_made_plain_or_refused() {
        let limits = SlugLimits::default();
        let parse = |text: &str| SlugPath::parse(text.as_bytes(), &limits);
        assert_eq!(path("./a//b/./c/").as_str(), "a/b/c");
        assert_eq!(parse("./"), Ok(None));
        assert_eq!(parse("/a"), Err(Rule::Absolute));
        assert_eq!(parse("a/../b"), Err(Rule::Climbs));
        assert_eq!(parse(""), Err(Rule::EmptyName));
        assert_eq!(parse("a\u{1b}[2J"), Err(Rule::ControlCharacter));
        assert_eq!(parse("a\u{9b}"), Err(Rule::ControlCharacter));
        assert_eq!(parse(&"a/".repeat(65)), Err(Rule::TooDeep));
        assert_eq!(parse(&"a".repeat(256)), Err(Rule::NameTooLong));
        assert_eq!(SlugPath::parse(b"\xff", &limits), Err(Rule::NotUtf8));
    }

    #[test]
    fn what_a_run_must_not_bring_is_dropped() {
        for (text, dropped) in [
            ("main.tf", false),
            (".terraform.lock.hcl", false),
            (".terraform/modules/a/main.tf", false),
            (".terraform/modules", false),
            (".terraform", true),
            (".terraform/providers/x", true),
            ("m/.terraform/terraform.tfstate", true),
            (".terraform/modules/a/.git/config", true),
            (".git/config", true),
            (".gitignore", false),
            ("terraform.tfstate", true),
            ("terraform.tfstate.backup", true),
            ("a/errored.tfstate", true),
            ("tfstate", false),
            ("._main.tf", true),
            ("._d/x", true),
            ("prod.tfplan", true),
            ("tfplan.md", false),
        ] {
            assert_eq!(path(text).is_dropped(), dropped, "{text}");
        }
    }

    #[test]
    fn a_link_stays_inside_and_climbs_only_at_its_start() {
        let limits = SlugLimits::default();
        let target = |link: &str, to: &str| link_target(&path(link), to.as_bytes(), &limits);
        assert_eq!(target("a/b", "../c").as_deref(), Ok("../c"));
        assert_eq!(target("a", "b/c").as_deref(), Ok("b/c"));
        assert_eq!(target("a", "../c"), Err(Rule::LinkClimbs));
        assert_eq!(target("a/b", "../../c"), Err(Rule::LinkClimbs));
        assert_eq!(target("a/b", "e/../.."), Err(Rule::LinkClimbsLate));
        assert_eq!(target("a", "/etc/shadow"), Err(Rule::LinkAbsolute));
    }
}
