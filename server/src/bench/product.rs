//! The product: a server of its own with everything on, spoken to like anybody would.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::memory::Memory;
use super::{Bench, bare};
use crate::Failure;

/// How long the server may take to become ready.
const READY_LIMIT: Duration = Duration::from_mins(1);
/// How long one run may take.
const RUN_LIMIT: Duration = Duration::from_mins(2);
/// Longer than anything that is handed in takes, also in a build that is not optimized.
const LEASE_SECONDS: &str = "600";
/// How often a run's status is asked for; part of what is measured, so it is short.
const ASK_EVERY: Duration = Duration::from_millis(5);

/// The installation's name in `cloud` blocks.
pub const HOSTNAME: &str = "stackship.bench";
/// The organization that everything belongs to.
pub const ORGANIZATION: &str = "bench";

/// A running server with an organization and a token.
pub struct Product {
    server: Child,
    client: reqwest::Client,
    url: String,
    token: String,
    environment: Vec<(&'static str, String)>,
    _home: TempDir,
}

/// Where the time of one run went.
#[derive(Debug, Clone, Copy)]
pub struct Taken {
    /// From the first byte of the upload to the status `applied`.
    pub whole: Duration,
    /// From the creation to the plan's start.
    pub to_plan: Duration,
    /// The plan phase.
    pub plan: Duration,
    /// From the plan's end over the policy check and the question to the approval.
    pub to_approval: Duration,
    /// From the approval to the apply's start.
    pub to_apply: Duration,
    /// The apply phase.
    pub apply: Duration,
}

impl Product {
    /// Starts a server that runs OpenTofu, in a directory of its own.
    pub async fn start(bench: &Bench) -> Result<Self, Failure> {
        Self::serve(Some(bench.mirror()?)).await
    }

    /// Starts a server that runs nothing itself.
    pub async fn start_without_runner() -> Result<Self, Failure> {
        Self::serve(None).await
    }

    async fn serve(mirror: Option<&Path>) -> Result<Self, Failure> {
        let home = tempfile::tempdir()?;
        let port = std::net::TcpListener::bind(("127.0.0.1", 0))?
            .local_addr()?
            .port();
        let program = std::env::current_exe()?;
        let mut environment = vec![
            (
                "STACKSHIP_DATA_DIR",
                home.path().join("data").display().to_string(),
            ),
            ("STACKSHIP_LISTEN", format!("127.0.0.1:{port}")),
            ("STACKSHIP_HOSTNAME", HOSTNAME.to_owned()),
            ("STACKSHIP_LOG_FILTER", log_filter()),
            ("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned()),
        ];
        environment.push(match mirror {
            Some(mirror) => ("STACKSHIP_TOFU__MIRROR", mirror.display().to_string()),
            None => ("STACKSHIP_RUNNER__ENABLED", "false".to_owned()),
        });
        environment.push(("STACKSHIP_LEASE_SECONDS", LEASE_SECONDS.to_owned()));
        let server = Command::new(&program)
            .arg("serve")
            .env_clear()
            .envs(environment.clone())
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let url = format!("http://127.0.0.1:{port}");
        let client = reqwest::Client::new();
        let began = Instant::now();
        while !client
            .get(format!("{url}/readyz"))
            .send()
            .await
            .is_ok_and(|answer| answer.status().is_success())
        {
            if began.elapsed() > READY_LIMIT {
                return Err("the server was not ready in time".into());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let mut product = Self {
            server,
            client,
            url,
            token: String::new(),
            environment,
            _home: home,
        };
        let made = product.admin(&[
            "bootstrap",
            "--organization",
            ORGANIZATION,
            "--login",
            "bench",
            "--json",
        ]);
        let made: Value = serde_json::from_str(&made.await?)?;
        text(&made["token"])?.clone_into(&mut product.token);
        Ok(product)
    }

    /// Carries out a command at the machine and says what it printed.
    async fn admin(&self, arguments: &[&str]) -> Result<String, Failure> {
        let made = Command::new(std::env::current_exe()?)
            .arg("admin")
            .args(arguments)
            .env_clear()
            .envs(self.environment.iter().cloned())
            .output()
            .await?;
        Ok(String::from_utf8(made.stdout)?)
    }

    /// Registers a runner; says its token.
    pub async fn register_runner(&self, name: &str) -> Result<String, Failure> {
        let printed = self.admin(&["create-runner", "--name", name]).await?;
        let token = printed.lines().find_map(|line| line.strip_prefix("Token"));
        Ok(token.ok_or("no runner was registered")?.trim().to_owned())
    }

    /// A request of a runner.
    pub fn as_runner(&self, method: Method, path: &str, token: &str) -> reqwest::RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.url));
        request.bearer_auth(token)
    }

    /// The answer to a request of the owner, its body still to be read.
    pub async fn get(&self, path: &str) -> Result<reqwest::Response, Failure> {
        let request = self.client.get(format!("{}{path}", self.url));
        let answer = request.bearer_auth(&self.token).send().await?;
        Ok(answer.error_for_status()?)
    }

    /// The memory of the server's process.
    pub fn memory(&self) -> Result<Memory, Failure> {
        let id = self.server.id().ok_or("the server has ended")?;
        Ok(Memory::of(id))
    }

    /// Where it listens.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The owner's token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// A workspace that no run has touched.
    pub async fn workspace(&self, number: u16) -> Result<String, Failure> {
        let body = json!({"name": format!("bench-{number}"), "project": "default"});
        Ok(text(&self.new_workspace(body).await?["id"])?.to_owned())
    }

    /// A workspace of this region.
    pub async fn workspace_in(&self, region: &str) -> Result<Value, Failure> {
        let body = json!({"name": region, "project": "default", "region": region});
        self.new_workspace(body).await
    }

    async fn new_workspace(&self, body: Value) -> Result<Value, Failure> {
        let path = format!("/v1/organizations/{ORGANIZATION}/workspaces");
        let mut made = self.call(Method::POST, &path, Some(body)).await?;
        Ok(made["data"].take())
    }

    /// Uploads, creates a run, approves it at once, and waits until it is applied.
    pub async fn run(&self, workspace: &str) -> Result<Taken, Failure> {
        let slug = slug()?;
        let began = Instant::now();
        let run = self.create_run_of(workspace, slug).await?;
        let asking = self.until(&run, "awaiting_approval").await?;
        let binding = text(&asking["data"]["approval"]["binding_digest"])?;
        self.call(
            Method::POST,
            &format!("/v1/runs/{run}/approve"),
            Some(json!({"binding_digest": binding})),
        )
        .await?;
        let applied = self.until(&run, "applied").await?;
        taken(began.elapsed(), &applied["data"])
    }

    /// Uploads and creates a run; says which.
    pub async fn create_run(&self, workspace: &str) -> Result<String, Failure> {
        self.create_run_of(workspace, slug()?).await
    }

    async fn create_run_of(&self, workspace: &str, slug: Vec<u8>) -> Result<String, Failure> {
        let path = format!("/v1/workspaces/{workspace}/configuration-versions");
        let configuration = self.call(Method::POST, &path, Some(json!({}))).await?;
        let configuration = text(&configuration["data"]["id"])?;
        let content = format!(
            "{}/v1/configuration-versions/{configuration}/content",
            self.url
        );
        let uploaded = self
            .client
            .put(content)
            .bearer_auth(&self.token)
            .body(slug)
            .send()
            .await?;
        if !uploaded.status().is_success() {
            return Err(format!("the upload was answered with {}", uploaded.status()).into());
        }
        let body = json!({"configuration_version": configuration, "message": "bench"});
        let run = self
            .call(
                Method::POST,
                &format!("/v1/workspaces/{workspace}/runs"),
                Some(body),
            )
            .await?;
        Ok(text(&run["data"]["id"])?.to_owned())
    }

    /// Stops the server and waits for its end.
    pub async fn stop(mut self) -> Result<(), Failure> {
        if let Some(pid) = self.server.id() {
            Command::new("kill")
                .args(["-TERM", &pid.to_string()])
                .status()
                .await?;
        }
        self.server.wait().await?;
        Ok(())
    }

    /// Waits until the run stands there.
    pub async fn until(&self, run: &str, wanted: &str) -> Result<Value, Failure> {
        let began = Instant::now();
        loop {
            let answer = self
                .call(Method::GET, &format!("/v1/runs/{run}"), None)
                .await?;
            let status = text(&answer["data"]["status"])?;
            if status == wanted {
                return Ok(answer);
            }
            if !answer["data"]["ended"].is_null() || began.elapsed() > RUN_LIMIT {
                return Err(format!(
                    "{run} is `{status}` instead of `{wanted}`: {}",
                    answer["data"]["ended"]
                )
                .into());
            }
            tokio::time::sleep(ASK_EVERY).await;
        }
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<Value, Failure> {
        let mut request = self
            .client
            .request(method, format!("{}{path}", self.url))
            .bearer_auth(&self.token);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await?;
        let status = answer.status();
        let text = answer.text().await?;
        if !status.is_success() {
            return Err(format!("{path} was answered with {status}: {text}").into());
        }
        Ok(serde_json::from_str(&text)?)
    }
}

/// Quiet, unless whoever measures wants to see where the time goes.
#[expect(
    clippy::disallowed_methods,
    reason = "a measurement hands its own environment on to the server it starts"
)]
fn log_filter() -> String {
    std::env::var("STACKSHIP_LOG_FILTER").unwrap_or_else(|_| "warn".to_owned())
}

/// The text that an answer has here.
pub fn text(value: &Value) -> Result<&str, Failure> {
    value
        .as_str()
        .ok_or_else(|| "the answer lacks a text that was expected".into())
}

fn slug() -> Result<Vec<u8>, Failure> {
    let encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut archive = tar::Builder::new(encoder);
    let mut header = tar::Header::new_gnu();
    header.set_size(u64::try_from(bare::CONFIGURATION.len())?);
    header.set_mode(0o644);
    header.set_cksum();
    archive.append_data(&mut header, "main.tf", bare::CONFIGURATION.as_bytes())?;
    Ok(archive.into_inner()?.finish()?)
}

/// Reads the recorded times of the phases.
fn taken(whole: Duration, run: &Value) -> Result<Taken, Failure> {
    let at = |value: &Value| -> Result<stackship_domain::Timestamp, Failure> {
        Ok(text(value)?.parse()?)
    };
    let created = at(&run["created_at"])?;
    let (plan_start, plan_end) = (
        at(&run["plan"]["started_at"])?,
        at(&run["plan"]["ended_at"])?,
    );
    let approved = at(&run["approval"]["decision"]["at"])?;
    let (apply_start, apply_end) = (
        at(&run["apply"]["started_at"])?,
        at(&run["apply"]["ended_at"])?,
    );
    let between = |from: stackship_domain::Timestamp, to: stackship_domain::Timestamp| {
        Duration::from_micros(
            u64::try_from(to.as_microsecond() - from.as_microsecond()).unwrap_or(0),
        )
    };
    Ok(Taken {
        whole,
        to_plan: between(created, plan_start),
        plan: between(plan_start, plan_end),
        to_approval: between(plan_end, approved),
        to_apply: between(approved, apply_start),
        apply: between(apply_start, apply_end),
    })
}
