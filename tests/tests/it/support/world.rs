//! A server with an organization in it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::checkout::Checkout;
use super::client::{self, Client, Workspace};
use super::server::Server;
use super::{database, eventually};

/// The organization that most tests work in.
const ORGANIZATION: &str = "acme";

/// A running installation and its owner.
pub struct World {
    pub server: Server,
    pub owner: Client,
}

impl World {
    /// The installation that all tests share that do not harm it.
    pub fn shared() -> &'static Self {
        static WORLD: OnceLock<World> = OnceLock::new();
        WORLD.get_or_init(|| Self::own(&[]))
    }

    /// An installation of one's own, with other settings than usual.
    pub fn own(settings: &[(&str, &str)]) -> Self {
        Self::on(&client::runtime().block_on(database::fresh()), settings)
    }

    /// The same on a database that somebody else keeps.
    pub fn on(database: &str, settings: &[(&str, &str)]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("it-{}-{number}", std::process::id());
        let mut server = Server::new(database, &name, settings);
        server.start();
        let nobody = Client::new(server.url(), "", ORGANIZATION);
        wait_ready(&mut server, &nobody);
        let made = server.bootstrap(ORGANIZATION, "ada");
        let owner = Client::new(server.url(), &client::text(&made["token"]), ORGANIZATION);
        Self { server, owner }
    }

    /// Starts the server anew after its end.
    pub fn restart(&mut self) {
        self.server.start();
        wait_ready(&mut self.server, &self.owner);
    }

    /// A fresh workspace and a directory for it in which `tofu init` has run.
    #[track_caller]
    pub fn begin(&self, name: &str, main: &str) -> (Workspace, Checkout) {
        let workspace = self.owner.workspace(name);
        let checkout = Checkout::initialized(&self.owner, &workspace, main);
        (workspace, checkout)
    }
}

fn wait_ready(server: &mut Server, client: &Client) {
    eventually("the server is ready", || {
        server.assert_alive();
        client.ready().then_some(())
    });
}
