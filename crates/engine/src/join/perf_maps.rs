use std::path::PathBuf;
use std::sync::Mutex;

use rustc_hash::FxHashMap;

use perfuse_binaries::symbolize::PerfMap;

/// The `perf-PID.map` files that runtimes without a dump write (`node --perf-basic-prof`), opened when first asked.
#[derive(Debug)]
pub struct PerfMaps {
    dirs: Vec<PathBuf>,
    pids: FxHashMap<u32, i32>,
    open: Mutex<FxHashMap<u32, Option<PerfMap>>>,
}

impl PerfMaps {
    /// Looks in these directories, the first first, for processes of these pids.
    #[must_use]
    pub fn new(dirs: Vec<PathBuf>, pids: impl IntoIterator<Item = (u32, i32)>) -> Self {
        Self { dirs, pids: pids.into_iter().collect(), open: Mutex::default() }
    }

    /// The name a process's map has for an address.
    #[must_use]
    pub fn find(&self, process_id: u32, address: u64) -> Option<String> {
        let pid = self.pids.get(&process_id)?;
        let mut open = self.open.lock().ok()?;
        let map = open.entry(process_id).or_insert_with(|| {
            let file = format!("perf-{pid}.map");
            self.dirs.iter().find_map(|dir| PerfMap::open(&dir.join(&file)).ok())
        });
        Some(map.as_ref()?.find(address)?.name.into_owned())
    }
}
