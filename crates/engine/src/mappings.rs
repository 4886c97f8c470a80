//! Address and time to mapping: what each process had mapped where, and since when.

use arrow_array::RecordBatch;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use perfuse_tables::access::{ColumnError, nullable, numbers, text};
use rustc_hash::FxHashMap;

use crate::timed_space::{Interval, TimedSpace};

/// A mapping, as far as naming addresses needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Key in table `mappings`.
    pub mapping_id: u32,
    /// Since when; `i64::MIN` where it was there before the recording.
    pub start_ns: i64,
    /// First address.
    pub start: u64,
    /// Offset in the file of the first address.
    pub file_offset: u64,
    /// File or pseudo-file, as an index into [`Mappings::modules`].
    pub module: u32,
}

/// A file that was mapped, once however often it was.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Module {
    /// Path, or `[vdso]` and the like.
    pub path: String,
    /// Build id in hexadecimal.
    pub build_id: Option<String>,
}

impl Module {
    /// Whether this is memory without a file behind it: where JIT code lives.
    #[must_use]
    pub fn is_anonymous(&self) -> bool {
        let path = &self.path;
        !path.starts_with(['/', '['])
            || path.starts_with("//anon")
            || path.starts_with("[anon")
            || path.starts_with("/memfd:")
            || path.starts_with("/dev/zero")
            || path.starts_with("/SYSV")
            || path.starts_with("[heap]")
            || path.starts_with("[stack")
    }
}

/// All mappings of a profile.
#[derive(Clone, Debug, Default)]
pub struct Mappings {
    /// By index.
    pub rows: Vec<Mapping>,
    /// Distinct files.
    pub modules: Vec<Module>,
    by_process: FxHashMap<u32, TimedSpace>,
    kernel: TimedSpace,
}

/// What a later mapping has not yet covered, per process.
type Live = std::collections::BTreeMap<u64, Interval>;

impl Mappings {
    /// From table `mappings`, in time order.
    ///
    /// # Errors
    /// When a batch is not of that table.
    pub fn new(batches: &[RecordBatch]) -> Result<Self, ColumnError> {
        let mut all = Self::default();
        let mut module_ids: FxHashMap<Module, u32> = FxHashMap::default();
        let mut spaces: FxHashMap<Option<u32>, (Live, Vec<Interval>)> = FxHashMap::default();
        for batch in batches {
            let ids = numbers::<UInt32Type>(batch, "mapping_id")?;
            let processes = numbers::<UInt32Type>(batch, "process_id")?;
            let times = numbers::<Int64Type>(batch, "start_ns")?;
            let starts = numbers::<UInt64Type>(batch, "start_address")?;
            let ends = numbers::<UInt64Type>(batch, "end_address")?;
            let offsets = numbers::<UInt64Type>(batch, "file_offset")?;
            let paths = text(batch, "path")?;
            let build_ids = text(batch, "build_id")?;
            for row in 0..batch.num_rows() {
                let module = Module {
                    path: paths.get(row).unwrap_or_default().to_owned(),
                    build_id: build_ids.get(row).map(str::to_owned),
                };
                let next = all.modules.len() as u32;
                let module = *module_ids.entry(module).or_insert_with_key(|module| {
                    all.modules.push(module.clone());
                    next
                });
                let start_ns = nullable(times, row).unwrap_or(i64::MIN);
                let id = all.rows.len() as u32;
                let start = starts.value(row);
                all.rows.push(Mapping {
                    mapping_id: ids.value(row),
                    start_ns,
                    start,
                    file_offset: offsets.value(row),
                    module,
                });
                let (live, done) = spaces.entry(nullable(processes, row)).or_default();
                let end = ends.value(row);
                lay(live, done, Interval { start, end, from_ns: start_ns, until_ns: i64::MAX, id });
            }
        }
        for (process, (live, mut done)) in spaces {
            done.extend(live.into_values());
            match process {
                Some(process) => drop(all.by_process.insert(process, TimedSpace::new(done))),
                None => all.kernel = TimedSpace::new(done),
            }
        }
        Ok(all)
    }

    /// The mapping of a process that held an address at a time.
    #[must_use]
    pub fn find(&self, process_id: u32, address: u64, at_ns: i64) -> Option<&Interval> {
        self.by_process.get(&process_id)?.find(address, at_ns)
    }

    /// The kernel's mapping of an address.
    #[must_use]
    pub fn find_kernel(&self, address: u64, at_ns: i64) -> Option<&Interval> {
        self.kernel.find(address, at_ns)
    }

    /// The file a mapping is of.
    #[must_use]
    pub fn module(&self, mapping: &Mapping) -> &Module {
        &self.modules[mapping.module as usize]
    }
}

/// Lays a mapping over what was there: what it covers ends, the rest goes on.
fn lay(live: &mut Live, done: &mut Vec<Interval>, new: Interval) {
    while let Some((&key, &old)) = live.range(..new.end).next_back() {
        if old.end <= new.start {
            break;
        }
        live.remove(&key);
        done.push(Interval { until_ns: new.from_ns, ..old });
        if old.end > new.end {
            live.insert(new.end, Interval { start: new.end, from_ns: new.from_ns, ..old });
        }
        if old.start < new.start {
            live.insert(old.start, Interval { end: new.start, from_ns: new.from_ns, ..old });
            break;
        }
    }
    live.insert(new.start, new);
}

#[cfg(test)]
mod tests {
    use super::*;
    use perfuse_tables::mappings;

    #[test]
    fn a_mapping_laid_in_the_middle_splits_the_old_one() {
        let mut table = mappings::Builder::new();
        table.push(0, Some(0), Some(0), 100, 200, 0, "/a", None, true, 0, 0);
        table.push(1, Some(0), Some(10), 140, 160, 0, "/b", None, true, 0, 0);
        let all = Mappings::new(&[table.finish()]).unwrap();
        let path = |address, at| {
            let row = &all.rows[all.find(0, address, at)?.id as usize];
            Some(all.module(row).path.as_str())
        };
        assert_eq!(path(150, 5), Some("/a"));
        assert_eq!(path(150, 10), Some("/b"));
        assert_eq!((path(139, 20), path(160, 20)), (Some("/a"), Some("/a")));
        assert_eq!(path(200, 20), None);
    }
}
