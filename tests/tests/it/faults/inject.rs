//! Breaking one thing, and bringing back what comes back by itself in an installation: processes that
//! a service manager starts again.

use std::fs;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::bench::Bench;
use super::schedule::Fault;
use super::turnstile::Answer;
use crate::support::eventually;

/// For how long a stopped database is away.
const DATABASE_AWAY: Duration = Duration::from_secs(3);

/// Whether a lease of the run could still be renewed.
const LIVE_LEASES: &str = "select attempt_id from record.attempts where run_id = $1 \
    and runner_id is not null and closed_at is null and lease_expires_at > clock_timestamp()";

/// Breaks it, and says what becomes of the request that is held just then.
pub fn inject(bench: &mut Bench, fault: Fault) -> Answer {
    match fault {
        Fault::RunnerKilled => bench.runner.kill(),
        Fault::SandboxKilled => kill_below(bench, "the sandbox", |process, _| process.is_bwrap()),
        Fault::SupervisorKilled => kill_below(bench, "the supervisor", |process, parent| {
            !process.is_bwrap() && parent.is_some_and(Process::is_bwrap)
        }),
        Fault::TofuKilled => kill_below(bench, "tofu", |process, _| process.name == "tofu"),
        Fault::ServerKilled | Fault::ServerGone => {
            bench.world.server.signal(Signal::SIGKILL);
            bench.world.server.wait_exit();
            return Answer::Lost;
        }
        Fault::DatabaseKilled => bench.database.kill(),
        Fault::DatabaseStopped => bench.database.stop(),
        Fault::CutOff => {
            bench.turnstile.cut(true);
            return Answer::Lost;
        }
    }
    Answer::Passes
}

/// Brings everything back.
pub fn restore(bench: &mut Bench, fault: Fault, run: &str) {
    match fault {
        Fault::RunnerKilled => bench.runner.restart(),
        Fault::SandboxKilled | Fault::SupervisorKilled | Fault::TofuKilled => {}
        Fault::ServerKilled => bench.world.restart(),
        Fault::ServerGone => {
            await_lease_end(bench, run);
            bench.world.restart();
        }
        Fault::DatabaseKilled => bench.database.start(),
        Fault::DatabaseStopped => {
            // Not a wait for anything: the time away is what is tried.
            std::thread::sleep(DATABASE_AWAY);
            bench.database.start();
        }
        Fault::CutOff => {
            await_lease_end(bench, run);
            bench.turnstile.cut(false);
        }
    }
    let owner = &bench.world.owner;
    eventually("the server is ready", || owner.ready().then_some(()));
}

fn await_lease_end(bench: &Bench, run: &str) {
    eventually("the lease is over", || {
        let live = bench.database.rows(LIVE_LEASES, run);
        live.is_empty().then_some(())
    });
}

/// A process below the runner.
struct Process {
    id: i32,
    parent: i32,
    name: String,
}

impl Process {
    fn is_bwrap(&self) -> bool {
        self.name == "bwrap"
    }
}

/// Kills the first process below the runner that is this one, given it and its parent.
fn kill_below(bench: &Bench, what: &str, is_it: impl Fn(&Process, Option<&Process>) -> bool) {
    let runner = i32::try_from(bench.runner.id()).expect("process ids are small");
    let id = eventually(what, || {
        let below = below(runner);
        let parent = |process: &Process| below.iter().find(|it| it.id == process.parent);
        let found = below.iter().find(|process| is_it(process, parent(process)));
        found.map(|process| process.id)
    });
    kill(Pid::from_raw(id), Signal::SIGKILL).expect("what was just seen can be killed");
}

/// Everything that descends from a process, parents before children.
fn below(root: i32) -> Vec<Process> {
    let entries = fs::read_dir("/proc").expect("the system lists its processes");
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut others: Vec<_> = names
        .filter_map(|name| process(name.parse().ok()?))
        .collect();
    let (mut found, mut parents): (Vec<Process>, _) = (Vec::new(), vec![root]);
    while !parents.is_empty() {
        let (children, rest) = others
            .into_iter()
            .partition::<Vec<_>, _>(|process| parents.contains(&process.parent));
        parents = children.iter().map(|process| process.id).collect();
        found.extend(children);
        others = rest;
    }
    found
}

/// The process, unless it is gone by now. Its name may hold anything, spaces and brackets too.
fn process(id: i32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (head, tail) = stat.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    let parent = tail.split_whitespace().nth(1)?.parse().ok()?;
    Some(Process { id, parent, name })
}

#[test]
fn a_child_is_found_below_its_parent() {
    let mut child = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .expect("a child starts");
    let own = i32::try_from(std::process::id()).expect("process ids are small");
    let id = i32::try_from(child.id()).expect("process ids are small");
    eventually("the child is `sleep`", || {
        let below = below(own);
        let found = below.iter().find(|process| process.id == id)?;
        (found.parent == own && found.name == "sleep").then_some(())
    });
    child.kill().expect("one may kill one's own child");
    child.wait().expect("a child can be waited for");
}
