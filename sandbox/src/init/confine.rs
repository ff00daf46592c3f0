//! Landlock around the thread that starts the steps, where the kernel has it.

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

/// What the steps may read and execute. The mounts are read-only as well.
const READABLE: [&str; 9] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/etc",
    "/opt",
    "/providers",
    "/sandbox-init",
];
/// What a step may also write.
const WRITABLE: [&str; 3] = ["/workspace", "/tmp", "/dev"];

/// The newest interface whose rights are known here; older kernels get the part they have.
const KNOWN: ABI = ABI::V6;

/// Restricts this thread and all it starts; false when the kernel has no Landlock.
pub(super) fn this_thread() -> bool {
    match restrict() {
        Ok(status) => status != RulesetStatus::NotEnforced,
        Err(error) => {
            eprintln!("sandbox-init: Landlock is not used: {error}");
            false
        }
    }
}

/// Restricts this process in a domain of its own below that of whoever started it. Where the kernel has no
/// Landlock, the worker has said so already.
pub(super) fn once_more() -> std::io::Result<()> {
    restrict().map(drop).map_err(std::io::Error::other)
}

fn restrict() -> Result<RulesetStatus, RulesetError> {
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(KNOWN))?
        .scope(Scope::from_all(KNOWN))?
        .create()?
        .add_rules(path_beneath_rules(READABLE, AccessFs::from_read(KNOWN)))?
        .add_rules(path_beneath_rules(
            ["/proc"],
            AccessFs::ReadFile | AccessFs::ReadDir,
        ))?
        .add_rules(path_beneath_rules(WRITABLE, AccessFs::from_all(KNOWN)))?
        .restrict_self()?;
    Ok(status.ruleset)
}
