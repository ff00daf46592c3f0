//! OpenTofu from a release server: only what has the pinned sum is ever kept or executed.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Write as _};
use std::sync::{Arc, Mutex, OnceLock};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use bytes::Bytes;
use stackship_domain::Sha256Digest;
use stackship_domain::run::TerminalReason;
use stackship_runner::ToolSettings;
use stackship_runner_protocol::{PhaseResult, PlanEnd};
use tokio::net::TcpListener;
use zip::CompressionMethod;
use zip::write::SimpleFileOptions;

use crate::support::{Pinned, World, mirror};

const VERSION: &str = "1.12.6";
const MAIN: &str = "output \"a\" {\n  value = 1\n}\n";

/// What the server does when it is asked for the archive.
#[derive(Clone, Copy)]
enum Serves {
    /// Sends it from another address, as release hosts do.
    Whole,
    /// Announces all of it and breaks off.
    BrokenOff,
    /// Sends less and says that this is all.
    Shortened,
    /// Sends whoever asks to the same place again.
    Loop,
    Nothing,
}

/// A release server on loopback.
struct Releases {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Releases {
    async fn start(archive: Bytes, serves: Serves) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        let router = Router::new().fallback(move |request: Request| {
            let path = request.uri().path().to_owned();
            seen.lock().unwrap().push(path.clone());
            let answer = answer(&archive, serves, &path);
            async move { answer }
        });
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, asked }
    }

    fn tools(&self, pinned: Sha256Digest) -> ToolSettings {
        ToolSettings {
            mirror: None,
            release_base_url: format!("{}/download", self.url),
            pinned: BTreeMap::from([(VERSION.parse().unwrap(), pinned)]),
        }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn answer(archive: &Bytes, serves: Serves, path: &str) -> Response {
    match serves {
        Serves::Whole if path.starts_with("/download/") => {
            Redirect::temporary("/elsewhere?signature=of-the-host").into_response()
        }
        Serves::Whole => archive.clone().into_response(),
        Serves::BrokenOff => {
            let length = [(header::CONTENT_LENGTH, archive.len().to_string())];
            let half = Ok(archive.slice(..archive.len() / 2));
            let parts = futures::stream::iter([half, Err(std::io::Error::other("gone"))]);
            (length, Body::from_stream(parts)).into_response()
        }
        Serves::Shortened => archive.slice(..archive.len() / 2).into_response(),
        Serves::Loop => Redirect::temporary(path).into_response(),
        Serves::Nothing => StatusCode::NOT_FOUND.into_response(),
    }
}

fn zipped(name: &str, program: &[u8]) -> Bytes {
    packed(name, program, CompressionMethod::Deflated)
}

fn packed(name: &str, program: &[u8], method: CompressionMethod) -> Bytes {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(method);
    archive.start_file(name, options).unwrap();
    archive.write_all(program).unwrap();
    archive.finish().unwrap().into_inner().into()
}

/// The real program in the layout of its publisher. Not compressed: without optimization that takes
/// longer than everything else here.
fn release() -> Bytes {
    static RELEASE: OnceLock<Bytes> = OnceLock::new();
    let made = RELEASE.get_or_init(|| {
        let program = fs::read(mirror().join(VERSION).join("tofu")).unwrap();
        packed("tofu", &program, CompressionMethod::Stored)
    });
    made.clone()
}

async fn plan(world: &World) -> PhaseResult {
    let run = Pinned::of(&[("main.tf", MAIN)]);
    run.pin(&world.control_plane);
    world.execute(run.plan.clone()).await
}

#[track_caller]
fn assert_planned(result: &PhaseResult) {
    let PhaseResult::Plan {
        end: PlanEnd::Planned { .. },
    } = result
    else {
        panic!("{result:?}");
    };
}

/// The sentence of a run that ended for want of an OpenTofu.
#[track_caller]
fn sentence(result: &PhaseResult) -> &str {
    match result {
        PhaseResult::Plan {
            end:
                PlanEnd::Failed {
                    reason: TerminalReason::SandboxUnavailable,
                    detail,
                },
        } => detail,
        other => panic!("{other:?}"),
    }
}

/// Plans with such a server, and says the sentence the run ended with.
async fn refusal(archive: Bytes, serves: Serves, pinned: Sha256Digest) -> String {
    let releases = Releases::start(archive, serves).await;
    let world = World::with_tools(releases.tools(pinned)).await;
    let result = plan(&world).await;
    let left: Vec<_> = fs::read_dir(world.tools()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    let detail = sentence(&result).to_owned();
    // Nothing was executed, and whoever follows the log is told why.
    assert_eq!(world.control_plane.log(), format!("\nError: {detail}\n"));
    assert!(
        detail.contains(&format!("OpenTofu {VERSION}")),
        "the version is named: {detail}"
    );
    world.stop().await;
    detail
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pinned_release_is_downloaded_once_and_again_only_when_its_copy_is_damaged() {
    let archive = release();
    let pinned = Sha256Digest::of(&archive);
    let releases = Releases::start(archive, Serves::Whole).await;
    let world = World::with_tools(releases.tools(pinned)).await;
    assert_planned(&plan(&world).await);
    let (_, directory) = world.end().await;
    let world = World::again(
        |settings| settings.tools = releases.tools(pinned),
        directory,
    )
    .await;
    assert_planned(&plan(&world).await);
    let path = format!(
        "/download/v{VERSION}/tofu_{VERSION}_linux_{}.zip",
        if cfg!(target_arch = "aarch64") {
            "arm64"
        } else {
            "amd64"
        }
    );
    assert_eq!(releases.asked(), [path.as_str(), "/elsewhere"]);

    let copy = world.tools().join(format!("{VERSION}-{pinned}/tofu"));
    fs::write(&copy, "#!/bin/sh\necho not OpenTofu\n").unwrap();
    let (_, directory) = world.end().await;
    let world = World::again(
        |settings| settings.tools = releases.tools(pinned),
        directory,
    )
    .await;
    assert_planned(&plan(&world).await);
    assert_eq!(releases.asked().len(), 4);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_earlier_sum_allowed_is_not_used_under_another() {
    let archive = zipped("tofu", b"#!/bin/sh\n");
    let releases = Releases::start(archive.clone(), Serves::Whole).await;
    let world = World::with_tools(releases.tools(Sha256Digest::of(&archive))).await;
    // Whatever becomes of this plan: its program was taken and lies in the cache.
    plan(&world).await;
    assert_eq!(fs::read_dir(world.tools()).unwrap().count(), 1);
    let (_, directory) = world.end().await;
    let world = World::again(
        |settings| settings.tools = releases.tools(Sha256Digest::of(b"another")),
        directory,
    )
    .await;
    assert!(sentence(&plan(&world).await).contains("does not have the configured SHA-256"));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_with_another_sum_is_neither_kept_nor_executed() {
    let archive = zipped("tofu", b"#!/bin/sh\necho executed\n");
    let detail = refusal(archive, Serves::Whole, Sha256Digest::of(b"another")).await;
    assert!(
        detail.contains("does not have the configured SHA-256"),
        "{detail}"
    );
    assert!(!detail.contains("signature"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_that_ends_early_is_neither_kept_nor_executed() {
    let archive = zipped("tofu", b"#!/bin/sh\necho executed\n");
    let pinned = Sha256Digest::of(&archive);
    let detail = refusal(archive.clone(), Serves::BrokenOff, pinned).await;
    assert!(
        detail.contains("could not be downloaded from http://127.0.0.1"),
        "{detail}"
    );
    let detail = refusal(archive, Serves::Shortened, pinned).await;
    assert!(
        detail.contains("does not have the configured SHA-256"),
        "{detail}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_is_not_there_or_only_redirected_ends_the_run_and_is_named() {
    let pinned = Sha256Digest::of(b"something");
    let detail = refusal(Bytes::new(), Serves::Nothing, pinned).await;
    assert!(detail.contains("404"), "{detail}");
    let detail = refusal(Bytes::new(), Serves::Loop, pinned).await;
    assert!(detail.contains("redirect"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pinned_archive_without_the_program_ends_the_run() {
    let archive = zipped("README", b"no program");
    let pinned = Sha256Digest::of(&archive);
    let detail = refusal(archive, Serves::Whole, pinned).await;
    assert!(detail.contains("cannot be read"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_without_a_pinned_sum_is_not_even_asked_for() {
    let releases = Releases::start(Bytes::new(), Serves::Nothing).await;
    let tools = ToolSettings {
        pinned: BTreeMap::new(),
        ..releases.tools(Sha256Digest::of(b"unused"))
    };
    let world = World::with_tools(tools).await;
    let result = plan(&world).await;
    let detail = sentence(&result);
    assert!(
        detail.contains("no SHA-256 of its release archive is configured"),
        "{detail}"
    );
    assert!(releases.asked().is_empty());
    world.stop().await;
}
