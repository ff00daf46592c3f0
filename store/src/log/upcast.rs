//! Old shapes of events become today's before anybody reads them: the one place that knows them.

use serde_json::Value;

/// An event this program cannot bring to today's shape.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "event {aggregate_type}.{event_type} has version {version}, which this release cannot read"
)]
pub struct UnknownVersion {
    aggregate_type: String,
    event_type: String,
    version: String,
}

/// Brings a payload of an aggregate's event in a stored version to today's shape.
pub type Upcast = fn(&str, &str, &str, Value) -> Result<Value, UnknownVersion>;

/// Brings a payload to today's shape. Every event has version 1.0 today; a later one is refused,
/// because guessing its shape would be worse than stopping.
pub fn upcast(
    aggregate_type: &str,
    event_type: &str,
    version: &str,
    payload: Value,
) -> Result<Value, UnknownVersion> {
    match version {
        "1.0" => Ok(payload),
        other => Err(UnknownVersion {
            aggregate_type: aggregate_type.to_owned(),
            event_type: event_type.to_owned(),
            version: other.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_version_from_the_future_is_refused_by_name() {
        assert_eq!(
            upcast("run", "run_queued", "1.0", json!({"a": 1})),
            Ok(json!({"a": 1}))
        );
        let error = upcast("run", "run_queued", "2.0", json!({})).unwrap_err();
        assert!(
            error.to_string().contains("run.run_queued has version 2.0"),
            "{error}"
        );
    }
}
