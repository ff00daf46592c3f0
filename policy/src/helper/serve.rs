//! The work of the limited process: read the request, evaluate, answer.

use std::io::{Read, Write};

use regorus::Value;

use super::engine::{Deadline, Failure, Loaded};
use super::member::Found;
use crate::strict_json;
use crate::wire::{REQUEST_BYTES_MAX, Reply, Request, Task};

/// What a policy is tried on when its bundle is uploaded: a plan that does nothing. A policy that
/// cannot be evaluated on it could not be evaluated on a run without changes either.
const EMPTY_PLAN: &str = r#"{
    "plan": {"format_version": "1.2", "resource_changes": [], "output_changes": {}},
    "run": {},
    "workspace": {},
    "stackship": {"schema": "stackship.policy-input/v1", "evaluated_at": "1970-01-01T00:00:00Z"}
}"#;

/// Answers one request. A reply that cannot be written is one that the parent does not get, and so
/// not a pass.
pub(super) fn serve(input: &mut impl Read, output: &mut impl Write) {
    let mut at = None;
    let reply = answer(input, output, &mut at).unwrap_or_else(|failure| Reply::Failed {
        code: failure.code,
        policy: at,
        detail: crate::text::plain(&failure.detail, crate::MESSAGE_CHARS_MAX),
    });
    drop(say(output, &reply));
}

fn answer(
    input: &mut impl Read,
    output: &mut impl Write,
    at: &mut Option<usize>,
) -> Result<Reply, Failure> {
    let request = request(input)?;
    let data: Vec<Option<Value>> = request
        .data
        .iter()
        .map(|text| text.as_deref().map(json).transpose())
        .collect::<Result<_, _>>()?;
    let document = document(request.task, input)?;
    let deadline = Deadline::after(request.evaluation_ms);
    let mut found = Found::default();
    for (policy, source) in request.policies.into_iter().enumerate() {
        *at = Some(policy);
        say(output, &Reply::Begins { policy })?;
        let data = data.get(source.bundle).and_then(Option::as_ref);
        let sets =
            Loaded::new(source, data).and_then(|loaded| loaded.evaluate(&document, deadline));
        let sets = match request.task {
            Task::Validate => sets,
            Task::Evaluate => sets.map_err(Failure::without_source),
        };
        found.take(&sets?)?;
    }
    *at = None;
    let (counts, findings) = found.finish();
    Ok(match request.task {
        Task::Validate => Reply::Valid {},
        Task::Evaluate => Reply::Evaluated { counts, findings },
    })
}

fn request(input: &mut impl Read) -> Result<Request, Failure> {
    let unreadable = || Failure::error("the request cannot be read");
    let mut length = [0; 4];
    input.read_exact(&mut length).map_err(|_| unreadable())?;
    let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
    if length > REQUEST_BYTES_MAX {
        return Err(unreadable());
    }
    let mut bytes = vec![0; length];
    input.read_exact(&mut bytes).map_err(|_| unreadable())?;
    serde_json::from_slice(&bytes).map_err(|_| unreadable())
}

fn document(task: Task, input: &mut impl Read) -> Result<Value, Failure> {
    if task == Task::Validate {
        return json(EMPTY_PLAN);
    }
    let mut text = String::new();
    input
        .read_to_string(&mut text)
        .map_err(|_| Failure::error("the policy input is not UTF-8 text"))?;
    json(&text)
}

fn json(text: &str) -> Result<Value, Failure> {
    strict_json::check(text)
        .map_err(|error| Failure::error(format!("the policy input or the data: {error}")))?;
    Value::from_json_str(text).map_err(|error| Failure::error(format!("{error:#}")))
}

fn say(output: &mut impl Write, reply: &Reply) -> Result<(), Failure> {
    let mut line = serde_json::to_vec(reply).map_err(|error| Failure::error(error.to_string()))?;
    line.push(b'\n');
    let written = output.write_all(&line).and_then(|()| output.flush());
    written.map_err(|_| Failure::error("the reply cannot be written"))
}
