//! What is at an address of a process or of the kernel at a time: JIT code, a mapped file, or neither.

use crate::code_map::{CodeHit, CodeMap};
use crate::forks::{AddressSpaceStarts, Ancestor};
use crate::mappings::Mappings;

/// What an address belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Region {
    /// JIT code.
    Jit {
        /// Key of the code object.
        code_object_id: u32,
        /// Bytes from its start.
        code_offset: u64,
    },
    /// A mapped file.
    Mapped {
        /// Index into [`Mappings::rows`].
        mapping: u32,
    },
    /// Memory not backed by a file, without known JIT code.
    Anonymous {
        /// Index into [`Mappings::rows`].
        mapping: u32,
        /// Whether there is JIT code at another time.
        code_at_other_times: bool,
    },
    /// The kernel's half of the address space, outside all recorded mappings.
    Kernel,
    /// Outside all mappings of the process.
    Unmapped {
        /// Whether there is JIT code at another time.
        code_at_other_times: bool,
    },
    /// Not an address: it stands for the user part of a chain, which was deferred and never recorded.
    Deferred,
}

/// JIT code and mappings of all processes.
#[derive(Clone, Copy, Debug)]
pub struct AddressSpaces<'a> {
    /// JIT code.
    pub codes: &'a CodeMap,
    /// Mapped files and anonymous memory.
    pub mappings: &'a Mappings,
    /// Which processes have copies of the memory of others.
    pub starts: &'a AddressSpaceStarts,
}

impl AddressSpaces<'_> {
    /// The region of an address in a kernel at a time, and the half-open time range in which it is valid.
    #[must_use]
    pub fn find_kernel(&self, kernel: u32, address: u64, at_ns: i64) -> (Region, i64, i64) {
        match self.mappings.find_kernel(kernel, address, at_ns) {
            Some(i) => (Region::Mapped { mapping: i.id }, i.from_ns, i.until_ns),
            None => (Region::Kernel, at_ns, at_ns.saturating_add(1)),
        }
    }

    /// The region of an address of a process at a time, and the half-open time range in which it is valid.
    #[must_use]
    pub fn find_user(&self, process_id: u32, address: u64, at_ns: i64) -> (Region, i64, i64) {
        let own = self.find_own(process_id, address, at_ns);
        let other = match own.0 {
            Region::Jit { .. } => None,
            Region::Anonymous { mapping, .. } => {
                let mapped = self.mappings.rows.get(mapping as usize);
                let is_of_the_time =
                    mapped.is_none_or(|row| !self.starts.began_after(process_id, row.start_ns, at_ns));
                let code = || self.find_shared(process_id, mapping, address, at_ns);
                let inherited = self.find_inherited(process_id, address, at_ns);
                inherited.or_else(|| {
                    if is_of_the_time {
                        code()
                    } else {
                        Some(Region::Unmapped { code_at_other_times: false })
                    }
                })
            }
            _ => self.find_inherited(process_id, address, at_ns),
        };
        other.map_or(own, |region| (region, at_ns, at_ns.saturating_add(1)))
    }

    /// JIT code that an ancestor of a process had before the fork.
    fn find_inherited(&self, process_id: u32, address: u64, at_ns: i64) -> Option<Region> {
        let (mut process_id, mut at_ns) = (process_id, at_ns);
        for Ancestor { process_id: parent, fork_ns } in self.starts.ancestors(process_id, at_ns) {
            let mapped = self.mappings.find(process_id, address, at_ns);
            if mapped.is_some_and(|it| !self.mappings.is_anonymous(it.id) && it.from_ns > fork_ns) {
                // A file that was mapped since the fork has replaced the code.
                return None;
            }
            (process_id, at_ns) = (parent, fork_ns);
            if let (region @ Region::Jit { .. }, ..) = self.find_own(process_id, address, at_ns) {
                return Some(region);
            }
        }
        None
    }

    /// JIT code that a related process made in memory that it shares: the latest.
    fn find_shared(&self, process_id: u32, mapping: u32, address: u64, at_ns: i64) -> Option<Region> {
        if !self.mappings.is_shared(mapping) {
            return None;
        }
        let oldest = |process_id| {
            self.starts.ancestors(process_id, at_ns).last().map_or(process_id, |ancestor| ancestor.process_id)
        };
        let own = oldest(process_id);
        let hits = self.codes.find_all(address, at_ns).filter(|&(process_id, _)| oldest(process_id) == own);
        let (_, hit) = hits.max_by_key(|(_, hit)| (hit.from_ns, hit.code_object_id))?;
        Some(Region::Jit { code_object_id: hit.code_object_id, code_offset: hit.code_offset })
    }

    /// JIT code that a process made in the address space that it has at a time.
    fn find_code(&self, process_id: u32, address: u64, at_ns: i64) -> Option<CodeHit> {
        let hit = self.codes.find(process_id, address, at_ns)?;
        let until_ns =
            self.starts.next_ns(process_id, at_ns).map_or(hit.until_ns, |next| next.min(hit.until_ns));
        (!self.starts.have_ended(process_id, hit.from_ns, at_ns)).then_some(CodeHit { until_ns, ..hit })
    }

    /// The region of an address of a process, by its own code and mappings.
    fn find_own(&self, process_id: u32, address: u64, at_ns: i64) -> (Region, i64, i64) {
        let mapped = self.mappings.find(process_id, address, at_ns).copied();
        let file = mapped.filter(|interval| !self.mappings.is_anonymous(interval.id));
        if let Some(hit) = self.find_code(process_id, address, at_ns) {
            // A file that was mapped over the code after it was made has replaced it.
            if file.is_none_or(|file| file.from_ns <= hit.from_ns) {
                let region = Region::Jit { code_object_id: hit.code_object_id, code_offset: hit.code_offset };
                let from = file.map_or(hit.from_ns, |file| file.from_ns.max(hit.from_ns));
                let mapped_until_ns = match mapped {
                    Some(mapped) => mapped.until_ns,
                    None => self.mappings.next_ns(process_id, address, at_ns).unwrap_or(i64::MAX),
                };
                return (region, from, mapped_until_ns.min(hit.until_ns));
            }
        }
        if let Some(file) = file {
            let region = Region::Mapped { mapping: file.id };
            return match self.codes.ever_contains(process_id, address) {
                true => (region, at_ns, at_ns.saturating_add(1)),
                false => (region, file.from_ns, file.until_ns),
            };
        }
        let code_at_other_times = self.codes.ever_contains(process_id, address);
        let region = match mapped {
            Some(mapped) => Region::Anonymous { mapping: mapped.id, code_at_other_times },
            None => Region::Unmapped { code_at_other_times },
        };
        (region, at_ns, at_ns.saturating_add(1))
    }
}
