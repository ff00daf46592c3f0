//! A plan as large as a large installation's: many resources that change, with a few secrets each.

use std::fmt::Write as _;

/// How many resources are measured.
pub const RESOURCES: usize = 5_000;
/// A sensitive value that the plan does not tell; it stands nowhere in it.
pub const SECRETS: &[&str] = &["a-secret-of-the-caller"];
/// How many open attributes each resource has on each side.
const ATTRIBUTES: usize = 12;

/// The plan as JSON: that many resources, each some 2 KiB long, updated, with a secret on each side.
pub fn plan(resources: usize) -> Result<String, std::fmt::Error> {
    let mut out = String::from(
        "{\"format_version\":\"1.2\",\"terraform_version\":\"1.12.6\",\"resource_changes\":[",
    );
    for number in 0..resources {
        let comma = if number == 0 { "" } else { "," };
        out.push_str(comma);
        resource(&mut out, number)?;
    }
    out.push_str("],\"errored\":false}");
    Ok(out)
}

fn resource(out: &mut String, number: usize) -> std::fmt::Result {
    write!(
        out,
        "{{\"address\":\"module.m[{number}].test_thing.a\",\"mode\":\"managed\",\"type\":\"test_thing\",\"name\":\"a\",\"provider_name\":\"example.com/stackship/test\",\"change\":{{\"actions\":[\"update\"],"
    )?;
    for (side, word) in [("before", "old"), ("after", "new")] {
        write!(
            out,
            "\"{side}\":{{\"hidden\":\"secret-{word}-{number}\",\"tags\":{{"
        )?;
        for attribute in 0..ATTRIBUTES {
            let comma = if attribute == 0 { "" } else { "," };
            write!(
                out,
                "{comma}\"attribute_{attribute}\":\"{word} value of attribute {attribute} of resource {number}\""
            )?;
        }
        write!(
            out,
            "}}}},\"{side}_sensitive\":{{\"hidden\":true,\"tags\":{{}}}},"
        )?;
    }
    out.push_str("\"after_unknown\":{\"id\":true,\"tags\":{}}}}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_json_with_as_many_resources_as_asked_for() {
        for resources in [0, 1, 3] {
            let plan: serde_json::Value = serde_json::from_str(&plan(resources).unwrap()).unwrap();
            let listed = plan["resource_changes"].as_array().unwrap();
            assert_eq!(listed.len(), resources);
        }
    }
}
