//! The world behind a server on loopback, with the workflow that takes its runs on.

use std::ops::Deref;
use std::time::Duration;

use sqlx::PgPool;
use stackship_api::serving::{self, Limits};
use stackship_domain::ids::{RunId, RunnerId};
use stackship_domain::run::Status;
use stackship_projections::RunReview;
use stackship_store::notify::{Nudges, Topic};
use stackship_store::records::runners;
use stackship_workflow::engine::Engine;
use stackship_workflow::policy::Checker;

pub use crate::world::SOON;
use crate::world::{World, policies};

pub struct Served {
    world: World,
    /// `http://127.0.0.1:port`
    pub url: String,
    pub runner: RunnerId,
}

impl Deref for Served {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

impl Served {
    pub async fn new(owner: PgPool) -> Self {
        Self::judged_by(owner, Checker::new(policies::evaluator())).await
    }

    /// A world whose plans are judged like this.
    pub async fn judged_by(owner: PgPool, checker: Checker) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let world = World::reached_at(owner, &url).await;
        let (store, stop) = (world.store.clone(), world.stop.clone());
        tokio::spawn(Engine::new(store, world.nudges.clone(), checker).run(stop.clone()));
        let router = world.router.clone();
        tokio::spawn(serving::serve(listener, router, Limits::default(), stop));
        let (runner, _) = runners::create(&world.store, "tester").await.unwrap();
        Self { world, url, runner }
    }

    pub async fn review(&self, run: RunId) -> Option<RunReview> {
        let organization = self.acme.organization;
        self.views.review(organization, run).await.unwrap()
    }

    /// Waits until the run stands here.
    pub async fn until(&self, run: RunId, wanted: Status) -> RunReview {
        let looking = async {
            let mut nudges = self.nudges.subscribe();
            loop {
                if let Some(review) = self.review(run).await
                    && review.status == wanted
                {
                    return review;
                }
                let pause = Duration::from_millis(200);
                Nudges::wait(&mut nudges, Topic::Projected, None, pause).await;
            }
        };
        let found = tokio::time::timeout(SOON, looking).await;
        found.unwrap_or_else(|_| panic!("{run} never was {wanted}"))
    }

    /// How many runs there are.
    pub async fn runs(&self) -> i64 {
        self.count("record.runs").await
    }
}
