//! The command line, with help that teaches.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// StackShip runs OpenTofu for teams: every run is planned in a sandbox, judged by policy, approved
/// by a person against exactly what will be applied, applied, and remembered.
#[derive(Debug, Parser)]
#[command(
    name = "stackship",
    version,
    after_long_help = "First steps on one machine:\n  \
        stackship serve                                   # API, workflow, runner and a private PostgreSQL\n  \
        stackship admin bootstrap --organization acme --login ada\n\n\
        Both keep to ./.stackship of the directory they are run in; name another place with --config or\n\
        STACKSHIP_DATA_DIR, to every command alike.\n\n\
        The second command prints a token once. Put it, and a `host` block, into ~/.tofurc as the README\n\
        shows, then run `tofu init` and `tofu apply`."
)]
pub struct Cli {
    /// Configuration file (TOML). Environment variables (STACKSHIP_…) win over it; `stackship
    /// settings` lists every setting.
    #[arg(long, global = true, env = "STACKSHIP_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve everything on one machine. Without `database_url` it starts, and stops, a private
    /// PostgreSQL of its own in the data directory.
    Serve,
    /// Run as a runner host alone: leases attempts from a control plane over HTTP. It has no
    /// database. Needs `runner.control_plane_url` and a runner token.
    Runner,
    /// Bring the database schema up to date and end.
    Migrate,
    /// Work on the read models.
    #[command(subcommand)]
    Projections(Projections),
    /// Check the history: that it is what was written, and that a run's review follows from it.
    #[command(subcommand)]
    Audit(crate::audit::Audit),
    /// Set up what only somebody at the machine may: the first organization and its owner, a
    /// password, a token, runners.
    #[command(subcommand)]
    Admin(Admin),
    /// Measure what the product costs against the same work done bare, in the same run.
    Bench(crate::bench::Bench),
    /// Print the OpenAPI document of `/v1`.
    Openapi,
    /// List every setting with its default and meaning.
    Settings,
}

/// Work on the read models.
#[derive(Debug, Clone, Copy, Subcommand)]
pub enum Projections {
    /// Build every read model anew from the log; readers see the old ones until the new ones are
    /// complete.
    Rebuild,
}

/// Administration at the machine.
#[derive(Debug, Subcommand)]
pub enum Admin {
    /// Create an organization, its owner, a first project and a token. Prints the token once.
    Bootstrap {
        /// Name of the organization, as the `cloud` block will have it.
        #[arg(long)]
        organization: String,
        /// Login of the owner; an existing user is used.
        #[arg(long)]
        login: String,
        /// The owner's name for people.
        #[arg(long)]
        display_name: Option<String>,
        /// Name of the first project.
        #[arg(long, default_value = "default")]
        project: String,
        /// Print JSON instead of text.
        #[arg(long)]
        json: bool,
    },
    /// Set a user's password, read as one line from standard input. It is asked for again before
    /// guarded downloads; signing in needs none. Only somebody at the machine may set it, so that a
    /// stolen token cannot.
    SetPassword {
        /// Name of an organization of the user: its history tells that the password was set.
        #[arg(long)]
        organization: String,
        /// Login of the user.
        #[arg(long)]
        login: String,
    },
    /// Create a token for a member, when every token that they had is lost or revoked. It descends from
    /// none, so that revoking another does not revoke it. Prints the token once.
    CreateToken {
        /// Name of the organization that it opens.
        #[arg(long)]
        organization: String,
        /// Login of the member.
        #[arg(long)]
        login: String,
    },
    /// Register a runner host. Prints its token once.
    CreateRunner {
        /// A name that says which machine it is.
        #[arg(long)]
        name: String,
    },
}
