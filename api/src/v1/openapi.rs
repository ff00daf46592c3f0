//! The document that describes this edge: generated from the handlers, completed here with what all
//! of them share.

use std::sync::LazyLock;

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ContentBuilder, Info, OpenApi, Ref, RefOr, Required, Response, ResponseBuilder,
};
use utoipa::{PartialSchema as _, ToSchema as _};

use super::answer::{ErrorBody, ErrorDetail};
use super::repeats::{ANSWER_KEPT_SECONDS, NAME_CHARS_MAX};

const SCHEME: &str = "token";

static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
    document()
        .to_pretty_json()
        .expect("the document is made of texts and numbers only")
});

/// The OpenAPI document of this edge, as JSON.
pub fn openapi_json() -> String {
    DOCUMENT.clone()
}

/// Serves the document; it holds no secret, so it needs no credential.
pub(super) async fn serve() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], DOCUMENT.as_str())
}

fn document() -> OpenApi {
    let mut document = super::documented().into_openapi();
    document.info = Info::new("StackShip", env!("CARGO_PKG_VERSION"));
    document.security = Some(vec![SecurityRequirement::new(SCHEME, Vec::<String>::new())]);
    let components = document.components.get_or_insert_default();
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    components
        .security_schemes
        .insert(SCHEME.to_owned(), bearer.into());
    for (name, schema) in [
        (ErrorBody::name(), ErrorBody::schema()),
        (ErrorDetail::name(), ErrorDetail::schema()),
    ] {
        components.schemas.insert(name.into_owned(), schema);
    }
    let never_kept = super::never_kept().into_openapi().paths.paths;
    for (template, path) in &mut document.paths.paths {
        if let Some(post) = &mut path.post
            && !never_kept.contains_key(template)
        {
            post.parameters
                .get_or_insert_default()
                .push(request_name().into());
        }
        let operations = [
            &mut path.get,
            &mut path.put,
            &mut path.post,
            &mut path.patch,
            &mut path.delete,
        ];
        for operation in operations.into_iter().flatten() {
            let responses = &mut operation.responses.responses;
            responses.insert("default".to_owned(), error_response());
        }
    }
    document
}

/// The header that every `POST` honours whose answer may be kept.
fn request_name() -> Parameter {
    let text = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(NAME_CHARS_MAX))
        .build();
    ParameterBuilder::new()
        .name("Idempotency-Key")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(format!(
            "Names the request: sent again with the same name and body by the same caller, it is not carried out again \
             and gets the same answer for {ANSWER_KEPT_SECONDS} seconds. With another body it is refused."
        )))
        .schema(Some(text))
        .build()
}

fn error_response() -> RefOr<Response> {
    let body = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name(ErrorBody::name())))
        .build();
    let response = ResponseBuilder::new()
        .description("What is wrong and what to do")
        .content("application/json", body)
        .build();
    RefOr::T(response)
}
