//! A plan as JSON is given out only when everything that is known of it agrees. Whatever is wrong, each
//! thing alone, the answer is that of a plan which never was.

use std::path::PathBuf;

use futures::{Stream, StreamExt as _, stream};
use sqlx::PgPool;
use stackship_domain::Role;
use stackship_domain::ids::{RunId, WorkspaceId};
use stackship_domain::run::Status;
use stackship_runner_protocol::{PLAN_JSON_BYTES_MAX, PhaseResult, PlanEnd, StoredArtifact};
use stackship_store::objects::{NewObject, ObjectKind};
use stackship_store::records::grants::{self, Grant, Scope};
use stackship_store::records::{users, workspaces};
use tokio_util::io::StreamReader;

use crate::http::{Answer, Call};
use crate::socket::Wire;
use crate::v2::edge::create_run;
use crate::v2::world::Served;
use crate::world::{new_user, new_workspace, origin, token};

/// The bytes before the first frame of a stored object.
pub const HEADER: usize = 17;
/// Plain bytes of a frame.
pub const FRAME: usize = 64 * 1024;

/// A run whose plan as JSON is this document.
pub struct Output {
    pub served: Served,
    pub run: RunId,
    pub stored: StoredArtifact,
    pub file: PathBuf,
}

impl Output {
    pub async fn new(pool: PgPool, document: &[u8]) -> Self {
        let served = Served::new(pool).await;
        let run = create_run(&served, false).await.parse().unwrap();
        let leased = served.lease().await;
        let new = NewObject {
            organization: served.acme.organization,
            workspace: Some(served.acme.workspace),
            kind: ObjectKind::PlanJson,
            bytes_max: PLAN_JSON_BYTES_MAX,
        };
        let document = StreamReader::new(in_turns(document));
        let stored = served.store.objects.put(new, document).await.unwrap();
        let stored = StoredArtifact {
            object: stored.id,
            sha256: stored.sha256,
            bytes: stored.bytes,
        };
        let mut report = served.planned(b"plan", 1).await;
        let PhaseResult::Plan {
            end: PlanEnd::Planned { plan_json, .. },
        } = &mut report
        else {
            panic!("{report:?}");
        };
        *plan_json = stored.clone();
        served.report(&leased.attempt, &report).await;
        served.until(run, Status::AwaitingApproval).await;
        let file = served.object_file(stored.object).await;
        Self {
            served,
            run,
            stored,
            file,
        }
    }

    pub fn path(&self) -> String {
        let plan = self.run.to_string().replace("run-", "plan-");
        format!("/api/v2/plans/{plan}/json-output")
    }

    async fn get(&self, token: &str) -> Answer {
        let call = Call::new("GET", self.path(), token);
        call.send(&self.served.router).await
    }

    async fn read(&self) -> Answer {
        self.get(&self.served.acme.reader.token).await
    }

    /// What everybody gets who asks for a plan that never was.
    async fn of_no_plan(&self) -> Answer {
        let path = "/api/v2/plans/plan-00000000000000000000000000/json-output";
        let missing = Call::new("GET", path, &self.served.acme.reader.token);
        let missing = missing.send(&self.served.router).await;
        assert_eq!(missing.status, 404);
        missing
    }

    async fn execute(&self, statements: &str) {
        let done = sqlx::raw_sql(statements).execute(&self.served.owner).await;
        done.unwrap_or_else(|error| panic!("{statements}: {error}"));
    }

    /// Everything that is known of the document, to be put back.
    async fn keep(&self) {
        self.execute(
            "create table kept_objects as table record.objects; \
             create table kept_reviews as table view.run_review",
        )
        .await;
        std::fs::copy(&self.file, self.file.with_extension("kept")).unwrap();
    }

    async fn undo(&self) {
        self.execute(
            "update record.objects o \
             set (organization_id, workspace_id, kind, storage_key, bytes, sha256, wrapped_key, key_id) = \
                 (k.organization_id, k.workspace_id, k.kind, k.storage_key, k.bytes, k.sha256, k.wrapped_key, \
                 k.key_id) \
             from kept_objects k where k.object_id = o.object_id; \
             update view.run_review r set doc = k.doc from kept_reviews k where k.run_id = r.run_id",
        )
        .await;
        std::fs::copy(self.file.with_extension("kept"), &self.file).unwrap();
    }

    /// Asserts that this alone leads to the answer of no plan, and puts it back.
    async fn assert_hidden(&self, what: &str, missing: &Answer) {
        assert_same(what, &self.read().await, missing);
        self.undo().await;
        assert_eq!(self.read().await.status, 200, "{what} was put back");
    }
}

/// The bytes piece by piece, and everybody else's turn between two: unoptimized, they take their time, and a
/// reader of the log that is kept waiting in the middle of a transaction keeps those of other tests waiting.
fn in_turns(document: &[u8]) -> impl Stream<Item = std::io::Result<&[u8]>> + Send {
    let pieces = stream::iter(document.chunks(FRAME));
    Box::pin(pieces.then(async |piece| {
        tokio::task::yield_now().await;
        Ok(piece)
    }))
}

fn assert_same(what: &str, answer: &Answer, missing: &Answer) {
    let told = |answer: &Answer| {
        let content_type = answer.headers["content-type"].clone();
        (answer.status, content_type, answer.bytes.clone())
    };
    assert_eq!(told(answer), told(missing), "{what}");
    let names = |answer: &Answer| answer.headers.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(answer), names(missing), "{what}");
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn each_thing_that_differs_hides_the_document(pool: PgPool) {
    let document = br#"{"format_version":"1.2"}"#;
    let output = Output::new(pool, document).await;
    let whole = output.read().await;
    assert_eq!(
        (whole.status.as_u16(), &whole.bytes[..]),
        (200, &document[..])
    );
    assert_eq!(whole.headers["content-type"], "application/json");
    assert_eq!(whole.headers["cache-control"], "private, no-store");
    let missing = output.of_no_plan().await;
    output.keep().await;
    let other = another_workspace(&output.served).await;

    let object = output.stored.object;
    let of_object =
        |change: &str| format!("update record.objects set {change} where object_id = '{object}'");
    let elsewhere = format!("workspace_id = '{other}'");
    let of_tenant = format!(
        "organization_id = '{}', workspace_id = null",
        output.served.umbrella.organization
    );
    for change in [
        "workspace_id = null",
        &elsewhere,
        &of_tenant,
        "kind = 'plan'",
        "kind = 'policy_input'",
        "bytes = bytes + 1",
        "bytes = bytes - 1",
        "sha256 = decode(repeat('00', 32), 'hex')",
        "wrapped_key = decode(repeat('00', 60), 'hex')",
        "key_id = 'none'",
        "storage_key = storage_key || 'x'",
    ] {
        output.execute(&of_object(change)).await;
        output.assert_hidden(change, &missing).await;
    }
    let unknown = stackship_domain::Sha256Digest::of(b"unknown");
    for (part, value) in [
        ("plan_json_bytes", "23".to_owned()),
        ("plan_json_bytes", "25".to_owned()),
        ("plan_json", format!("\"{unknown}\"")),
        (
            "plan_json_object",
            "\"obj-00000000000000000000000000\"".to_owned(),
        ),
    ] {
        let place = format!("{{plan,record,{part}}}");
        let change =
            format!("update view.run_review set doc = jsonb_set(doc, '{place}', '{value}', false)");
        output.execute(&change).await;
        output
            .assert_hidden(&format!("{part} = {value}"), &missing)
            .await;
    }
    output
        .execute("update view.run_review set doc = jsonb_set(doc, '{plan,record}', 'null')")
        .await;
    output.assert_hidden("no plan was recorded", &missing).await;
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn each_damage_to_the_stored_bytes_hides_the_document(pool: PgPool) {
    let output = Output::new(pool, b"{\"format_version\":\"1.2\"}").await;
    let missing = output.of_no_plan().await;
    output.keep().await;
    for (what, damage) in DAMAGES {
        let mut bytes = std::fs::read(&output.file).unwrap();
        damage(&mut bytes);
        std::fs::write(&output.file, bytes).unwrap();
        output.assert_hidden(what, &missing).await;
    }
    std::fs::remove_file(&output.file).unwrap();
    output.assert_hidden("gone", &missing).await;
}

/// What may happen to the bytes of a file.
type Damage = fn(&mut Vec<u8>);

const DAMAGES: [(&str, Damage); 6] = [
    ("cut by a byte", |bytes| bytes.truncate(bytes.len() - 1)),
    ("cut to its header", |bytes| bytes.truncate(17)),
    ("empty", Vec::clear),
    ("a byte too many", |bytes| bytes.push(0)),
    ("another header", |bytes| bytes[0] ^= 1),
    ("another first frame", |bytes| bytes[17] ^= 1),
];

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn who_may_not_read_runs_there_learns_nothing(pool: PgPool) {
    let output = Output::new(pool, b"{}").await;
    let (served, missing) = (&output.served, output.of_no_plan().await);
    let other = another_workspace(served).await;
    let elsewhere = member(served, other).await;
    create_run(served, true).await;
    let run_token = served.lease().await.run_token;
    for (who, token) in [
        (
            "the owner of another organization",
            &served.umbrella.owner.token,
        ),
        ("a reader of another workspace", &elsewhere),
        ("another run", &run_token),
    ] {
        assert_same(who, &output.get(token).await, &missing);
    }
    let here = member(served, served.acme.workspace).await;
    assert_eq!(
        output.get(&here).await.status,
        200,
        "a reader of this workspace"
    );
}

async fn another_workspace(served: &Served) -> WorkspaceId {
    let context = origin(served.acme.owner.user).within(served.acme.organization);
    let new = new_workspace(served.acme.project, "other");
    workspaces::create(&served.store, &context, &new)
        .await
        .unwrap()
}

/// The token of somebody who is a reader there and nothing else.
async fn member(served: &Served, workspace: WorkspaceId) -> String {
    let store = &served.store;
    let new = new_user(&stackship_store::clock::fresh_text());
    let user = users::create(store, None, &new).await.unwrap();
    let context = origin(served.acme.owner.user).within(served.acme.organization);
    let grant = Grant {
        scope: Scope::Workspace { workspace },
        user,
        role: Role::Reader,
    };
    grants::grant(store, &context, grant).await.unwrap();
    token(store, served.acme.organization, user).await
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_document_of_the_limit_is_given_out_and_a_byte_more_is_not(pool: PgPool) {
    // Far more than the first frame is as it was written, so that the answer gets under way.
    let output = Output::new(pool, &vec![b' '; 40 * FRAME]).await;
    let missing = output.of_no_plan().await;
    output.pretend(PLAN_JSON_BYTES_MAX).await;
    let (url, reader) = (&output.served.url, &output.served.acme.reader.token);
    let mut wire = Wire::send(url, "GET", &output.path(), reader, "").await;
    let head = wire.head().await;
    assert_eq!(
        (head.status, head.length as u64),
        (200, PLAN_JSON_BYTES_MAX)
    );
    drop(wire);
    output.pretend(PLAN_JSON_BYTES_MAX + 1).await;
    assert_same("a byte too many", &output.read().await, &missing);
}

impl Output {
    /// Everything that is looked at before the first byte agrees that the document has this size.
    async fn pretend(&self, bytes: u64) {
        let object = self.stored.object;
        self.execute(&format!(
            "update record.objects set bytes = {bytes} where object_id = '{object}'; \
             update view.run_review set doc = jsonb_set(doc, '{{plan,record,plan_json_bytes}}', '{bytes}', false)"
        ))
        .await;
        let sealed = HEADER as u64 + bytes + 16 * bytes.div_ceil(FRAME as u64);
        let file = std::fs::File::options().write(true).open(&self.file);
        file.unwrap().set_len(sealed).unwrap();
    }
}
