//! Which processes with one pid in two recordings of samples are one.

use std::hash::{BuildHasher, BuildHasherDefault};

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

/// Programs and mappings of the processes of a recording.
///
/// Two processes with one pid, as of two containers, of two machines, or of a machine before and after it was started again, differ
/// in their programs, or in the addresses that these are mapped at.
#[derive(Clone, Debug, Default)]
pub struct RecordedPrograms {
    hostname: Option<String>,
    os_release: Option<String>,
    kernel_address: Option<u64>,
    processes: FxHashMap<i32, MappedPrograms>,
}

/// What one process mapped, as hashes of paths and addresses.
#[derive(Clone, Debug, Default)]
struct MappedPrograms {
    /// The programs that it executed.
    programs: FxHashSet<u64>,
    /// All executable mappings of files, with those of programs.
    files: FxHashSet<u64>,
    /// Addresses of the vdso, of which each execution of a program has one.
    vdso_addresses: FxHashSet<u64>,
}

impl RecordedPrograms {
    /// Those of a machine, as yet without processes.
    #[must_use]
    pub fn new(hostname: Option<String>, os_release: Option<String>) -> Self {
        Self { hostname, os_release, ..Self::default() }
    }

    /// Adds the address of the kernel, which differs each time that a machine is started.
    pub fn add_kernel(&mut self, address: u64) {
        self.kernel_address.get_or_insert(address);
    }

    /// Adds a process.
    pub fn add_process(&mut self, pid: i32) {
        self.processes.entry(pid).or_default();
    }

    /// Adds an executable mapping of a file to a process.
    pub fn add_file(&mut self, pid: i32, path: &[u8], address: u64, is_program: bool) {
        let hash = BuildHasherDefault::<FxHasher>::default().hash_one((path, address));
        let mapped = self.processes.entry(pid).or_default();
        mapped.files.insert(hash);
        if is_program {
            mapped.programs.insert(hash);
        }
    }

    /// Adds the address of a process's vdso, which is random where that of the program is not.
    pub fn add_vdso(&mut self, pid: i32, address: u64) {
        self.processes.entry(pid).or_default().vdso_addresses.insert(address);
    }

    /// All pids, sorted.
    #[must_use]
    pub fn pids(&self) -> Vec<i32> {
        let mut pids: Vec<_> = self.processes.keys().copied().collect();
        pids.sort_unstable();
        pids
    }

    /// Whether a pid may mean the same process in both: neither machines nor programs contradict that.
    #[must_use]
    pub fn may_share(&self, other: &Self, pid: i32) -> bool {
        fn agree<T: PartialEq>(one: Option<&T>, other: Option<&T>) -> bool {
            one.zip(other).is_none_or(|(one, other)| one == other)
        }
        let is_one_machine = agree(self.hostname.as_ref(), other.hostname.as_ref())
            && agree(self.os_release.as_ref(), other.os_release.as_ref())
            && agree(self.kernel_address.as_ref(), other.kernel_address.as_ref());
        let (Some(own), Some(others)) = (self.processes.get(&pid), other.processes.get(&pid)) else {
            return is_one_machine;
        };
        let is_one_process = own.programs.is_empty()
            || others.programs.is_empty()
            || !own.programs.is_disjoint(&others.files)
            || !others.programs.is_disjoint(&own.files);
        let is_one_execution = own.vdso_addresses.is_empty()
            || others.vdso_addresses.is_empty()
            || !own.vdso_addresses.is_disjoint(&others.vdso_addresses);
        is_one_machine && is_one_process && is_one_execution
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn programs(host: &str, files: &[(&str, u64, bool)]) -> RecordedPrograms {
        let mut recorded = RecordedPrograms::new(Some(host.to_owned()), None);
        for &(path, address, is_program) in files {
            recorded.add_file(7, path.as_bytes(), address, is_program);
        }
        recorded
    }

    #[test]
    fn processes_with_one_pid_differ_in_programs_addresses_or_machines() {
        let app = programs("a", &[("/bin/app", 0x5000, true), ("/lib/c.so", 0x7000, false)]);
        let after_exec = programs("a", &[("/bin/app", 0x5000, true), ("/bin/tool", 0x6000, true)]);
        let other_address = programs("a", &[("/bin/app", 0x9000, true), ("/lib/c.so", 0x7000, false)]);
        assert!(app.may_share(&app, 7));
        assert!(app.may_share(&after_exec, 7));
        assert!(!app.may_share(&other_address, 7));
        assert!(app.may_share(&programs("a", &[]), 7), "nothing is known");
        assert!(!app.may_share(&programs("b", &[("/bin/app", 0x5000, true)]), 7));
        assert!(!app.may_share(&programs("b", &[]), 8));
        assert_eq!(app.pids(), [7]);
    }

    #[test]
    fn programs_at_fixed_addresses_are_distinguished_by_the_vdso() {
        let (mut one, mut other) =
            (programs("a", &[("/bin/app", 0x5000, true)]), programs("a", &[("/bin/app", 0x5000, true)]));
        one.add_vdso(7, 0x7000);
        assert!(one.may_share(&other, 7));
        other.add_vdso(7, 0x8000);
        assert!(!one.may_share(&other, 7));
        other.add_vdso(7, 0x7000);
        assert!(one.may_share(&other, 7));
    }

    #[test]
    fn a_kernel_at_another_address_was_started_again() {
        let (mut one, mut other) = (programs("a", &[]), programs("a", &[]));
        one.add_kernel(0x1000);
        assert!(one.may_share(&other, 7));
        other.add_kernel(0x2000);
        assert!(!one.may_share(&other, 7));
    }
}
