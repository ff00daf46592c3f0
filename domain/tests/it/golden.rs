//! What every event looks like in the log. An event that was written once is read for ever: a golden
//! file that no longer fits needs an upcaster and a new version, not a new file.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use stackship_domain::{run, workspace};

#[test]
fn every_event_of_a_run_is_written_as_it_always_was() {
    check("run", &run::samples::one_event_of_each(), run::Event::name);
}

#[test]
fn every_event_of_a_workspace_is_written_as_it_always_was() {
    let events = workspace::samples::one_event_of_each();
    check("workspace", &events, workspace::Event::name);
}

/// A part that came later is absent from what was written before it, and reads as nothing there.
#[test]
fn what_only_some_events_have_is_written_beside_what_all_have() {
    check_more(
        "run",
        &run::samples::events_with_more(),
        |event| matches!(event, run::Event::LockGranted { warnings, .. } if warnings.is_empty()),
    );
    check_more(
        "workspace",
        &workspace::samples::events_with_more(),
        |event| {
            matches!(
                event,
                workspace::Event::LockReleased {
                    left_behind: None,
                    ..
                }
            )
        },
    );
}

/// Each sample equals its golden file, and the event of its kind from before reads without the part.
fn check_more<E>(room: &str, events: &[(&'static str, E)], has_nothing_more: fn(&E) -> bool)
where
    E: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let more = golden.join("with_more").join(room);
    for (name, event) in events {
        assert_eq!(
            changed(&more, event, name),
            None,
            "{name} is written otherwise"
        );
        let tag = serde_json::to_value(event).unwrap()["type"].clone();
        let plain = golden
            .join(room)
            .join(format!("{}.json", tag.as_str().unwrap()));
        let plain: E = serde_json::from_str(&std::fs::read_to_string(plain).unwrap()).unwrap();
        assert!(has_nothing_more(&plain), "{plain:?}");
        assert!(!has_nothing_more(event), "{event:?}");
    }
}

/// What was written before runs had policies is read as what it was: judged by none.
#[test]
fn events_from_before_there_were_policies_are_still_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/before_policies");
    let read = |name: &str| -> run::Event {
        let golden = std::fs::read_to_string(folder.join(name)).unwrap();
        serde_json::from_str(&golden).unwrap()
    };
    let queued = run::Event::RunQueued {
        facts: run::samples::facts(),
        auto_apply: false,
    };
    assert_eq!(read("run_queued.json"), queued);
    let recorded = run::Event::PlanRecorded {
        plan: run::samples::plan(),
    };
    assert_eq!(read("plan_recorded.json"), recorded);
    let run::Event::PolicyEvaluated { result, .. } = read("policy_evaluated.json") else {
        panic!("another event")
    };
    assert_eq!((result.denials, result.error_code), (0, None));
}

/// Each sample equals its golden file in both directions, and no file is left over.
fn check<E>(room: &str, events: &[E], name: fn(&E) -> &'static str)
where
    E: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let sampled: BTreeSet<_> = events.iter().map(name).map(str::to_owned).collect();
    assert_eq!(
        sampled,
        tags::<E>(),
        "a sample of every event, under its name"
    );
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(room);
    let changed: Vec<_> = events
        .iter()
        .filter_map(|event| changed(&folder, event, name(event)))
        .collect();
    assert!(
        changed.is_empty(),
        "written differently from {}: {changed:#?}",
        folder.display()
    );
    let kept: BTreeSet<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter_map(|path| path.file_stem()?.to_str().map(str::to_owned))
        .collect();
    assert_eq!(kept, sampled, "a golden file for every event and no other");
}

/// Where the event is written as it looks today, if that differs from its golden file.
fn changed<E>(folder: &Path, event: &E, name: &str) -> Option<PathBuf>
where
    E: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let written = format!("{}\n", serde_json::to_string_pretty(event).unwrap());
    let golden = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap_or_default();
    if golden != written {
        return Some(put_aside(name, &written));
    }
    let read: E = serde_json::from_str(&golden).unwrap();
    assert_eq!(&read, event, "`{name}` is read back as something else");
    None
}

/// Where a new event's golden file can be fetched from, once it has been looked at.
fn put_aside(name: &str, written: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.json"));
    std::fs::write(&path, written).unwrap();
    path
}

/// Every tag that the type reads, as its own error message lists them.
fn tags<E: DeserializeOwned>() -> BTreeSet<String> {
    let Err(error) = serde_json::from_str::<E>(r#"{"type":"no such event"}"#) else {
        panic!("an unknown event was read");
    };
    let text = error.to_string();
    let (_, expected) = text.split_once("expected one of").expect("a list of tags");
    expected
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}
