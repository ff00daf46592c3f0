//! `stackship bench policy`: policies over a large plan in the limited process that evaluates them, with
//! the limits it always has, against the same policies over an empty plan.

use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use serde_json::value::RawValue;
use stackship_domain::Sha256Digest;
use stackship_domain::run::{PolicyOutcome, samples};
use stackship_policy::{AttachedBundle, Bundle, Context, Evaluation, Evaluator, INPUT_SCHEMA};

use super::Bench;
use super::figures::{Figure, mebibytes, seconds};
use super::large_plan::{self, RESOURCES};
use super::memory::Watch;
use super::plan_diff;
use crate::Failure;
use crate::answer::remark;

/// One in so many resources is warned of, so that a result tells whether all were looked at.
const WARNED_OF: usize = 100;
const MANIFEST: &str = r#"{"version": "1", "policies": [
    {"id": "destroys", "file": "destroys.rego", "level": "hard_mandatory", "enabled": true},
    {"id": "tags", "file": "tags.rego", "level": "soft_mandatory", "enabled": true},
    {"id": "names", "file": "names.rego", "level": "advisory", "enabled": true}
]}"#;
/// Looks at what happens to each resource.
const DESTROYS: &str = r#"package stackship.destroys
import data.stackship.helpers

deny contains finding if {
	some rc in input.plan.resource_changes
	"delete" in helpers.actions(rc)
	finding := {
		"rule_id": "destroys", "title": "Nothing is destroyed",
		"message": "It would be destroyed.", "resource_address": rc.address,
	}
}
"#;
/// Looks at a value of each resource, with what the helpers say about it.
const TAGS: &str = r#"package stackship.tags
import data.stackship.helpers

deny contains finding if {
	some rc in input.plan.resource_changes
	not tagged(rc)
	finding := {
		"rule_id": "tags", "title": "Everything is tagged",
		"message": "Its tag is not known to be new.", "resource_address": rc.address,
	}
}

tagged(rc) if {
	helpers.known(rc, ["tags", "attribute_0"])
	startswith(rc.change.after.tags.attribute_0, "new value")
}
"#;
/// Looks at the address of each resource, and finds some.
const NAMES: &str = r#"package stackship.names

warn contains finding if {
	some rc in input.plan.resource_changes
	endswith(rc.address, "50].test_thing.a")
	finding := {
		"rule_id": "names", "title": "Fifties are looked at",
		"message": "Its number ends with 50.", "resource_address": rc.address,
	}
}
"#;

/// Measures pairs, one after the other, so that both sides see the same machine.
pub async fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let evaluator = Evaluator::new(std::env::current_exe()?);
    let attached = attached()?;
    let large = document(RESOURCES)?;
    let empty = document(0)?;
    remark(format_args!(
        "{RESOURCES} resources, {} bytes of input",
        large.len()
    ));
    // Once first: the program is in memory for every measured pair.
    evaluate(&evaluator, &attached, &empty, 0).await?;
    let (mut times, mut peaks) = (Vec::new(), Vec::new());
    let (mut bare_times, mut bare_peaks) = (Vec::new(), Vec::new());
    for _ in 0..bench.n {
        let (time, peak) = evaluate(&evaluator, &attached, &large, RESOURCES).await?;
        times.push(time);
        peaks.push(peak);
        let (time, peak) = evaluate(&evaluator, &attached, &empty, 0).await?;
        bare_times.push(time);
        bare_peaks.push(peak);
    }
    Ok(vec![
        seconds("policies over 5,000 resources", &times, Some(&bare_times)),
        mebibytes(
            "memory of the limited process, peak",
            &peaks,
            Some(&bare_peaks),
        ),
    ])
}

async fn evaluate(
    evaluator: &Evaluator,
    attached: &[AttachedBundle],
    input: &[u8],
    resources: usize,
) -> Result<(Duration, u64), Failure> {
    let context = Context {
        run: samples::id(1),
        plan: Sha256Digest::of(b"bench"),
        redacted_plan: None,
        policy_input: Some(Sha256Digest::of(input)),
        evaluated_at: samples::at(0),
    };
    let watch = Watch::next_child();
    let began = Instant::now();
    let evaluation = evaluator.evaluate(attached, input, context).await;
    let took = began.elapsed();
    let peak = watch.peak();
    check(&evaluation?, resources)?;
    Ok((took, peak?))
}

/// Whether every resource was looked at, and nothing was denied.
fn check(evaluation: &Evaluation, resources: usize) -> Result<(), Failure> {
    if evaluation.outcome != PolicyOutcome::Pass {
        let first = evaluation.findings.first();
        let why = first.map_or("nothing is told", |finding| &finding.message);
        return Err(format!("the policies did not pass: {:?}: {why}", evaluation.outcome).into());
    }
    let (found, expected) = (evaluation.findings.len(), resources / WARNED_OF);
    if found == expected {
        Ok(())
    } else {
        Err(format!("{found} resources were warned of, not {expected}").into())
    }
}

/// The whole policy input for a plan of so many resources, redacted as every plan is.
fn document(resources: usize) -> Result<Vec<u8>, Failure> {
    let redacted = plan_diff::policy_input(&large_plan::plan(resources)?, resources)?;
    around(redacted)
}

fn around(redacted: Vec<u8>) -> Result<Vec<u8>, Failure> {
    let plan = RawValue::from_string(String::from_utf8(redacted)?)?;
    let stackship = json!({ "schema": INPUT_SCHEMA, "evaluated_at": samples::at(0) });
    let document = [
        ("plan", plan),
        ("run", serde_json::value::to_raw_value(&json!({}))?),
        ("workspace", serde_json::value::to_raw_value(&json!({}))?),
        ("stackship", serde_json::value::to_raw_value(&stackship)?),
    ];
    let document: std::collections::BTreeMap<_, _> = document.into();
    Ok(serde_json::to_vec(&document)?)
}

fn attached() -> Result<Vec<AttachedBundle>, Failure> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, text) in [
        ("manifest.json", MANIFEST),
        ("destroys.rego", DESTROYS),
        ("tags.rego", TAGS),
        ("names.rego", NAMES),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_size(u64::try_from(text.len())?);
        header.set_mode(0o644);
        archive.append_data(&mut header, path, text.as_bytes())?;
    }
    let bundle = Bundle::from_archive(&archive.into_inner()?.finish()?)?;
    Ok(vec![AttachedBundle {
        pinned: bundle.digest(),
        bundle,
    }])
}
