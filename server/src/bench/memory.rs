//! What a process takes of memory, as the kernel counts it.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::Failure;

/// How often a process that ends by itself is looked at. The kernel keeps its peak as long as it
/// lives, so what can be missed is only what a peak still grows in the last of these.
const LOOK_EVERY: Duration = Duration::from_micros(200);

/// The memory of one process.
pub struct Memory {
    proc: PathBuf,
}

impl Memory {
    /// Of the process with this id.
    pub fn of(id: u32) -> Self {
        let proc = PathBuf::from(format!("/proc/{id}"));
        Self { proc }
    }

    /// Begins to measure the peak anew; says how many bytes are resident now.
    pub fn forget_peak(&self) -> Result<u64, Failure> {
        const PEAK: &str = "5";
        fs::write(self.proc.join("clear_refs"), PEAK)?;
        self.bytes("VmRSS:")
    }

    /// The most bytes that were resident at once.
    pub fn peak(&self) -> Result<u64, Failure> {
        self.bytes("VmHWM:")
    }

    fn bytes(&self, name: &str) -> Result<u64, Failure> {
        const KIB: u64 = 1024;
        let status = fs::read_to_string(self.proc.join("status"))?;
        let value: u64 = field(&status, name)
            .ok_or("the kernel does not tell the memory")?
            .parse()?;
        Ok(KIB * value)
    }
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()
}

/// Watches the peak of the next program that this process starts, until that ends.
///
/// What the kernel tells of a child after its end will not do: it counts what the parent held when
/// it started the child.
pub struct Watch {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Option<u64>>,
}

impl Watch {
    /// Begins. Nothing else may be started until [`peak`](Self::peak) was asked for.
    pub fn next_child() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let watched = Arc::clone(&is_over);
        let before = processes();
        let find = move || children(&before).first().copied();
        let thread = thread::spawn(move || follow(&watched, find));
        Self { is_over, thread }
    }

    /// The most bytes that were resident at once, now that the program has ended.
    pub fn peak(self) -> Result<u64, Failure> {
        self.is_over.store(true, Ordering::Relaxed);
        let peak = self.thread.join().map_err(|_| "the watching panicked")?;
        peak.ok_or_else(|| "the program was gone before it was seen".into())
    }
}

fn follow(is_over: &AtomicBool, find: impl Fn() -> Option<u32>) -> Option<u64> {
    let (mut child, mut peak) = (None, None);
    loop {
        child = child.or_else(&find);
        // A process that has ended and is not yet waited for has no memory to tell of.
        let now = child.and_then(|id| Memory::of(id).peak().ok());
        peak = peak.max(now);
        if is_over.load(Ordering::Relaxed) {
            return peak;
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// The processes that there are now.
fn processes() -> HashSet<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// The children that are programs of their own: until one is, it shares the memory of this process,
/// and has its command line. Those that were there `before` are not looked at: a small program may be
/// over before all of them are.
fn children(before: &HashSet<u32>) -> Vec<u32> {
    let ours = fs::read("/proc/self/cmdline").unwrap_or_default();
    let parent = std::process::id().to_string();
    let fresh = processes();
    let children = fresh.difference(before).copied().filter(|id| {
        let read = |file: &str| fs::read(format!("/proc/{id}/{file}"));
        let status = read("status").unwrap_or_default();
        let is_child = field(&String::from_utf8_lossy(&status), "PPid:") == Some(&parent);
        is_child && read("cmdline").is_ok_and(|line| line != ours)
    });
    children.collect()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_peak_of_a_child_is_its_own_and_not_that_of_its_parent() {
        const HELD_BYTES: usize = 64 * 1024 * 1024;
        let held = vec![1_u8; HELD_BYTES];
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        assert!(children(&HashSet::new()).contains(&child.id()));
        // It lives until its input ends; one look is enough.
        let peak = follow(&AtomicBool::new(true), || Some(child.id())).unwrap();
        drop(child.stdin.take());
        child.wait().unwrap();
        let ours = Memory::of(std::process::id()).peak().unwrap();
        assert!(ours >= u64::try_from(HELD_BYTES).unwrap(), "{ours}");
        assert!(peak > 0 && peak < ours / 2, "{peak} of {ours}");
        std::hint::black_box(held);
    }

    #[test]
    fn a_program_that_was_never_seen_has_no_peak() {
        assert_eq!(follow(&AtomicBool::new(true), || None), None);
    }
}
