//! What an inspection costs: `cargo run --release -p stackship-plan-diff --example measure [RESOURCES]`.
//!
//! Makes a plan of that many resources (5,000 by default), each about 2 KiB long with a few secrets, and
//! prints time and peak memory of an inspection, and of reading the same text into a tree of the
//! common kind. Each is measured in a process of its own, since a peak never goes down again.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::Instant;

use stackship_plan_diff::{Limits, inspect};

const RESOURCES: usize = 5_000;
const ATTRIBUTES: usize = 12;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("inspect") => measure("inspect", |text| {
            let inspection = inspect(text, &["a-secret-of-the-caller"], &Limits::default())?;
            let policy_bytes = inspection.policy_input.as_ref().map_or(0, Vec::len);
            Ok(format!(
                "plan-diff {} bytes, policy input {policy_bytes} bytes",
                inspection.diff.len()
            ))
        }),
        Some("baseline") => measure("baseline", |text| {
            let tree: serde_json::Value = serde_json::from_slice(text)?;
            Ok(format!(
                "a tree with {} resources",
                tree["resource_changes"].as_array().map_or(0, Vec::len)
            ))
        }),
        Some("read") => measure("read", |text| Ok(format!("{} bytes", text.len()))),
        count => {
            let count = count.map_or(Ok(RESOURCES), str::parse)?;
            let plan = plan(count)?;
            println!("{count} resources, {} bytes of JSON", plan.len());
            for what in ["read", "inspect", "baseline"] {
                in_own_process(what, &plan)?;
            }
            Ok(())
        }
    }
}

fn in_own_process(what: &str, plan: &str) -> Result<(), Failure> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg(what)
        .stdin(Stdio::piped())
        .spawn()?;
    let mut input = child.stdin.take().ok_or("the input was asked for")?;
    input.write_all(plan.as_bytes())?;
    drop(input);
    let status = child.wait()?;
    status
        .success()
        .then_some(())
        .ok_or_else(|| status.to_string().into())
}

fn measure(what: &str, of: impl FnOnce(&[u8]) -> Result<String, Failure>) -> Result<(), Failure> {
    let mut text = Vec::new();
    std::io::stdin().read_to_end(&mut text)?;
    let begin = Instant::now();
    let result = of(&text)?;
    let took = begin.elapsed();
    println!(
        "{what:>8}: {:>5} ms, peak {} KiB; {result}",
        took.as_millis(),
        peak_kib()?
    );
    Ok(())
}

fn peak_kib() -> Result<String, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let line = line.ok_or("no peak in /proc/self/status")?;
    Ok(line.trim().trim_end_matches(" kB").to_owned())
}

fn plan(count: usize) -> Result<String, std::fmt::Error> {
    let mut out = String::from(
        "{\"format_version\":\"1.2\",\"terraform_version\":\"1.12.6\",\"resource_changes\":[",
    );
    for n in 0..count {
        let comma = if n == 0 { "" } else { "," };
        write!(
            out,
            "{comma}{{\"address\":\"module.m[{n}].test_thing.a\",\"mode\":\"managed\",\"type\":\"test_thing\",\"name\":\"a\",\"provider_name\":\"example.com/stackship/test\",\"change\":{{\"actions\":[\"update\"],"
        )?;
        for (side, word) in [("before", "old"), ("after", "new")] {
            write!(
                out,
                "\"{side}\":{{\"hidden\":\"secret-{word}-{n}\",\"tags\":{{"
            )?;
            for attribute in 0..ATTRIBUTES {
                let comma = if attribute == 0 { "" } else { "," };
                write!(
                    out,
                    "{comma}\"attribute_{attribute}\":\"{word} value of attribute {attribute} of resource {n}\""
                )?;
            }
            write!(
                out,
                "}}}},\"{side}_sensitive\":{{\"hidden\":true,\"tags\":{{}}}},"
            )?;
        }
        out.push_str("\"after_unknown\":{\"id\":true,\"tags\":{}}}}");
    }
    out.push_str("],\"errored\":false}");
    Ok(out)
}
