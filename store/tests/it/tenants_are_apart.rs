//! Nothing of one organization is found, changed or used by another.

use sqlx::PgPool;
use stackship_domain::run::{RunKind, SourceKind};
use stackship_domain::variable::VariableCategory;
use stackship_store::records::configuration_versions::{self, NewConfigurationVersion};
use stackship_store::records::variables::{NewVariable, VariableChange};
use stackship_store::records::workspaces::WorkspaceChange;
use stackship_store::records::{
    Page, locks, organizations, projects, runs_record, snapshots, users, variables, workspaces,
};
use stackship_store::{StoreError, Violation, clock};

use crate::support::{World, empty_snapshot, name, new_workspace, origin, person, violation};

fn variable() -> NewVariable {
    NewVariable {
        key: "size".to_owned(),
        value: "3".to_owned(),
        category: VariableCategory::Terraform,
        hcl: false,
        sensitive: false,
        description: String::new(),
    }
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn another_organization_finds_nothing_of_ours(pool: PgPool) {
    let world = World::new(pool).await;
    let (run, _) = world.run_with_lock().await;
    let pinned = runs_record::by_id(&world.store.pool, world.organization, run)
        .await
        .unwrap()
        .unwrap();
    variables::set(&world.store, &world.context(), world.workspace, &variable())
        .await
        .unwrap();
    let (other, ..) = world.other_tenant().await;
    let pool = &world.store.pool;

    assert_eq!(
        projects::by_id(pool, other, world.project).await.unwrap(),
        None
    );
    assert_eq!(
        workspaces::by_id(pool, other, world.workspace)
            .await
            .unwrap(),
        None
    );
    assert_eq!(
        variables::list(pool, other, world.workspace).await.unwrap(),
        vec![]
    );
    assert_eq!(
        variables::for_snapshot(&world.store, other, world.workspace)
            .await
            .unwrap(),
        vec![]
    );
    assert_eq!(
        configuration_versions::by_id(pool, other, pinned.configuration_version)
            .await
            .unwrap(),
        None
    );
    assert_eq!(
        snapshots::by_id(pool, other, pinned.input_snapshot)
            .await
            .unwrap(),
        None
    );
    assert_eq!(
        snapshots::load(&world.store, other, pinned.input_snapshot)
            .await
            .unwrap(),
        None
    );
    assert_eq!(runs_record::by_id(pool, other, run).await.unwrap(), None);
    let found = runs_record::run_of_configuration(pool, other, pinned.configuration_version)
        .await
        .unwrap();
    assert_eq!(found, None);
    assert_eq!(
        locks::lock_row(pool, other, world.workspace).await.unwrap(),
        None
    );

    let of_run =
        runs_record::run_of_configuration(pool, world.organization, pinned.configuration_version)
            .await;
    assert_eq!(of_run.unwrap(), Some(run));
    assert!(
        locks::lock_row(pool, world.organization, world.workspace)
            .await
            .unwrap()
            .unwrap()
            .holder
            .is_some()
    );
    let snapshot = snapshots::load(&world.store, world.organization, pinned.input_snapshot)
        .await
        .unwrap();
    assert_eq!(snapshot, Some(empty_snapshot()));
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn another_organization_changes_nothing_of_ours(pool: PgPool) {
    let world = World::new(pool).await;
    let ours = variables::set(&world.store, &world.context(), world.workspace, &variable())
        .await
        .unwrap();
    let (other, ..) = world.other_tenant().await;
    let theirs = origin(world.user).within(other);
    let before = world.event_count().await;

    let change = WorkspaceChange {
        region: Some("elsewhere".to_owned()),
        ..WorkspaceChange::default()
    };
    assert_eq!(
        workspaces::update(&world.store, &theirs, world.workspace, &change)
            .await
            .unwrap(),
        None
    );
    let outcome = variables::set(&world.store, &theirs, world.workspace, &variable()).await;
    assert_eq!(violation(outcome), Violation::NotNow);
    let change = VariableChange {
        value: Some("4".to_owned()),
        ..VariableChange::default()
    };
    let changed = variables::update(&world.store, &theirs, world.workspace, ours.id, &change)
        .await
        .unwrap();
    assert_eq!(changed, None);
    assert!(
        !variables::delete(&world.store, &theirs, world.workspace, ours.id)
            .await
            .unwrap()
    );
    let foreign_project = workspaces::create(
        &world.store,
        &theirs,
        &new_workspace(world.project, "theirs"),
    )
    .await;
    assert!(
        matches!(foreign_project, Err(StoreError::Database(_))),
        "{foreign_project:?}"
    );
    let new = NewConfigurationVersion {
        workspace: world.workspace,
        speculative: false,
        source: SourceKind::Api,
    };
    let foreign_workspace = configuration_versions::create(&world.store, &theirs, new).await;
    assert!(
        matches!(foreign_workspace, Err(StoreError::Database(_))),
        "{foreign_workspace:?}"
    );

    assert_eq!(
        world.event_count().await,
        before,
        "a refused change told a fact"
    );
    assert_eq!(
        variables::list(&world.store.pool, world.organization, world.workspace)
            .await
            .unwrap(),
        vec![ours]
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn names_are_unique_where_they_must_be(pool: PgPool) {
    let world = World::new(pool).await;
    let taken = Violation::Taken { field: "name" };
    let again =
        organizations::create(&world.store, &origin(world.user), &name("acme"), world.user).await;
    assert_eq!(violation(again), taken);
    let again = projects::create(&world.store, &world.context(), &name("platform")).await;
    assert_eq!(violation(again), taken);
    let again = workspaces::create(
        &world.store,
        &world.context(),
        &new_workspace(world.project, "network"),
    )
    .await;
    assert_eq!(violation(again), taken);
    let again = users::create(&world.store, None, &person("ada")).await;
    assert_eq!(violation(again), Violation::Taken { field: "login" });
    // The other tenant has a project and a workspace of the same names.
    world.other_tenant().await;
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn lists_come_in_pages_without_doubles(pool: PgPool) {
    let world = World::new(pool).await;
    world.other_tenant().await;
    for number in 0..7 {
        let new = new_workspace(world.project, &format!("ws-{number}"));
        workspaces::create(&world.store, &world.context(), &new)
            .await
            .unwrap();
    }
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let page = Page::new(after, 3);
        let rows = workspaces::list(&world.store.pool, world.organization, None, &page)
            .await
            .unwrap();
        let Some(last) = rows.last() else { break };
        after = Some(last.id.to_string());
        seen.extend(rows.into_iter().map(|workspace| workspace.name.to_string()));
    }
    assert_eq!(
        seen,
        [
            "network", "ws-0", "ws-1", "ws-2", "ws-3", "ws-4", "ws-5", "ws-6"
        ]
    );
    let none = workspaces::list(
        &world.store.pool,
        world.organization,
        Some(clock::fresh()),
        &Page::first(),
    )
    .await;
    assert_eq!(none.unwrap(), vec![]);
    let projects = projects::list(&world.store.pool, world.organization, &Page::first())
        .await
        .unwrap();
    assert_eq!(projects.len(), 1);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn what_is_looked_up_is_what_was_created(pool: PgPool) {
    let world = World::new(pool).await;
    let pool = &world.store.pool;
    let organization = organizations::by_name(pool, &name("acme"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        organizations::by_id(pool, world.organization)
            .await
            .unwrap(),
        Some(organization)
    );
    let project = projects::by_name(pool, world.organization, &name("platform"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(project.id, world.project);
    let workspace = workspaces::by_name(pool, world.organization, &name("network"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (workspace.id, workspace.approval_seconds),
        (world.workspace, 3600)
    );
    let place = workspaces::locate(pool, world.workspace).await.unwrap();
    assert_eq!(place, Some((world.organization, world.project)));
    let user = users::by_login(pool, "ada").await.unwrap().unwrap();
    assert_eq!(
        users::by_id(pool, user.id).await.unwrap(),
        Some(user.clone())
    );
    let names = users::display_names(pool, &[user.id, clock::fresh()])
        .await
        .unwrap();
    assert_eq!(
        names.into_iter().collect::<Vec<_>>(),
        [(user.id, "ADA".to_owned())]
    );
    world.run(RunKind::Speculative).await;
}
