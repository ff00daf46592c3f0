//! Requests over a real connection, as the client makes them.

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::{HeaderMap, Request, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Title and detail of a refusal.
    pub fn refusal(&self) -> String {
        let errors = self.json();
        let error = &errors["errors"][0];
        format!(
            "{}: {}",
            error["title"].as_str().unwrap(),
            error["detail"].as_str().unwrap()
        )
    }
}

/// Sends a request; `url` is absolute, as answers give them, and `token` stays out when it is empty.
pub async fn send(method: &str, url: &str, token: &str, body: impl Into<Bytes>) -> Answer {
    let mut request = Request::builder()
        .method(method)
        .uri(url)
        .header("content-type", "application/vnd.api+json")
        .header("x-terraform-integration", "cloud");
    if !token.is_empty() {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let request = request.body(Full::new(body.into())).unwrap();
    let client = Client::builder(TokioExecutor::new()).build_http();
    let response = client.request(request).await.unwrap();
    Answer {
        status: response.status(),
        headers: response.headers().clone(),
        body: response
            .into_body()
            .collect()
            .await
            .unwrap()
            .to_bytes()
            .to_vec(),
    }
}

pub async fn get(url: &str, token: &str) -> Answer {
    send("GET", url, token, Bytes::new()).await
}

/// The whole body, unless the answer breaks off.
pub async fn get_to_end(
    url: &str,
    token: &str,
) -> Result<Bytes, Box<dyn std::error::Error + Send + Sync>> {
    let request = Request::builder()
        .uri(url)
        .header("authorization", format!("Bearer {token}"))
        .body(Full::new(Bytes::new()))
        .unwrap();
    let client = Client::builder(TokioExecutor::new()).build_http();
    let response = client.request(request).await?;
    assert_eq!(response.status(), StatusCode::OK);
    Ok(response.into_body().collect().await?.to_bytes())
}
