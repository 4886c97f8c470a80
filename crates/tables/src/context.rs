//! Markers in column `addresses` of table `callchains`: each states where the addresses after it ran. They are those of perf.

/// The lowest marker: this number and all above it are not addresses.
pub const CONTEXT_MAX: u64 = (-4095i64) as u64;
/// The addresses that follow are of a hypervisor.
pub const CONTEXT_HYPERVISOR: u64 = (-32i64) as u64;
/// The addresses that follow are of kernel mode.
pub const CONTEXT_KERNEL: u64 = (-128i64) as u64;
/// The addresses that follow are of user mode.
pub const CONTEXT_USER: u64 = (-512i64) as u64;
/// The user part of the chain is in a later record. In a file a cookie follows; in the table, the part is missing.
pub const CONTEXT_USER_DEFERRED: u64 = (-640i64) as u64;
/// The addresses that follow are of a guest's kernel.
pub const CONTEXT_GUEST_KERNEL: u64 = (-2176i64) as u64;
/// The addresses that follow are of a guest's user mode.
pub const CONTEXT_GUEST_USER: u64 = (-2560i64) as u64;
