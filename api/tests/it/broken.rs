//! Requests that cannot be read, on every route: the answer has the shape of its edge, says what to do
//! and never speaks of our types. Without a credential nothing of a request is looked at.

use serde_json::{Value, json};
use sqlx::PgPool;
use stackship_api::v1::IDEMPOTENCY_KEY;

use crate::http::{Answer, Call};
use crate::permissions::Fill;
use crate::permissions::routes::{self, Who};
use crate::world::World;

/// Words of the libraries behind the edges, and of our own types.
const INTERNAL_WORDS: &[&str] = &[
    "struct ",
    "enum ",
    "variant identifier",
    "deserialize",
    "buffer the request",
    "u16",
    "u64",
    "View",
    "Body`",
    "Query`",
];

/// What is wrong with a request.
#[derive(Clone, Copy, Debug)]
enum Break {
    Query,
    QueryText,
    PathBytes,
    PathText,
    NoJson,
    NoObject,
    WrongTypes,
    TooMuch,
}

const BREAKS: [Break; 8] = [
    Break::Query,
    Break::QueryText,
    Break::PathBytes,
    Break::PathText,
    Break::NoJson,
    Break::NoObject,
    Break::WrongTypes,
    Break::TooMuch,
];

impl Break {
    fn call<'a>(self, method: &'a str, template: &str, filled: &str, token: &'a str) -> Call<'a> {
        let (mut path, mut body) = (filled.to_owned(), b"{}".to_vec());
        match self {
            Self::Query => {
                path = with_query(
                    filled,
                    "offset=x&limit=x&sequence=x&cursor=x&user=x&project=x&status=x",
                );
            }
            Self::QueryText => path = with_query(filled, "%ff=%ff&=&include=%ff&offset=-1"),
            Self::PathBytes => path = last_parameter(template, filled, "%ff"),
            Self::PathText => path = last_parameter(template, filled, "no-such-thing"),
            Self::NoJson => body = b"{\"a\":\xff".to_vec(),
            Self::NoObject => body = b"[1]".to_vec(),
            Self::WrongTypes => body = wrong_types().to_string().into_bytes(),
            Self::TooMuch => body = vec![b' '; stackship_api::JSON_BYTES_MAX + 1],
        }
        let mut call = Call::new(method, path, token);
        call.body = body;
        call
    }
}

/// Every field that any body has, with a type that none of them has.
fn wrong_types() -> Value {
    json!({"scope": 5, "options": 5, "variables": 5, "data": {"attributes": 5}, "end": 5, "phase": 5, "name": [5]})
}

fn with_query(filled: &str, query: &str) -> String {
    let separator = if filled.contains('?') { '&' } else { '?' };
    format!("{filled}{separator}{query}")
}

/// The path with something else in place of its last parameter.
fn last_parameter(template: &str, filled: &str, with: &str) -> String {
    let template = template.split('?').next().unwrap_or_default();
    let at = template.split('/').rposition_of_parameter();
    let mut parts: Vec<&str> = filled.split('/').collect();
    if let Some(at) = at {
        parts[at] = with;
    }
    parts.join("/")
}

trait Parameters {
    fn rposition_of_parameter(self) -> Option<usize>;
}

impl<'a, I: Iterator<Item = &'a str>> Parameters for I {
    fn rposition_of_parameter(self) -> Option<usize> {
        self.enumerate()
            .filter(|(_, part)| part.starts_with('{'))
            .last()
            .map(|(at, _)| at)
    }
}

fn is_of_the_client(path: &str) -> bool {
    let beginnings = ["/api/", "/app/", "/.well-known/"];
    beginnings
        .iter()
        .any(|beginning| path.starts_with(beginning))
}

/// What is wrong with the shape of an answer; success has none to look at.
fn misshapen(path: &str, answer: &Answer) -> Option<String> {
    if answer.status.is_success() || answer.status.is_redirection() {
        return None;
    }
    let text = String::from_utf8_lossy(&answer.bytes).into_owned();
    let kind = answer
        .headers
        .get("content-type")
        .and_then(|kind| kind.to_str().ok());
    let said = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    let (media_type, is_said) = if is_of_the_client(path) {
        let error = &answer.json["errors"][0];
        let whole = said(&error["code"]) && said(&error["title"]) && said(&error["detail"]);
        (
            "application/vnd.api+json",
            whole && error["status"] == answer.status.as_str(),
        )
    } else if path.starts_with("/runner/") {
        ("application/json", said(&answer.json["message"]))
    } else {
        let error = &answer.json["error"];
        let whole = said(&error["code"]) && said(&error["message"]) && error["details"].is_object();
        ("application/json", whole)
    };
    if !is_said || kind != Some(media_type) {
        return Some(format!("{} {kind:?} {text}", answer.status));
    }
    let word = INTERNAL_WORDS.iter().find(|word| text.contains(**word));
    word.map(|word| format!("says `{word}`: {text}"))
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn every_route_refuses_what_cannot_be_read_in_the_shape_of_its_edge(pool: PgPool) {
    let world = World::new(pool).await;
    let fill = Fill::new(&world).await;
    let mut wrong = Vec::new();
    for (method, template, who) in routes::TABLE {
        for broken in BREAKS {
            let filled = fill.path(template).await;
            let token = fill.strongest(*who);
            let call = broken.call(method, template, &filled, token);
            let answer = call.send(&world.router).await;
            if answer.status.is_server_error() {
                wrong.push(format!("{method} {template} {broken:?}: {}", answer.status));
            }
            wrong.extend(
                misshapen(template, &answer)
                    .map(|what| format!("{method} {template} {broken:?}: {what}")),
            );
        }
        let call = Call::new("TRACE", fill.path(template).await, fill.strongest(*who));
        let answer = call.send(&world.router).await;
        assert_eq!(answer.status, 405, "{template}");
        wrong.extend(misshapen(template, &answer).map(|what| format!("TRACE {template}: {what}")));
    }
    for path in [
        "/nowhere",
        "/v1/nowhere",
        "/api/v2/nowhere",
        "/app/nowhere",
        "/runner/v1/nowhere",
    ] {
        let answer = Call::new("GET", path, "").send(&world.router).await;
        assert_eq!(answer.status, 404, "{path}");
        wrong.extend(misshapen(path, &answer).map(|what| format!("GET {path}: {what}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn without_a_credential_nothing_of_a_request_is_looked_at(pool: PgPool) {
    let world = World::new(pool).await;
    let fill = Fill::new(&world).await;
    let mut wrong = Vec::new();
    for (method, template, who) in routes::TABLE {
        let expected = match who {
            Who::Anybody => continue,
            Who::Signature => 404,
            _ => 401,
        };
        for broken in BREAKS {
            let filled = fill.path(template).await;
            for token in [None, Some("ss_0000000000000000000000000000000000000000000")] {
                let call = broken.call(method, template, &filled, "");
                let mut call = call.header(IDEMPOTENCY_KEY, "");
                call.token = token;
                let answer = call.send(&world.router).await;
                if answer.status.as_u16() != expected {
                    wrong.push(format!("{method} {template} {broken:?}: {}", answer.status));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[sqlx::test(migrator = "stackship_store::MIGRATOR")]
async fn a_nested_field_of_the_wrong_type_is_named_with_what_it_takes(pool: PgPool) {
    let world = World::new(pool).await;
    let body = json!({"user": world.acme.reader.user, "role": "owner", "scope": 5});
    let answer = world.send("POST", &world.acme.path("grants"), &body).await;
    let error = &answer.json["error"];
    assert_eq!(
        (answer.status.as_u16(), &error["details"]["field"]),
        (400, &json!("scope"))
    );
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("an object with a `kind`: `organization`"),
        "{message}"
    );
    let runs = format!("/v1/workspaces/{}/runs", world.acme.workspace);
    let body = json!({"configuration_version": world.configuration(false).await, "message": "m", "options": 5});
    let error = world.send("POST", &runs, &body).await.json["error"].clone();
    assert_eq!(error["details"]["field"], "options");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("expected an object"),
        "{error}"
    );
}
