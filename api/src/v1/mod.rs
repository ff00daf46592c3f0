//! StackShip's own API.

use axum::Router;
use utoipa_axum::router::OpenApiRouter;

use crate::App;

/// The routes.
pub(crate) fn router() -> Router<App> {
    documented().split_for_parts().0
}

fn documented() -> OpenApiRouter<App> {
    OpenApiRouter::new()
}

/// The OpenAPI document of this edge, as JSON.
pub fn openapi_json() -> String {
    documented()
        .into_openapi()
        .to_pretty_json()
        .expect("the document is made of texts and numbers only")
}
