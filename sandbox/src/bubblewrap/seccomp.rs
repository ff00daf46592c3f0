//! The system call filter: everything known when this was written, minus what a run never needs.
//!
//! A call outside the list fails with ENOSYS, as on a kernel without it, so that the C library
//! falls back (for example from `clone3`, whose flags a filter cannot see, to `clone`).

use std::collections::BTreeMap;

use nix::libc::{self, c_long};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use super::settings::unavailable;
use crate::driver::Unavailable;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: TargetArch = TargetArch::aarch64;

/// Last number of the architecture's own table.
#[cfg(target_arch = "x86_64")]
const OWN_LAST: i64 = 334;
#[cfg(target_arch = "aarch64")]
const OWN_LAST: i64 = 294;

/// The numbers that all architectures share: `pidfd_send_signal` to `mseal`.
const SHARED: std::ops::RangeInclusive<i64> = 424..=462;

/// Refused whatever the arguments.
const DENIED: &[c_long] = &[
    // Mounts, roots and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    457, // statmount
    458, // listmount
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_clone3,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    // Keys, tracing, asynchronous kernel work.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_lookup_dcookie,
    // The machine.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_vhangup,
    libc::SYS_quotactl,
    443, // quotactl_fd
    libc::SYS_nfsservctl,
    // Handles that go around path checks, memory outside the accounting, placement.
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    447, // memfd_secret
    libc::SYS_mbind,
    libc::SYS_set_mempolicy,
    libc::SYS_get_mempolicy,
    450, // set_mempolicy_home_node
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    453, // map_shadow_stack
    459, // lsm_get_self_attr
    460, // lsm_set_self_attr
    461, // lsm_list_modules
];

#[cfg(target_arch = "x86_64")]
const DENIED_HERE: &[c_long] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
    libc::SYS__sysctl,
    174, // create_module
    177, // get_kernel_syms
    178, // query_module
    libc::SYS_getpmsg,
    libc::SYS_putpmsg,
    libc::SYS_afs_syscall,
    libc::SYS_tuxcall,
    libc::SYS_security,
    libc::SYS_vserver,
];
#[cfg(target_arch = "aarch64")]
const DENIED_HERE: &[c_long] = &[];

/// Flags of `clone` that make a namespace. `CLONE_NEWTIME` shares its bit with the exit signal
/// there and works only in `clone3` and `unshare`.
const NAMESPACE_FLAGS: u64 = 0x7e02_0000;

/// The compiled filter as the kernel reads it.
pub(super) fn filter() -> Result<Vec<u8>, Unavailable> {
    let failed = |error: seccompiler::BackendError| unavailable("seccomp", &error.to_string());
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = (0..=OWN_LAST)
        .chain(SHARED)
        .map(|number| (number, Vec::new()))
        .collect();
    for number in DENIED.iter().chain(DENIED_HERE) {
        rules.remove(number);
    }
    rules.extend(argument_rules().map_err(failed)?);
    let refuse = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let filter = SeccompFilter::new(rules, refuse, SeccompAction::Allow, ARCHITECTURE);
    let program: BpfProgram = filter.and_then(TryInto::try_into).map_err(failed)?;
    Ok(program.iter().flat_map(instruction).collect())
}

fn instruction(filter: &seccompiler::sock_filter) -> Vec<u8> {
    let mut bytes = filter.code.to_ne_bytes().to_vec();
    bytes.extend([filter.jt, filter.jf]);
    bytes.extend(filter.k.to_ne_bytes());
    bytes
}

type Rules = Vec<(i64, Vec<SeccompRule>)>;

fn argument_rules() -> Result<Rules, seccompiler::BackendError> {
    use SeccompCmpArgLen::{Dword, Qword};
    use SeccompCmpOp::{Eq, MaskedEq, Ne};
    let families = [
        libc::AF_UNIX,
        libc::AF_INET,
        libc::AF_INET6,
        libc::AF_NETLINK,
    ];
    let families = families.map(|family| vec![(0, Dword, Eq, u64::from(family.unsigned_abs()))]);
    // Only a pipe with a name may be made; every other kind of node is a device.
    let fifo = |argument| vec![vec![(argument, Dword, MaskedEq(0o170_000), 0o010_000)]];
    // The kernel looks at 32 bits of the request, so the comparison must too.
    let ioctl = vec![vec![(1, Dword, Ne, libc::TIOCSTI), (1, Dword, Ne, 0x541c)]];
    let personality = vec![vec![(0, Dword, Eq, 0)], vec![(0, Dword, Eq, 0xffff_ffff)]];
    let mut rules = vec![
        (
            libc::SYS_clone,
            vec![vec![(0, Qword, MaskedEq(NAMESPACE_FLAGS), 0)]],
        ),
        (libc::SYS_socket, families.to_vec()),
        (libc::SYS_socketpair, vec![families[0].clone()]),
        (libc::SYS_ioctl, ioctl),
        (libc::SYS_personality, personality),
        (libc::SYS_mknodat, fifo(2)),
    ];
    #[cfg(target_arch = "x86_64")]
    rules.push((libc::SYS_mknod, fifo(1)));
    let condition =
        |(index, length, operator, value)| SeccompCondition::new(index, length, operator, value);
    let rule = |conditions: Vec<_>| {
        let conditions = conditions
            .into_iter()
            .map(condition)
            .collect::<Result<_, _>>()?;
        SeccompRule::new(conditions)
    };
    let chain = |(number, chain): (c_long, Vec<Vec<_>>)| {
        Ok((
            number,
            chain.into_iter().map(rule).collect::<Result<_, _>>()?,
        ))
    };
    rules.into_iter().map(chain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_fits_what_the_kernel_loads() {
        let bytes = filter().unwrap();
        assert!(
            bytes.len().is_multiple_of(8) && bytes.len() / 8 <= 4096,
            "{} bytes",
            bytes.len()
        );
    }

    #[test]
    fn no_call_is_both_denied_and_allowed_by_argument() {
        let ruled = argument_rules().unwrap();
        for (number, _) in ruled {
            assert!(!DENIED.contains(&number), "{number}");
        }
    }
}
