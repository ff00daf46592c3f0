//! A client without a network: requests go straight into the router.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tower::ServiceExt as _;

/// One request.
pub struct Call<'a> {
    pub method: &'a str,
    pub path: String,
    pub token: Option<&'a str>,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

/// Its answer.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub request_id: String,
    pub headers: HeaderMap,
    pub bytes: Bytes,
    pub json: Value,
}

impl<'a> Call<'a> {
    pub fn new(method: &'a str, path: impl Into<String>, token: &'a str) -> Self {
        Self {
            method,
            path: path.into(),
            token: Some(token),
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    pub fn json(mut self, body: &Value) -> Self {
        self.body = body.to_string().into_bytes();
        self
    }

    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub async fn send(self, router: &Router) -> Answer {
        let mut request = Request::builder()
            .method(self.method)
            .uri(&self.path)
            .header("host", "ship.test");
        if let Some(token) = self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        let request = request.body(Body::from(self.body)).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let headers = response.headers().clone();
        let request_id = headers["x-request-id"].to_str().unwrap().to_owned();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let json = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Answer {
            status,
            request_id,
            headers,
            bytes,
            json,
        }
    }
}

impl Answer {
    /// What was found; anything but this status is a failure of the test.
    pub fn data(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.json);
        self.json["data"].clone()
    }

    pub fn code(&self) -> &str {
        self.json["error"]["code"].as_str().unwrap_or_default()
    }
}
