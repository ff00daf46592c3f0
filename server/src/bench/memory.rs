//! What a process takes of memory, as the kernel counts it.

use std::fs;
use std::path::PathBuf;

use crate::Failure;

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
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let value = line.and_then(|line| line.split_whitespace().next());
        let value: u64 = value
            .ok_or("the kernel does not tell the memory")?
            .parse()?;
        Ok(KIB * value)
    }
}
