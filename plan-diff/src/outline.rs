//! The plan-diff in a few lines, for a terminal: which objects, and what happens to them. Values are
//! left to the document itself.

use serde::Deserialize;
use stackship_domain::run::Counts;

/// How long an outline may be, in bytes, but for its last two lines.
pub const OUTLINE_BYTES_MAX: usize = 32 * 1024;
/// What stands for a name that must not be shown.
const WITHHELD: &str = "(its name is withheld)";

#[derive(Deserialize)]
struct Document {
    counts: Counts,
    omitted: Omitted,
    resources: Vec<Resource>,
    outputs: Vec<Output>,
}

#[derive(Deserialize)]
struct Omitted {
    resources: usize,
    outputs: usize,
}

/// A name; a null when it is withheld.
#[derive(Deserialize)]
struct Name(Option<String>);

impl Name {
    fn text(&self) -> &str {
        self.0.as_deref().unwrap_or(WITHHELD)
    }
}

#[derive(Deserialize)]
struct Resource {
    action: String,
    address: Name,
    /// Present, though perhaps withheld, when the resource moved.
    #[serde(default, deserialize_with = "present")]
    previous_address: Option<Name>,
    #[serde(default)]
    deposed: Option<String>,
    imported: bool,
}

#[derive(Deserialize)]
struct Output {
    action: String,
    name: Name,
}

/// Tells a null from a member that is not there.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Name>, D::Error> {
    Name::deserialize(deserializer).map(Some)
}

/// The lines for a plan-diff that [`inspect`](crate::inspect()) made: one for each change, those that
/// destroy first, and one with the counts of the whole plan.
pub fn outline(diff: &[u8]) -> Result<String, serde_json::Error> {
    let document: Document = serde_json::from_slice(diff)?;
    let mut resources: Vec<&Resource> = document.resources.iter().collect();
    resources.sort_by_key(|resource| !destroys(&resource.action));
    let lines: Vec<String> = (resources.into_iter().map(Resource::line))
        .chain(document.outputs.iter().map(Output::line))
        .collect();
    let mut text = String::new();
    let mut listed = 0;
    for line in &lines {
        if text.len() + line.len() > OUTLINE_BYTES_MAX {
            break;
        }
        text.push_str(line);
        listed += 1;
    }
    let rest = lines.len() - listed + document.omitted.resources + document.omitted.outputs;
    let rest = (rest > 0).then(|| format!("  … and {rest} more\n"));
    text.push_str(&rest.unwrap_or_default());
    text.push_str(&sum(&document.counts));
    Ok(text)
}

impl Resource {
    fn line(&self) -> String {
        let (sign, verb) = match self.action.as_str() {
            "create" => ("+", "create"),
            "update" => ("~", "update"),
            "delete" => ("-", "destroy"),
            "replace_destroy_first" => ("-/+", "replace, destroying first"),
            "replace_create_first" => ("+/-", "replace, creating first"),
            "forget" => (".", "forget"),
            "replace_forget" => ("./+", "forget and create"),
            "move" => (">", "move"),
            "import" => ("<", "import"),
            _ => ("?", "not known; may destroy"),
        };
        let moved = self.previous_address.as_ref();
        let deposed = self.deposed.as_ref();
        let further = [
            moved.map(|from| format!("; moved from {}", from.text())),
            deposed.map(|key| format!("; deposed object {key}")),
            (self.imported && self.action != "import").then(|| "; imported".to_owned()),
        ];
        let further: String = further.into_iter().flatten().collect();
        format!("  {sign:>3} {}: {verb}{further}\n", self.address.text())
    }
}

impl Output {
    fn line(&self) -> String {
        format!("    = output {}: {}\n", self.name.text(), self.action)
    }
}

/// What nobody knows is taken for the worst.
fn destroys(action: &str) -> bool {
    !matches!(
        action,
        "create" | "update" | "forget" | "replace_forget" | "move" | "import"
    )
}

/// The counts in OpenTofu's words, and those it has no words for.
fn sum(counts: &Counts) -> String {
    let outputs = match counts.output {
        1 => "output to change",
        _ => "outputs to change",
    };
    let further = [
        (counts.import, "to import"),
        (counts.forget, "to forget"),
        (counts.moved, "to move"),
        (counts.output, outputs),
    ];
    let first = format!(
        "Plan: {} to add, {} to change, {} to destroy",
        counts.create, counts.change, counts.destroy
    );
    let further = further.into_iter().filter(|(number, _)| *number > 0);
    let parts: Vec<String> = std::iter::once(first)
        .chain(further.map(|(number, what)| format!("{number} {what}")))
        .collect();
    format!("{}.\n", parts.join(", "))
}
