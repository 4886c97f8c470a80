use crate::code_map::CodeMap;
use crate::mappings::Mappings;

/// Where code ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// In JIT code.
    Jit {
        /// The code.
        code_object_id: u32,
        /// Bytes from its start.
        code_offset: u64,
    },
    /// In a mapped file.
    Mapped {
        /// Index into the mappings.
        mapping: u32,
    },
    /// In memory without a file, where no JIT code is known.
    Anonymous {
        /// Index into the mappings.
        mapping: u32,
    },
    /// In the kernel's part of the address space, where nothing is known to be mapped.
    Kernel,
    /// In no mapping at all.
    Unmapped,
}

/// All that processes had at their addresses.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// JIT code.
    pub codes: &'a CodeMap,
    /// Files and memory.
    pub mappings: &'a Mappings,
}

impl Places<'_> {
    /// What lies at an address of the kernel at a time, and since when and until when that holds.
    #[must_use]
    pub fn kernel(&self, address: u64, at_ns: i64) -> (Place, i64, i64) {
        match self.mappings.find_kernel(address, at_ns) {
            Some(i) => (Place::Mapped { mapping: i.id }, i.from_ns, i.until_ns),
            None => (Place::Kernel, at_ns, at_ns.saturating_add(1)),
        }
    }

    /// The same for an address of a process.
    #[must_use]
    pub fn user(&self, process_id: u32, address: u64, at_ns: i64) -> (Place, i64, i64) {
        let mapped = self.mappings.find(process_id, address, at_ns).copied();
        let file =
            mapped.filter(|i| !self.mappings.module(&self.mappings.rows[i.id as usize]).is_anonymous());
        if let Some(hit) = self.codes.find(process_id, address, at_ns) {
            // A file that was mapped over the code after it was made has replaced it.
            if file.is_none_or(|file| file.from_ns <= hit.from_ns) {
                let place = Place::Jit { code_object_id: hit.code_object_id, code_offset: hit.code_offset };
                let from = file.map_or(hit.from_ns, |file| file.from_ns.max(hit.from_ns));
                let until = mapped.map_or(hit.until_ns, |mapped| mapped.until_ns.min(hit.until_ns));
                return (place, from, until);
            }
        }
        if let Some(file) = file {
            let place = Place::Mapped { mapping: file.id };
            return match self.codes.ever(process_id, address) {
                true => (place, at_ns, at_ns.saturating_add(1)),
                false => (place, file.from_ns, file.until_ns),
            };
        }
        match mapped {
            Some(mapped) => (Place::Anonymous { mapping: mapped.id }, at_ns, at_ns.saturating_add(1)),
            None => (Place::Unmapped, at_ns, at_ns.saturating_add(1)),
        }
    }
}
