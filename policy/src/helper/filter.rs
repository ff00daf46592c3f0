//! The system call filter of the limited process: memory, time, its own end, and two pipes.
//!
//! Any other call fails with ENOSYS, as on a kernel that does not have it, so that a C library with
//! other habits than the ones known here falls back instead of dying.

use nix::libc::{self, c_long};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: TargetArch = TargetArch::aarch64;

/// Allowed whatever the arguments.
const ALLOWED: &[c_long] = &[
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_futex,
    libc::SYS_clock_gettime,
    libc::SYS_getrandom,
    libc::SYS_sched_yield,
    libc::SYS_restart_syscall,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_sigaltstack,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_set_robust_list,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// A condition on one argument: its index, the comparison, the value.
type Condition = (u8, SeccompCmpOp, u64);

/// The compiled filter for this process.
pub(super) fn program() -> Result<BpfProgram, seccompiler::Error> {
    let mut rules: Vec<(c_long, Vec<SeccompRule>)> =
        ALLOWED.iter().map(|number| (*number, Vec::new())).collect();
    for (number, alternatives) in by_argument() {
        let alternatives = alternatives.into_iter().map(rule);
        rules.push((number, alternatives.collect::<Result<_, _>>()?));
    }
    let filter = SeccompFilter::new(
        rules.into_iter().collect(),
        SeccompAction::Errno(libc::ENOSYS.unsigned_abs()),
        SeccompAction::Allow,
        ARCHITECTURE,
    )?;
    Ok(filter.try_into()?)
}

/// Allowed for some arguments.
fn by_argument() -> Vec<(c_long, Vec<Vec<Condition>>)> {
    use SeccompCmpOp::{Eq, MaskedEq};
    let bits = |flags: libc::c_int| u64::from(flags.unsigned_abs());
    let not_executable = (2, MaskedEq(bits(libc::PROT_EXEC)), 0);
    let anonymous = bits(libc::MAP_ANONYMOUS);
    let this_process = u64::from(std::process::id());
    vec![
        // Standard input, output and error, whatever else may have been inherited.
        (libc::SYS_read, vec![vec![(0, Eq, 0)]]),
        (libc::SYS_write, vec![vec![(0, Eq, 1)], vec![(0, Eq, 2)]]),
        (
            libc::SYS_mmap,
            vec![vec![
                not_executable.clone(),
                (3, MaskedEq(anonymous), anonymous),
            ]],
        ),
        (libc::SYS_mprotect, vec![vec![not_executable]]),
        // How a program aborts.
        (
            libc::SYS_tgkill,
            vec![vec![(0, Eq, this_process), (2, Eq, bits(libc::SIGABRT))]],
        ),
    ]
}

fn rule(conditions: Vec<Condition>) -> Result<SeccompRule, BackendError> {
    // The kernel looks at 32 bits of each of these arguments, so the comparison must too.
    let condition = |(index, operator, value)| {
        SeccompCondition::new(index, SeccompCmpArgLen::Dword, operator, value)
    };
    SeccompRule::new(
        conditions
            .into_iter()
            .map(condition)
            .collect::<Result<_, _>>()?,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_is_both_free_and_bound_by_its_arguments() {
        for (number, _) in by_argument() {
            assert!(!ALLOWED.contains(&number), "{number}");
        }
        assert!(!program().unwrap().is_empty());
    }

    #[test]
    fn nothing_that_starts_opens_or_connects_is_on_the_list() {
        let ruled: Vec<_> = by_argument()
            .into_iter()
            .map(|(number, _)| number)
            .collect();
        for number in [
            libc::SYS_openat,
            libc::SYS_openat2,
            libc::SYS_socket,
            libc::SYS_connect,
            libc::SYS_execve,
            libc::SYS_execveat,
            libc::SYS_clone,
            libc::SYS_clone3,
            libc::SYS_ptrace,
            libc::SYS_kill,
            libc::SYS_prlimit64,
            libc::SYS_ioctl,
            libc::SYS_io_uring_setup,
        ] {
            assert!(
                !ALLOWED.contains(&number) && !ruled.contains(&number),
                "{number}"
            );
        }
    }
}
