//! The newest version of each set applies where the set is attached, and nowhere more than a run may
//! have.

use sqlx::PgPool;
use stackship_domain::Sha256Digest;
use stackship_domain::policy_bounds::{BUNDLES_ATTACHED_MAX, POLICIES_ATTACHED_MAX};
use stackship_store::records::grants::Scope;
use stackship_store::records::policy_sets::{self, Attaching, NewVersion, attached_to};
use stackship_store::records::{projects, workspaces};
use stackship_store::{StoreError, Violation, clock};

use super::REASON;
use crate::support::{NOT_NOW, World, name, new_workspace, origin, refusal, violation};

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn the_newest_version_applies_wherever_its_set_is_attached(pool: PgPool) {
    let world = World::new(pool).await;
    let context = world.context();
    let elsewhere = projects::create(&world.store, &context, &name("other"))
        .await
        .unwrap();
    let neighbour = new_workspace(world.project, "neighbour");
    let neighbour = workspaces::create(&world.store, &context, &neighbour)
        .await
        .unwrap();
    let mut sets = Vec::new();
    for text in [
        "everywhere",
        "project",
        "here",
        "elsewhere",
        "neighbour",
        "nowhere",
    ] {
        let set = world.policy_set(text).await;
        world.version(set, text).await;
        sets.push(set);
    }
    let project = Scope::Project {
        project: world.project,
    };
    let neighbour = Scope::Workspace {
        workspace: neighbour,
    };
    let elsewhere = Scope::Project { project: elsewhere };
    for (set, scope) in [
        (0, Scope::Organization),
        (0, world.here()),
        (1, project),
        (2, world.here()),
        (3, elsewhere),
        (4, neighbour),
    ] {
        let attached = world.attach(sets[set], scope).await.unwrap();
        assert!(matches!(attached, Attaching::New(_)), "{attached:?}");
    }
    let here = |versions: [u32; 3]| {
        let names = ["everywhere", "here", "project"].map(str::to_owned);
        names.into_iter().zip(versions).collect::<Vec<_>>()
    };
    assert_eq!(world.applying().await, here([1, 1, 1]));
    world.version(sets[2], "here again").await;
    assert_eq!(world.applying().await, here([1, 2, 1]));
    // Attached above and here: taking one away leaves the other.
    let detach = async |scope| {
        let detached = policy_sets::detach(&world.store, &context, sets[0], scope, REASON);
        detached.await.unwrap().is_some()
    };
    assert!(detach(Scope::Organization).await);
    assert!(!detach(Scope::Organization).await);
    assert_eq!(world.applying().await, here([1, 2, 1]));
    assert!(detach(world.here()).await);
    assert_eq!(world.applying().await, here([1, 2, 1])[1..]);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn what_applies_is_sorted_by_digest_and_each_digest_comes_once(pool: PgPool) {
    let world = World::new(pool).await;
    for text in ["a", "b", "c", "d", "e"] {
        for copy in ["one", "two"] {
            let set = world.policy_set(&format!("{text}-{copy}")).await;
            world.version(set, text).await;
            world.attach(set, world.here()).await.unwrap();
        }
    }
    let (pool, organization) = (&world.store.pool, world.organization);
    let attached = attached_to(pool, organization, world.project, world.workspace)
        .await
        .unwrap();
    let found: Vec<_> = attached.iter().map(|one| one.bundle).collect();
    let mut wanted = ["a", "b", "c", "d", "e"].map(|text| Sha256Digest::of(text.as_bytes()));
    wanted.sort_unstable();
    assert_eq!(found, wanted);
    assert!(attached.iter().all(|one| one.name.ends_with("-one")));
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_set_that_would_guard_nothing_is_not_attached(pool: PgPool) {
    let world = World::new(pool).await;
    let empty = world.policy_set("empty").await;
    let refused = world.attach(empty, world.here()).await;
    assert_eq!(violation(refused), Violation::NotNow);
    // Not even the owner of the tables can make one that is passed over.
    let insert = format!(
        "insert into record.policy_attachments (organization_id, policy_set_id, attached_by) \
         values ('{}', '{empty}', 'system')",
        world.organization
    );
    assert_eq!(refusal(&world.owner, &insert).await, NOT_NOW);
    let forced = format!(
        "alter table record.policy_attachments disable trigger policy_attachments_guarded; {insert}"
    );
    sqlx::raw_sql(&forced).execute(&world.owner).await.unwrap();
    let (pool, organization) = (&world.store.pool, world.organization);
    let found = attached_to(pool, organization, world.project, world.workspace).await;
    assert!(
        matches!(found, Err(StoreError::Inconsistent { .. })),
        "{found:?}"
    );
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn no_change_makes_more_apply_than_a_run_may_have(pool: PgPool) {
    let world = World::new(pool).await;
    let project = Scope::Project {
        project: world.project,
    };
    let full = |what| Violation::Full {
        what,
        max: BUNDLES_ATTACHED_MAX,
    };
    let sets = "policy sets that apply to one workspace";
    for number in 0..BUNDLES_ATTACHED_MAX {
        let set = world.policy_set(&format!("set-{number}")).await;
        world.version(set, &number.to_string()).await;
        world.attach(set, project).await.unwrap();
        // Twice in one place is once too many, but one set.
        world.attach(set, world.here()).await.unwrap();
    }
    let more = world.policy_set("more").await;
    world.version(more, "more").await;
    for scope in [Scope::Organization, project, world.here()] {
        assert_eq!(
            violation(world.attach(more, scope).await),
            full(sets),
            "{scope:?}"
        );
    }
    // Elsewhere there is room for it.
    let other = projects::create(&world.store, &world.context(), &name("other"))
        .await
        .unwrap();
    world
        .attach(more, Scope::Project { project: other })
        .await
        .unwrap();
    assert_eq!(world.applying().await.len(), BUNDLES_ATTACHED_MAX);
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn no_upload_makes_more_policies_apply_than_a_run_may_have(pool: PgPool) {
    let world = World::new(pool).await;
    let (first, second) = (
        world.policy_set("first").await,
        world.policy_set("second").await,
    );
    world
        .publish(first, "one", POLICIES_ATTACHED_MAX - 1)
        .await
        .unwrap();
    world.publish(second, "one", 1).await.unwrap();
    world.attach(first, Scope::Organization).await.unwrap();
    world.attach(second, world.here()).await.unwrap();
    let refused = world.publish(second, "two", 2).await;
    let full = Violation::Full {
        what: "policies that apply to one workspace",
        max: POLICIES_ATTACHED_MAX,
    };
    assert_eq!(violation(refused), full);
    let newest = policy_sets::by_id(&world.store.pool, world.organization, second).await;
    assert_eq!(newest.unwrap().unwrap().newest, Some(1));
    let objects: i64 = sqlx::query_scalar("select count(*) from record.objects")
        .fetch_one(&world.owner)
        .await
        .unwrap();
    assert_eq!(objects, 2, "what was refused is kept");
    world
        .publish(first, "two", POLICIES_ATTACHED_MAX - 2)
        .await
        .unwrap();
    world.publish(second, "two", 2).await.unwrap();
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn another_organizations_sets_and_places_are_nowhere(pool: PgPool) {
    let world = World::new(pool).await;
    let (other, other_project, other_workspace) = world.other_tenant().await;
    let theirs = origin(world.user).within(other);
    let set = world.policy_set("baseline").await;
    let version = world.version(set, "one").await;
    let pool = &world.store.pool;
    assert_eq!(policy_sets::by_id(pool, other, set).await.unwrap(), None);
    assert_eq!(
        policy_sets::version(pool, other, set, 1).await.unwrap(),
        None
    );
    assert_eq!(
        policy_sets::by_bundle(pool, other, version.bundle)
            .await
            .unwrap(),
        None
    );
    let content = policy_sets::content(&world.store, other, version.object).await;
    assert!(matches!(content, Err(StoreError::Object(_))), "{content:?}");
    let new = NewVersion {
        bundle: Sha256Digest::of(b"two"),
        label: "1.0",
        policies: 1,
        content: b"two",
    };
    policy_sets::publish(&world.store, &theirs, set, new)
        .await
        .unwrap_err();
    for (context, scope) in [
        (&theirs, Scope::Organization),
        (
            &world.context(),
            Scope::Project {
                project: other_project,
            },
        ),
        (
            &world.context(),
            Scope::Workspace {
                workspace: other_workspace,
            },
        ),
        (
            &world.context(),
            Scope::Workspace {
                workspace: clock::fresh(),
            },
        ),
    ] {
        let refused = policy_sets::attach(&world.store, context, set, scope, REASON).await;
        assert_eq!(violation(refused), Violation::NotNow, "{scope:?}");
    }
    world.attach(set, Scope::Organization).await.unwrap();
    let theirs = attached_to(pool, other, other_project, other_workspace).await;
    assert_eq!(theirs.unwrap(), []);
    assert_eq!(world.applying().await.len(), 1);
}
