//! `with-postgres -- CMD`: runs a command with a throwaway PostgreSQL.

mod signals;
mod sweep;

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use stackship_embedded_postgres::{Cluster, DATABASE, Durability, Settings, end_with_this_thread};

use crate::signals::Signals;
use crate::sweep::sweep;

const HELP: &str = "\
Runs a command with a PostgreSQL of its own, which is thrown away afterwards.

Usage: with-postgres [--keep] -- COMMAND [ARGUMENT]...

  with-postgres -- cargo test
  with-postgres -- sh -c 'psql \"$DATABASE_URL\" -c \"select version()\"'

The command finds the server in DATABASE_URL: an empty database `stackship`, and a role that may do
anything, so a test can create a database of its own. The server is faster than an ordinary one
because it writes nothing durably: never keep data in it that you need.

Ctrl-C, SIGTERM and SIGHUP reach the command. When it ends, the server is stopped, its files are
removed, and the command's exit code is returned. Nothing keeps running even after `kill -9`; the
files that leaves are removed by the next call.

Options:
  --keep      leave the files (data, log) in place and print where they are
  -h, --help  print this text

Environment:
  STACKSHIP_PG_BIN  the directory of `postgres` and `initdb`; by default the newest found is taken
  TMPDIR            where the files are put; by default /tmp

Exit code: the command's; 128 + n if signal n ended it; 125 if the server did not start or stop;
126 if the command cannot be run, 127 if it is not found; 2 if this call is not understood.
";

const USAGE: u8 = 2;
const OURS: u8 = 125;
const CANNOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;
const SIGNALED: u8 = 128;

/// Directories with this prefix belong to nobody once their supervisor is dead.
const PREFIX: &str = "with-postgres-";
const KEPT_PREFIX: &str = "kept-by-with-postgres-";

fn main() -> ExitCode {
    match parse(env::args_os().skip(1)) {
        Ok(Call::Help) => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        Ok(Call::Run(run)) => run.run().unwrap_or_else(|failure| {
            eprintln!("with-postgres: {}", failure.text);
            ExitCode::from(failure.code)
        }),
        Err(text) => {
            eprintln!("with-postgres: {text}\nTry `with-postgres --help`.");
            ExitCode::from(USAGE)
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Call {
    Help,
    Run(Run),
}

#[derive(Debug, PartialEq, Eq)]
struct Run {
    keep: bool,
    program: OsString,
    arguments: Vec<OsString>,
}

fn parse(mut arguments: impl Iterator<Item = OsString>) -> Result<Call, String> {
    let mut keep = false;
    loop {
        let Some(argument) = arguments.next() else {
            return Err("no command given; it follows `--`".to_owned());
        };
        match argument.to_str() {
            Some("-h" | "--help") => return Ok(Call::Help),
            Some("--keep") => keep = true,
            Some("--") => break,
            _ => {
                let shown = argument.to_string_lossy();
                return Err(format!("`{shown}` is no option; the command follows `--`"));
            }
        }
    }
    let program = arguments.next().ok_or("no command given after `--`")?;
    Ok(Call::Run(Run {
        keep,
        program,
        arguments: arguments.collect(),
    }))
}

struct Failure {
    code: u8,
    text: String,
}

impl Failure {
    /// With the causes: this is where an error is handled.
    fn ours(error: &dyn std::error::Error) -> Self {
        let mut parts = vec![error.to_string()];
        let mut cause = error.source();
        while let Some(error) = cause {
            parts.push(error.to_string());
            cause = error.source();
        }
        Self {
            code: OURS,
            text: parts.join(": "),
        }
    }
}

impl Run {
    fn run(&self) -> Result<ExitCode, Failure> {
        // Before any thread starts, because threads inherit what is blocked.
        let signals = Signals::block().map_err(|error| Failure::ours(&error))?;
        sweep(&env::temp_dir(), PREFIX);
        let dir = tempfile::Builder::new()
            .prefix(if self.keep { KEPT_PREFIX } else { PREFIX })
            .disable_cleanup(self.keep)
            .tempdir()
            .map_err(|error| Failure::ours(&error))?;
        if self.keep {
            eprintln!("with-postgres: the files stay in {}", dir.path().display());
        }
        let cluster =
            Cluster::start(&settings(dir.path())).map_err(|error| Failure::ours(&error))?;
        cluster.on_exit(|exit| {
            if !exit.asked {
                eprintln!(
                    "with-postgres: the server ended by itself ({})",
                    exit.status
                );
            }
        });

        let ran = self.run_command(&cluster.url(DATABASE), &signals);
        let stopped = cluster.stop();
        if !self.keep {
            dir.close().map_err(|error| Failure::ours(&error))?;
        }
        let status = ran?;
        // A command that failed says more than a server that did not stop cleanly.
        if status.success() {
            stopped.map_err(|error| Failure::ours(&error))?;
        }
        Ok(ExitCode::from(exit_code(status)))
    }

    fn run_command(&self, url: &str, signals: &Signals) -> Result<ExitStatus, Failure> {
        let early = signals
            .ended_early()
            .map_err(|error| Failure::ours(&error))?;
        if let Some(signal) = early {
            return Ok(ExitStatus::from_raw(signal as i32));
        }
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).env("DATABASE_URL", url);
        // The main thread starts it and lives until the end.
        end_with_this_thread(&mut command);
        let child = command.spawn().map_err(|error| self.cannot_start(&error))?;
        signals
            .forward_until_the_end_of(child)
            .map_err(|error| Failure::ours(&error))
    }

    fn cannot_start(&self, error: &io::Error) -> Failure {
        let code = if error.kind() == io::ErrorKind::NotFound {
            NOT_FOUND
        } else {
            CANNOT_RUN
        };
        let text = format!("cannot run `{}`: {error}", self.program.to_string_lossy());
        Failure { code, text }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place where this program reads its environment"
)]
fn settings(dir: &Path) -> Settings {
    let mut settings = Settings::new(dir.join("pg"), Durability::Throwaway);
    settings.bin_dir = env::var_os("STACKSHIP_PG_BIN").map(PathBuf::from);
    settings.runtime_dir = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    settings
}

/// What a shell reports.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().map(u8::try_from);
    let signal = status.signal().map(u8::try_from);
    match (code, signal) {
        (Some(Ok(code)), _) => code,
        (_, Some(Ok(signal))) => SIGNALED.saturating_add(signal),
        _ => OURS,
    }
}

#[cfg(test)]
mod tests {
    use nix::sys::signal::Signal;

    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Call, String> {
        parse(arguments.iter().map(OsString::from))
    }

    #[test]
    fn everything_after_the_dashes_is_the_command() {
        let expected = Run {
            keep: true,
            program: "cargo".into(),
            arguments: vec!["test".into(), "--help".into()],
        };
        assert_eq!(
            parsed(&["--keep", "--", "cargo", "test", "--help"]),
            Ok(Call::Run(expected))
        );
    }

    #[test]
    fn a_call_without_a_command_is_refused() {
        for arguments in [
            &[][..],
            &["--"],
            &["--keep"],
            &["cargo", "test"],
            &["--kep", "--", "x"],
        ] {
            assert!(parsed(arguments).is_err(), "{arguments:?}");
        }
    }

    #[test]
    fn a_signal_becomes_the_exit_code_of_a_shell() {
        assert_eq!(exit_code(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(exit_code(ExitStatus::from_raw(Signal::SIGTERM as i32)), 143);
    }
}
