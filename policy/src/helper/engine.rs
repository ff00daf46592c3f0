//! One policy in one engine. Policies never share an engine: a policy sees the helpers, its bundle's
//! data and the input, and no other policy.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use regorus::utils::limits::ExecutionTimerConfig;
use regorus::{Engine, Value};

use crate::wire::{Rule, Source};
use crate::{ErrorCode, HELPERS_REGO};

/// How often the engine looks at the clock, in its own steps.
const STEPS_BETWEEN_CHECKS: NonZeroU32 = NonZeroU32::new(16).expect("16 is not zero");
/// The path that messages give for the helpers.
const HELPERS_FILE: &str = "stackship/helpers.rego";

/// Builtins whose answer is not a function of their arguments, with the number of those. Most are
/// not compiled in; they are named all the same, so that a changed feature cannot bring one back.
const IMPURE: &[(&str, u8)] = &[
    ("http.send", 1),
    ("net.lookup_ip_addr", 1),
    ("opa.runtime", 0),
    ("rand.intn", 2),
    ("test.sleep", 1),
    ("time.now_ns", 0),
    ("uuid.rfc4122", 1),
];

/// Why a policy could not be evaluated.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) code: ErrorCode,
    pub(super) detail: String,
}

impl Failure {
    pub(super) fn error(detail: impl Into<String>) -> Self {
        Self {
            code: ErrorCode::PolicyError,
            detail: detail.into(),
        }
    }

    pub(super) fn timeout() -> Self {
        Self {
            code: ErrorCode::PolicyTimeout,
            detail: "the policies took longer than an evaluation may".to_owned(),
        }
    }

    /// Without the line of the policy that the engine quotes. Who uploads a policy is helped by it;
    /// whoever reads a run's findings need not be allowed to read the policies, and gets the place alone.
    pub(super) fn without_source(mut self) -> Self {
        let is_quoted = |line: &&str| {
            let line = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
            line.starts_with('|')
        };
        let lines = self.detail.lines().filter(|line| !is_quoted(line));
        self.detail = lines
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect::<Vec<_>>()
            .join(" ");
        self
    }
}

/// Any error of the engine but that of its timer.
fn broken(error: impl std::fmt::Display) -> Failure {
    Failure::error(format!("{error:#}"))
}

#[derive(Debug, thiserror::Error)]
#[error("this builtin does not exist for policies: the same input must give the same result")]
struct Impure;

/// When all policies together must be done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline(Instant);

impl Deadline {
    pub(super) fn after(milliseconds: u64) -> Self {
        Self(Instant::now() + Duration::from_millis(milliseconds))
    }

    fn remaining(self) -> Result<Duration, Failure> {
        let left = self.0.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Failure::timeout());
        }
        Ok(left)
    }
}

/// A policy that has been loaded.
pub(super) struct Loaded {
    engine: Engine,
    package: String,
    declared: Vec<Rule>,
}

impl Loaded {
    pub(super) fn new(source: Source, data: Option<&Value>) -> Result<Self, Failure> {
        let mut engine = engine()?;
        let Source {
            package,
            file,
            text,
            ..
        } = source;
        let found = engine.add_policy(file.clone(), text).map_err(broken)?;
        if found != package {
            let wanted = package.trim_start_matches("data.");
            let found = found.trim_start_matches("data.");
            return Err(Failure::error(format!(
                "it declares the package `{found}` and must declare `{wanted}`, after the policy's id"
            )));
        }
        if let Some(data) = data {
            engine.add_data(data.clone()).map_err(broken)?;
        }
        let mut declared = Vec::new();
        for rule in [Rule::Deny, Rule::Warn] {
            let is_there = engine.has_declared_rule_rooted_at(&file, rule.as_str());
            if is_there.map_err(broken)? {
                declared.push(rule);
            }
        }
        if declared.is_empty() {
            return Err(Failure::error(
                "it declares neither `deny` nor `warn`; write `deny contains finding if { ... }`",
            ));
        }
        Ok(Self {
            engine,
            package,
            declared,
        })
    }

    /// The sets that the policy declares, over `input`.
    pub(super) fn evaluate(
        mut self,
        input: &Value,
        deadline: Deadline,
    ) -> Result<Vec<(Rule, Value)>, Failure> {
        self.engine.set_input(input.clone());
        let mut sets = Vec::new();
        for rule in self.declared {
            self.engine
                .set_execution_timer_config(ExecutionTimerConfig {
                    limit: deadline.remaining()?,
                    check_interval: STEPS_BETWEEN_CHECKS,
                });
            let path = format!("{}.{}", self.package, rule.as_str());
            let value = self.engine.eval_rule(path);
            // Inside a function the engine passes its timer's error on as mere text, so the clock
            // decides what it was.
            let value = value
                .map_err(|error| deadline.remaining().err().unwrap_or_else(|| broken(error)))?;
            if !matches!(value, Value::Set(_)) {
                let name = rule.as_str();
                return Err(Failure::error(format!(
                    "`{name}` is not a set; write `{name} contains finding if {{ ... }}`"
                )));
            }
            sets.push((rule, value));
        }
        deadline.remaining()?;
        Ok(sets)
    }
}

fn engine() -> Result<Engine, Failure> {
    let mut engine = Engine::new();
    engine.set_strict_builtin_errors(true);
    // Ungathered, a print goes to standard error at once. Nobody ever reads what is gathered.
    engine.set_gather_prints(true);
    for (name, arguments) in IMPURE {
        let refuse = Box::new(|_: Vec<Value>| Err(Impure.into()));
        let added = engine.add_extension((*name).to_owned(), *arguments, refuse);
        added.map_err(broken)?;
    }
    let helpers = engine.add_policy(HELPERS_FILE.to_owned(), HELPERS_REGO.to_owned());
    helpers.map_err(broken)?;
    Ok(engine)
}
