//! One golden file for every document that leaves this edge. A run's is beside its mapping.

use serde_json::{Value, json};
use stackship_domain::ids::{
    ConfigurationVersionId, ProjectId, RunId, StateVersionId, WorkspaceId,
};
use stackship_domain::run::samples::{at, id};
use stackship_domain::{Role, TofuVersion};
use stackship_store::records::workspaces::Workspace;

use super::*;
use crate::v2::mapping::{Rights, outputs, workspace_resource};

fn document(value: &impl Serialize) -> Value {
    let value = serde_json::to_value(value).unwrap();
    every_time_ends_in_z(&value);
    value
}

/// The client throws away a whole document for one time with an offset.
fn every_time_ends_in_z(value: &Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                if name.ends_with("-at") {
                    let time = member.as_str().unwrap();
                    assert!(time.ends_with('Z') && time.contains('T'), "{name}: {time}");
                }
                every_time_ends_in_z(member);
            }
        }
        Value::Array(items) => items.iter().for_each(every_time_ends_in_z),
        _ => {}
    }
}

fn workspace() -> Workspace {
    Workspace {
        id: id::<WorkspaceId>(3),
        organization: id(1),
        project: id::<ProjectId>(2),
        name: "net".parse().unwrap(),
        tofu_version: "1.12.6".parse::<TofuVersion>().unwrap(),
        working_directory: String::new(),
        region: "local".to_owned(),
        platform: "linux_amd64".to_owned(),
        approval_seconds: 600,
        current_state_version: None,
        created_at: at(0),
        updated_at: at(1),
    }
}

#[test]
fn entitlements_capacity_and_project() {
    let entitlements = EntitlementResource::plain(
        Kind::EntitlementSets,
        "org-1",
        EntitlementAttributes::OFFERED,
    );
    let capacity = CapacityAttributes {
        pending: 2,
        running: 1,
    };
    let capacity = CapacityResource::plain(Kind::OrganizationCapacity, "acme", capacity);
    let project = ProjectAttributes {
        name: "default".to_owned(),
    };
    let project = ProjectResource::plain(Kind::Projects, id::<ProjectId>(2), project);
    insta::assert_json_snapshot!([
        document(&Document::of(entitlements)),
        document(&Document::of(capacity)),
        document(&Document::list(vec![project])),
    ]);
}

#[test]
fn a_workspace() {
    let name = "acme".parse().unwrap();
    let rights = Rights::of(Some(Role::Operator));
    let mut resource = workspace_resource(&name, &workspace(), None, rights);
    assert!(
        document(&resource)["relationships"]
            .get("current-run")
            .is_none(),
        "as included"
    );
    resource.relationships.current_run = Some(ToOne::to(Kind::Runs, id::<RunId>(42)));
    insta::assert_json_snapshot!(document(&Document::of(resource)));
}

#[test]
fn a_configuration_version_before_and_after_its_upload() {
    let attributes = |status, upload_url| ConfigurationAttributes {
        status,
        upload_url,
        auto_queue_runs: false,
        speculative: true,
        source: "tfe-api",
    };
    let url = Some("https://ship.test/api/v2/uploads/configurations/token".to_owned());
    let resource = |attributes| {
        let id = id::<ConfigurationVersionId>(4);
        document(&Document::of(ConfigurationResource::plain(
            Kind::ConfigurationVersions,
            id,
            attributes,
        )))
    };
    insta::assert_json_snapshot!([
        resource(attributes(ConfigurationStatus::Pending, url)),
        resource(attributes(ConfigurationStatus::Uploaded, None)),
    ]);
}

#[test]
fn a_plan_an_apply_a_notice_and_a_listed_run() {
    let plan = PlanAttributes {
        status: "finished",
        has_changes: true,
        generated_configuration: false,
        log_read_url: "https://ship.test/api/v2/logs/token".to_owned(),
        resource_additions: Some(1),
        resource_changes: Some(2),
        resource_destructions: Some(3),
        resource_imports: Some(0),
    };
    let apply = ApplyAttributes {
        status: "running",
        log_read_url: "https://ship.test/api/v2/logs/token".to_owned(),
    };
    let notice = RunEventAttributes {
        action: "ignored_policy_sets",
        description: "Waits for run-1.".to_owned(),
        created_at: at(5),
    };
    let listed = ListedRunAttributes {
        status: "pending",
        created_at: at(5),
        position_in_queue: 2,
    };
    insta::assert_json_snapshot!([
        document(&Document::of(PlanResource::plain(
            Kind::Plans,
            "plan-1",
            plan
        ))),
        document(&Document::of(ApplyResource::plain(
            Kind::Applies,
            "apply-1",
            apply
        ))),
        document(&Document::list(vec![RunEventResource::plain(
            Kind::RunEvents,
            "re-1",
            notice
        )])),
        document(&Document::list(vec![ListedRun::plain(
            Kind::Runs,
            "run-1",
            listed
        )])),
    ]);
}

#[test]
fn a_state_version_and_its_outputs() {
    let state = id::<StateVersionId>(9);
    let resource = StateResource {
        id: state.to_string(),
        kind: Kind::StateVersions,
        attributes: StateAttributes {
            serial: 3,
            created_at: at(7),
            status: "pending",
            hosted_state_download_url: "http://gateway/d".to_owned(),
            hosted_state_upload_url: Some("http://gateway/u".to_owned()),
            hosted_json_state_upload_url: Some("http://gateway/j".to_owned()),
        },
        relationships: StateRelationships {
            run: ToOne::to(Kind::Runs, id::<RunId>(42)),
        },
    };
    let stored = json!({
        "names": {"sensitive": false, "type": ["list", "string"], "value": ["a", "b"]},
        "password": {"sensitive": true, "type": "string", "value": "hunter2"},
    });
    let listed = outputs(stored)
        .unwrap()
        .into_iter()
        .map(|output| output.withheld(state));
    insta::assert_json_snapshot!([
        document(&Document::of(resource)),
        document(&Document::list(listed.collect())),
    ]);
}

#[test]
fn requests_of_the_client_are_understood() {
    let run: RunRequest = serde_json::from_value(json!({"data": {"type": "runs", "attributes": {
        "auto-apply": false, "refresh": true, "save-plan": false}, "relationships": {
        "configuration-version": {"data": {"type": "configuration-versions", "id": "cv-1"}},
        "workspace": {"data": {"type": "workspaces", "id": "ws-1"}}}}}))
    .unwrap();
    let named = run.data.relationships.configuration_version;
    assert_eq!(Named::id(named.as_ref()), Some("cv-1"));
    let change: WorkspaceChangeRequest = serde_json::from_value(json!({"data": {
        "type": "workspaces", "attributes": {"terraform-version": "1.12.6"}}}))
    .unwrap();
    assert_eq!(change.data.attributes["terraform-version"], "1.12.6");
    assert!(change.data.relationships.is_empty());
    let create: WorkspaceRequest = serde_json::from_value(json!({"data": {
        "type": "workspaces", "attributes": {"name": "net"}, "relationships": {
        "tags": {"data": [{"type": "tags", "attributes": {"name": "app"}}]}}}}))
    .unwrap();
    assert!(create.data.attributes.others.is_empty());
    assert_eq!(create.data.relationships.tags.unwrap().data.len(), 1);
}
