//! docs/routes.md says what the OpenAPI document says: its table is made from the document.

use serde_json::Value;

use crate::{stackship, text};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/routes.md");

/// One line of the table: what to ask, what it does in a sentence, and what it takes.
fn row(document: &Value, path: &str, method: &str, operation: &Value) -> String {
    let summary = operation["summary"]
        .as_str()
        .expect("a route has a summary");
    let summary: Vec<&str> = summary.split_whitespace().collect();
    let summary = summary.join(" ");
    let sentence = summary.split(". ").next().unwrap_or_default();
    let sentence = sentence.trim_end_matches('.');
    let mut takes = body(document, operation);
    takes.extend(query(operation));
    let method = method.to_ascii_uppercase();
    format!("| `{method} {path}` | {sentence} | {} |", takes.join(", "))
}

/// The members of a body, those that may be absent with a question mark.
fn body(document: &Value, operation: &Value) -> Vec<String> {
    let Some(content) = operation["requestBody"]["content"].as_object() else {
        return Vec::new();
    };
    let Some(json) = content.get("application/json") else {
        return vec!["an archive".to_owned()];
    };
    let named = json["schema"]["$ref"].as_str().unwrap_or_default();
    let schema = named.rsplit('/').next().unwrap_or_default();
    let schema = &document["components"]["schemas"][schema];
    let needed = schema["required"].as_array().cloned().unwrap_or_default();
    let Some(members) = schema["properties"].as_object() else {
        return vec!["`{}`".to_owned()];
    };
    let member = |name: &String| {
        let mark = if needed.iter().any(|needed| needed == name) {
            ""
        } else {
            "?"
        };
        format!("`{name}`{mark}")
    };
    members.keys().map(member).collect()
}

fn query(operation: &Value) -> Vec<String> {
    let parameters = operation["parameters"].as_array().cloned();
    let parameters = parameters.unwrap_or_default().into_iter();
    let queried = parameters.filter(|parameter| parameter["in"] == "query");
    queried
        .map(|parameter| format!("`?{}=`", parameter["name"].as_str().unwrap_or_default()))
        .collect()
}

#[test]
fn the_table_of_routes_is_that_of_the_document() {
    let document = text(&stackship(&["openapi"], &[]).stdout);
    let document: Value = serde_json::from_str(&document).expect("the document is JSON");
    let paths = document["paths"].as_object().expect("there are paths");
    let mut expected = Vec::new();
    for (path, methods) in paths {
        for (method, operation) in methods.as_object().expect("a path has methods") {
            expected.push(row(&document, path, method, operation));
        }
    }
    let page = std::fs::read_to_string(PAGE).expect("the page is there");
    let told: Vec<&str> = page.lines().filter(|line| line.contains(" /v1/")).collect();
    let told: Vec<&str> = told
        .into_iter()
        .filter(|line| line.starts_with("| `"))
        .collect();
    for row in &expected {
        assert!(told.contains(&row.as_str()), "docs/routes.md lacks\n{row}");
    }
    for row in &told {
        assert!(
            expected.iter().any(|known| known == row),
            "there is no such route\n{row}"
        );
    }
}
