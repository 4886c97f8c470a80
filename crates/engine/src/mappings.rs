//! Mappings of each process by address and time.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use perfuse_tables::access::{ColumnError, nullable, numbers, text};
use rustc_hash::FxHashMap;

use perfuse_addresses::mapped_memory::is_memory;
use perfuse_addresses::timed_space::{Interval, TimedSpace};
use perfuse_binaries::symbolize::is_kernel_image;

/// A row of table `mappings`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Key in table `mappings`.
    pub mapping_id: u32,
    /// Time of its start; `i64::MIN` where it is older than the recording.
    pub start_ns: i64,
    /// First address.
    pub start: u64,
    /// Offset in the file of the first address.
    pub file_offset: u64,
    /// File or pseudo-file, as an index into [`Mappings::files`].
    pub file: u32,
    /// Recording that contains it.
    pub source_id: u32,
}

/// A file or pseudo-file that processes mapped, once however often.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MappedFile {
    /// Path, or a pseudo-file such as `[vdso]`.
    pub path: String,
    /// Build id in hexadecimal.
    pub build_id: Option<String>,
}

impl MappedFile {
    /// Whether this is memory not backed by a file, where JIT code is.
    #[must_use]
    pub fn is_anonymous(&self) -> bool {
        let path = &self.path;
        !path.starts_with(['/', '['])
            || is_memory(path.as_bytes(), self.build_id.is_some())
            || path.starts_with("[heap]")
            || path.starts_with("[stack")
            // Copies of JIT code that simpleperf wrote to files of its own.
            || path.contains("_jit_app_cache:")
            || path.contains("_jit_zygote_cache:")
    }

    /// Whether this is memory that a process shares with those that it forks.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        ["/dev/zero", "/memfd:", "/SYSV"].iter().any(|start| self.path.starts_with(start))
    }
}

/// All mappings of a profile.
#[derive(Clone, Debug, Default)]
pub struct Mappings {
    /// All rows, by index.
    pub rows: Vec<Mapping>,
    /// Distinct files.
    pub files: Vec<MappedFile>,
    by_process: FxHashMap<u32, TimedSpace>,
    /// The kernel of each recording that states where it is: recordings of several machines have several.
    kernels: Vec<TimedSpace>,
    /// Index of the kernel of a recording, by `source_id`.
    kernel_of_source: FxHashMap<u32, u32>,
}

/// Most bytes of a kernel after its code; real ones have 30 MB.
const KERNEL_BYTES: u64 = 64 << 20;

/// Whose mappings these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum AddressSpaceKey {
    Process(u32),
    /// The kernel that ran in a recording.
    KernelOf(u32),
}

/// Mappings of a process that no later one has replaced, by start address.
type Live = BTreeMap<u64, Interval>;

impl Mappings {
    /// From table `mappings`, in time order.
    ///
    /// # Errors
    /// When a batch is not of that table.
    pub fn new(batches: &[RecordBatch]) -> Result<Self, ColumnError> {
        let mut all = Self::default();
        let mut file_ids: FxHashMap<MappedFile, u32> = FxHashMap::default();
        let mut spaces: BTreeMap<AddressSpaceKey, (Live, Vec<Interval>)> = BTreeMap::new();
        for batch in batches {
            let ids = numbers::<UInt32Type>(batch, "mapping_id")?;
            let processes = numbers::<UInt32Type>(batch, "process_id")?;
            let times = numbers::<Int64Type>(batch, "start_ns")?;
            let starts = numbers::<UInt64Type>(batch, "start_address")?;
            let ends = numbers::<UInt64Type>(batch, "end_address")?;
            let offsets = numbers::<UInt64Type>(batch, "file_offset")?;
            let paths = text(batch, "path")?;
            let build_ids = text(batch, "build_id")?;
            let sources = numbers::<UInt32Type>(batch, "source_id")?;
            for row in 0..batch.num_rows() {
                let file = MappedFile {
                    path: paths.get(row).unwrap_or_default().to_owned(),
                    build_id: build_ids.get(row).map(str::to_owned),
                };
                let next = all.files.len() as u32;
                let file = *file_ids.entry(file).or_insert_with_key(|file| {
                    all.files.push(file.clone());
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
                    file,
                    source_id: sources.value(row),
                });
                let key = nullable(processes, row)
                    .map_or(AddressSpaceKey::KernelOf(sources.value(row)), AddressSpaceKey::Process);
                let (live, done) = spaces.entry(key).or_default();
                let end = ends.value(row);
                replace_range(live, done, Interval { start, end, from_ns: start_ns, until_ns: i64::MAX, id });
            }
        }
        for (key, (live, mut done)) in spaces {
            done.extend(live.into_values());
            match key {
                AddressSpaceKey::Process(process) => {
                    drop(all.by_process.insert(process, TimedSpace::new(done)));
                }
                AddressSpaceKey::KernelOf(source) => {
                    done.extend(all.rest_of_kernel(&done));
                    all.kernel_of_source.insert(source, all.kernels.len() as u32);
                    all.kernels.push(TimedSpace::new(done));
                }
            }
        }
        Ok(all)
    }

    /// What follows the recorded mapping of the kernel itself, up to the next mapping: perf records the kernel up to `_etext`, and its
    /// code of the time of the start is after its data. Processors that are idle have it on their stacks.
    fn rest_of_kernel(&self, kernel: &[Interval]) -> Vec<Interval> {
        let mut starts: Vec<u64> = kernel.iter().map(|one| one.start).collect();
        starts.sort_unstable();
        let rest = |one: &Interval| {
            let file = self.rows.get(one.id as usize).and_then(|row| self.file(row))?;
            let next = starts.get(starts.partition_point(|&start| start < one.end));
            let most = one.end.saturating_add(KERNEL_BYTES);
            let end = next.map_or(most, |&start| start.min(most));
            is_kernel_image(&file.path).then_some(Interval { start: one.end, end, ..*one })
        };
        kernel.iter().filter_map(rest).collect()
    }

    /// The mapping of a process that contained an address at a time.
    #[must_use]
    pub fn find(&self, process_id: u32, address: u64, at_ns: i64) -> Option<&Interval> {
        self.by_process.get(&process_id)?.find(address, at_ns)
    }

    /// Number of the kernel of a recording; of one that does not state where its kernel is, that of the first that does.
    #[must_use]
    pub fn kernel_of(&self, source_id: u32) -> u32 {
        self.kernel_of_source.get(&source_id).copied().unwrap_or(0)
    }

    /// Mapping of an address in a kernel, by its number.
    #[must_use]
    pub fn find_kernel(&self, kernel: u32, address: u64, at_ns: i64) -> Option<&Interval> {
        self.kernels.get(kernel as usize)?.find(address, at_ns)
    }

    /// Time of the first mapping of an address after a time.
    #[must_use]
    pub fn next_ns(&self, process_id: u32, address: u64, at_ns: i64) -> Option<i64> {
        Some(self.by_process.get(&process_id)?.find_next(address, at_ns)?.from_ns)
    }

    /// The file of a mapping.
    #[must_use]
    pub fn file(&self, mapping: &Mapping) -> Option<&MappedFile> {
        self.files.get(mapping.file as usize)
    }

    /// Whether a mapping, by its index in [`rows`](Self::rows), is memory not backed by a file.
    #[must_use]
    pub fn is_anonymous(&self, mapping: u32) -> bool {
        let file = self.rows.get(mapping as usize).and_then(|row| self.file(row));
        file.is_some_and(MappedFile::is_anonymous)
    }

    /// Whether a mapping, by its index in [`rows`](Self::rows), is memory that a process shares with those that it forks.
    #[must_use]
    pub fn is_shared(&self, mapping: u32) -> bool {
        let file = self.rows.get(mapping as usize).and_then(|row| self.file(row));
        file.is_some_and(MappedFile::is_shared)
    }
}

/// Adds a mapping: the parts of older ones that it covers end, their other parts continue.
fn replace_range(live: &mut Live, done: &mut Vec<Interval>, new: Interval) {
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
    fn a_mapping_in_the_middle_splits_the_old_one() {
        let mut table = mappings::Builder::new();
        table.push(0, Some(0), Some(0), 100, 200, 0, "/a", None, true, 0, 0);
        table.push(1, Some(0), Some(10), 140, 160, 0, "/b", None, true, 0, 0);
        let all = Mappings::new(&[table.finish()]).unwrap();
        let path = |address, at| {
            let row = &all.rows[all.find(0, address, at)?.id as usize];
            Some(all.file(row)?.path.as_str())
        };
        assert_eq!(path(150, 5), Some("/a"));
        assert_eq!(path(150, 10), Some("/b"));
        assert_eq!((path(139, 20), path(160, 20)), (Some("/a"), Some("/a")));
        assert_eq!(path(200, 20), None);
    }
}
