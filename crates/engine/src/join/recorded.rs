//! Names that recordings have for the files of their own mappings.

use std::sync::Arc;

use perfuse_addresses::recorded_symbols::RecordedFile;
use perfuse_binaries::symbolize::{Module, Resolved};
use rustc_hash::FxHashMap;

use crate::mappings::{Mapping, Mappings};

/// Files whose functions a recording lists, and the lists of symbols of whole processes.
#[derive(Debug, Default)]
pub struct RecordedNames {
    files: FxHashMap<(u32, String), Arc<Module>>,
    processes: FxHashMap<u32, Arc<Module>>,
}

/// Name of a kernel, which the names of its mappings begin with.
const KERNEL: &str = "[kernel.kallsyms]";

impl RecordedNames {
    /// Of files with the recordings that list them. `pids` are `(process key, pid)`: a file `perf-PID.map` has symbols of a process.
    #[must_use]
    pub fn new(
        files: impl IntoIterator<Item = (u32, RecordedFile)>,
        pids: impl IntoIterator<Item = (u32, i32)>,
    ) -> Self {
        let mut all = Self::default();
        for (source_id, file) in files {
            let key = (source_id, file.path.clone());
            all.files.entry(key).or_insert_with(|| Arc::new(Module::recorded(file)));
        }
        if !all.files.is_empty() {
            for (process_id, pid) in pids {
                let path = format!("perf-{pid}.map");
                if let Some((_, module)) = all.files.iter().find(|((_, name), _)| *name == path) {
                    all.processes.insert(process_id, Arc::clone(module));
                }
            }
        }
        all
    }

    /// The list that names a mapping.
    pub(super) fn of_mapping(&self, mapping: &Mapping, mappings: &Mappings) -> Option<&Arc<Module>> {
        if self.files.is_empty() {
            return None;
        }
        let path = mappings.file(mapping)?.path.as_str();
        let path = if path.starts_with(KERNEL) { KERNEL } else { path };
        self.files.get(&(mapping.source_id, path.to_owned()))
    }

    /// The function at an address of a process, where the recording has a list of its symbols.
    pub(super) fn of_process(&self, process_id: u32, address: u64) -> Option<Resolved> {
        let resolved = self.processes.get(&process_id)?.resolve(address);
        (!resolved.frames.is_empty()).then_some(resolved)
    }
}
