//! What a state file knows.

use std::collections::BTreeSet;

use serde_json::Value;

/// The resources of one state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    pub serial: i64,
    /// Names of the resources that are in it, tainted ones too.
    pub resources: BTreeSet<String>,
    /// Those that have to be made anew.
    pub tainted: BTreeSet<String>,
}

impl State {
    /// Reads a state file; nothing when these bytes are none.
    pub fn parse(file: &Value) -> Option<Self> {
        let mut state = Self {
            serial: file["serial"].as_i64()?,
            ..Self::default()
        };
        for resource in file["resources"].as_array()? {
            let name = resource["name"].as_str()?.to_owned();
            for instance in resource["instances"].as_array()? {
                if instance["status"] == "tainted" {
                    state.tainted.insert(name.clone());
                }
                state.resources.insert(name.clone());
            }
        }
        Some(state)
    }
}
