//! The step that makes of a plan's JSON what may leave: this same binary, started again as the last
//! step of the inspection's sandbox. It reads two files and writes two, and has nothing else to do.
//!
//! What it prints goes into a log that people read, so it never prints a part of what it read: not in
//! an error, and not in a panic either.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::exit;

use stackship_plan_diff::{InspectError, PLAN_JSON_BYTES_MAX, Summary};

/// First argument by which the binary knows that it is this step; the directory follows.
pub const ARGUMENT: &str = "redact-plan";

/// The plan as JSON, in the directory.
pub const PLAN_JSON_FILE: &str = "plan.json";
/// Sensitive values, a JSON list of texts.
pub const SECRETS_FILE: &str = "secrets.json";
/// What people may see.
pub const PLAN_DIFF_FILE: &str = "plan-diff.json";
/// What policies see; not there when it would be too long.
pub const POLICY_INPUT_FILE: &str = "policy-input.json";

/// The longest list of sensitive values, in bytes.
const SECRETS_BYTES_MAX: u64 = stackship_sandbox::spec::INLINE_BYTES_MAX as u64;
/// Bytes read at a time.
const BUFFER_BYTES: usize = 64 * 1024;

const _: () = {
    use stackship_runner_protocol as protocol;
    assert!(
        PLAN_JSON_BYTES_MAX == protocol::PLAN_JSON_BYTES_MAX
            && stackship_plan_diff::DIFF_BYTES_MAX as u64 == protocol::PLAN_DIFF_BYTES_MAX
            && stackship_plan_diff::POLICY_INPUT_BYTES_MAX as u64
                == protocol::POLICY_INPUT_BYTES_MAX,
        "what is made is exactly as long as what is taken"
    );
};

/// Why there is nothing that may leave. No text here quotes what was read.
#[derive(Debug, thiserror::Error)]
enum RedactError {
    #[error("the directory is not named")]
    NoDirectory,
    #[error("`{name}` cannot be {how}: {kind}")]
    File {
        name: &'static str,
        how: &'static str,
        kind: std::io::ErrorKind,
    },
    #[error("the list of sensitive values cannot be read")]
    Secrets,
    #[error(transparent)]
    Inspect(#[from] InspectError),
    #[error("the summary cannot be written")]
    Summary,
}

/// Becomes the step when the first argument says so; otherwise returns.
///
/// Call it first in `main`, before any thread is started and any argument is parsed.
pub fn run_helper_if_asked() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|first| first != ARGUMENT) {
        return;
    }
    // The usual message of a panic may quote the text that was being cut.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        eprintln!(
            "redact-plan: a defect at {}",
            place.as_deref().unwrap_or("an unknown place")
        );
    }));
    let directory = arguments.next().map(PathBuf::from);
    let outcome = directory.ok_or(RedactError::NoDirectory);
    exit(match outcome.and_then(|directory| redact(&directory)) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("redact-plan: {error}");
            1
        }
    })
}

/// Writes both documents into the directory, and the summary to standard output.
fn redact(directory: &Path) -> Result<(), RedactError> {
    let secrets = secrets(directory)?;
    let json = open(directory, PLAN_JSON_FILE)?;
    let diff = create(directory, PLAN_DIFF_FILE)?;
    let policy_input = create(directory, POLICY_INPUT_FILE)?;
    let summary = stackship_plan_diff::run(json, &secrets, diff, policy_input)?;
    if !summary.has_policy_input {
        std::fs::remove_file(directory.join(POLICY_INPUT_FILE))
            .map_err(|error| file_error(POLICY_INPUT_FILE, "removed", &error))?;
    }
    tell(&summary)
}

fn tell(summary: &Summary) -> Result<(), RedactError> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, summary).map_err(|_| RedactError::Summary)?;
    out.flush().map_err(|_| RedactError::Summary)
}

fn secrets(directory: &Path) -> Result<Vec<String>, RedactError> {
    let file = open(directory, SECRETS_FILE)?.take(SECRETS_BYTES_MAX);
    // Its error would quote what it could not read.
    serde_json::from_reader(file).map_err(|_| RedactError::Secrets)
}

fn open(directory: &Path, name: &'static str) -> Result<impl Read, RedactError> {
    let file = File::open(directory.join(name));
    file.map(|file| BufReader::with_capacity(BUFFER_BYTES, file))
        .map_err(|error| file_error(name, "opened", &error))
}

/// A new file: what an earlier step may have put there in its place is refused.
fn create(directory: &Path, name: &'static str) -> Result<BufWriter<File>, RedactError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let file = options.open(directory.join(name));
    file.map(|file| BufWriter::with_capacity(BUFFER_BYTES, file))
        .map_err(|error| file_error(name, "created", &error))
}

fn file_error(name: &'static str, how: &'static str, error: &std::io::Error) -> RedactError {
    RedactError::File {
        name,
        how,
        kind: error.kind(),
    }
}
