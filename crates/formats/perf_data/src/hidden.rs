//! Which of a recording's own mappings would hide JIT code that is added to it.

use rustc_hash::FxHashMap;

use super::reader::{File, RawRecord};
use super::records::Mapping;
use super::writer::InjectedMmap;

/// Where each process has added code, and since when.
pub struct Hidden {
    ranges: FxHashMap<i32, Vec<Range>>,
}

#[derive(Clone, Copy, Debug)]
struct Range {
    start: u64,
    end: u64,
    since: u64,
}

impl Hidden {
    /// Joins the added mappings of each process into ranges that do not touch.
    pub fn new(mmaps: &[InjectedMmap]) -> Self {
        let mut ranges: FxHashMap<i32, Vec<Range>> = FxHashMap::default();
        for mmap in mmaps {
            let end = mmap.start_address.saturating_add(mmap.size);
            ranges.entry(mmap.pid).or_default().push(Range {
                start: mmap.start_address,
                end,
                since: mmap.ts_ns,
            });
        }
        for list in ranges.values_mut() {
            list.sort_unstable_by_key(|range| range.start);
            list.dedup_by(|next, range| {
                let joined = next.start <= range.end;
                if joined {
                    range.end = range.end.max(next.end);
                    range.since = range.since.min(next.since);
                }
                joined
            });
        }
        Self { ranges }
    }

    /// Whether a record must go.
    ///
    /// perf lets the latest mapping of an address win. A runtime that changes the protection of its code area, or maps more
    /// of it, makes the kernel tell of anonymous memory right over code that was added earlier; perf inject drops all such
    /// mappings of a process that has a dump, this only those that overlap added code. Mappings of real files stay: there
    /// the code is gone. The marker mapping of the dump itself goes too, or perf inject would take the result for a
    /// recording that it has not seen yet.
    pub fn drops(&self, file: &File, record: &RawRecord<'_>, time: u64) -> bool {
        let Some(mapping) = Mapping::read(file, record) else { return false };
        let Some(ranges) = self.ranges.get(&mapping.pid) else { return false };
        if is_marker(mapping.path) {
            return true;
        }
        let end = mapping.start_address.saturating_add(mapping.size);
        let after = ranges.partition_point(|range| range.end <= mapping.start_address);
        is_anonymous(mapping.path)
            && ranges
                .iter()
                .skip(after)
                .take_while(|range| range.start < end)
                .any(|range| range.since <= time)
    }
}

/// Whether that is a JITDUMP file, by the name every runtime gives it.
pub fn is_marker(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    name.starts_with(b"jit-") && name.ends_with(b".dump")
}

fn is_anonymous(path: &[u8]) -> bool {
    [&b"//anon"[..], b"[anon:", b"/memfd:", b"/dev/zero", b"/anon_hugepage"]
        .iter()
        .any(|name| path.starts_with(name))
}
