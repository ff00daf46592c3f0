//! Launches trial sandboxes with a driver of its own.
//!
//! `sandbox-trial measure RUNTIME_DIRECTORY COUNT` prints how long launches take beside bare ones, and
//! the processor time of the whole tree, which a busy machine does not change as much.
//! `sandbox-trial hold RUNTIME_DIRECTORY NAME` keeps one sandbox with a stubborn process until it
//! is killed itself; the tests use it to see what is left then.

use std::error::Error;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use stackship_sandbox::bubblewrap::{Bubblewrap, Settings};
use stackship_sandbox::{
    EndReason, Environment, Event, Limits, Network, SandboxDriver, SandboxSpec, Stdout, Step,
};

/// A process in a session of its own, without a parent, that ignores what it can.
const STUBBORN: &str = "(setsid sh -c 'trap \"\" HUP INT TERM; while :; do sleep 1000; done' &) ; \
                        trap '' INT TERM; echo up; while :; do sleep 1000; done";

fn main() -> Result<(), Box<dyn Error>> {
    stackship_sandbox::run_helper_if_asked();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    match arguments[..] {
        ["measure", directory, count] => {
            runtime.block_on(measure(directory.into(), count.parse()?))
        }
        ["hold", directory, name] => runtime.block_on(hold(directory.into(), name)),
        _ => Err("see the documentation of this program".into()),
    }
}

fn driver(directory: PathBuf, name: &str) -> Result<Bubblewrap, Box<dyn Error>> {
    let mut settings = Settings::new(name, directory)?;
    // Away from the users of a driver that may run beside it.
    settings.base_uid = 300_000;
    Ok(Bubblewrap::new(settings)?)
}

fn spec(argv: &[&str]) -> SandboxSpec {
    SandboxSpec {
        name: "trial".to_owned(),
        directories: Vec::new(),
        inputs: Vec::new(),
        steps: vec![Step {
            name: "only".to_owned(),
            argv: argv.iter().map(|&word| word.to_owned()).collect(),
            environment: Environment::base(Network::default()),
            directory: "/workspace".to_owned(),
            stdout: Stdout::Log,
            continue_on: vec![0],
            time_limit: Duration::from_hours(1),
            pause_after: false,
        }],
        artifacts: Vec::new(),
        limits: Limits::default(),
        network: Network {
            gateway: true,
            egress: true,
        },
    }
}

async fn hold(directory: PathBuf, name: &str) -> Result<(), Box<dyn Error>> {
    let driver = driver(directory, name)?;
    let mut sandbox = driver.launch(spec(&["/bin/sh", "-c", STUBBORN])).await?;
    while let Some(event) = sandbox.next_event().await {
        if matches!(event, Event::Log { .. }) {
            println!("up");
        }
    }
    Err(format!("it ended: {:?}", sandbox.wait().await.reason).into())
}

async fn measure(directory: PathBuf, count: u32) -> Result<(), Box<dyn Error>> {
    let driver = driver(directory, "measure")?;
    let [mut bare, mut ready, mut whole, mut cpu] = [const { Vec::new() }; 4];
    // Interleaved, so that a busy machine is busy for both.
    for _ in 0..count {
        let started = Instant::now();
        Command::new("/bin/true").stdin(Stdio::null()).status()?;
        bare.push(started.elapsed());
        let started = Instant::now();
        let mut sandbox = driver.launch(spec(&["/bin/true"])).await?;
        ready.push(started.elapsed());
        let outcome = sandbox.wait().await;
        whole.push(started.elapsed());
        cpu.extend(outcome.cpu_time);
        if outcome.reason != EndReason::Exited {
            return Err(format!("it ended: {:?}", outcome.reason).into());
        }
    }
    for (name, times) in [
        ("bare", bare),
        ("launch", ready),
        ("launch to end", whole),
        ("processor", cpu),
    ] {
        print(name, times);
    }
    Ok(())
}

fn print(name: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: usize| {
        times
            .get(times.len() * share / 100)
            .copied()
            .unwrap_or_default()
    };
    let (least, median, most) = (at(0), at(50), at(95));
    println!("{name:<14} min {least:>10.2?}  median {median:>10.2?}  p95 {most:>10.2?}");
}
