//! Rows of table `memory_accesses`: the data that sampled instructions accessed, and where it came from.

use linux_perf_event_reader::constants as abi;
use perfuse_tables::memory_accesses;

use super::attribute::EventAttribute;
use super::bit_fields;
use super::sample::SampleRecord;
use super::sample_rows::{SampleRow, SampleRows};

/// Where the data of an access came from: the bits of `data_src`, taken apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataSource {
    /// `load`, `store`, `prefetch` or `execute`; `None` where not recorded.
    pub operation: Option<&'static str>,
    /// Level of the memory hierarchy; `None` where not recorded.
    pub level: Option<&'static str>,
    /// Whether the access hit that level; `None` where not recorded.
    pub level_hit: Option<bool>,
    /// Whether that level is of another processor or node.
    pub remote: bool,
    /// How far away it is; `None` where not recorded.
    pub hops: Option<&'static str>,
    /// Answer of other caches; `None` where not recorded.
    pub snoop: Option<&'static str>,
    /// Whether the instruction was locked; `None` where not recorded.
    pub locked: Option<bool>,
    /// Level of the TLB; `None` where not recorded.
    pub tlb: Option<&'static str>,
    /// Whether the access hit it; `None` where not recorded.
    pub tlb_hit: Option<bool>,
    /// Why the access was blocked; `None` where it was not, or this was not recorded.
    pub blocked: Option<&'static str>,
    /// Region of the memory; `None` where not recorded.
    pub region: Option<&'static str>,
}

/// The first name whose bit is set.
fn first_set(bits: u64, names: &[(u64, &'static str)]) -> Option<&'static str> {
    names.iter().find(|(bit, _)| bits & bit != 0).map(|(_, name)| *name)
}

/// The name with a number; `None` for numbers without a name.
fn numbered(number: u64, names: &[&'static str]) -> Option<&'static str> {
    let name = usize::try_from(number).ok().and_then(|number| names.get(number).copied());
    name.filter(|name| !name.is_empty())
}

/// Levels of `mem_lvl_num`, by number.
const LEVELS: [&str; 16] = [
    "",
    "L1",
    "L2",
    "L3",
    "L4",
    "L2 MHB",
    "MSC",
    "L0",
    "uncached",
    "CXL",
    "IO",
    "any cache",
    "LFB",
    "RAM",
    "PMEM",
    "",
];
/// Levels of the older field `mem_lvl`, by bit.
const OLD_LEVELS: [(u64, &str); 11] = [
    (0x8, "L1"),
    (0x10, "LFB"),
    (0x20, "L2"),
    (0x40, "L3"),
    (0x80, "RAM"),
    (0x100, "RAM"),
    (0x200, "RAM"),
    (0x400, "any cache"),
    (0x800, "any cache"),
    (0x1000, "IO"),
    (0x2000, "uncached"),
];
/// Bits of `mem_lvl` for levels of another processor or node.
const OLD_REMOTE: u64 = 0x100 | 0x200 | 0x400 | 0x800;
/// Distances of `mem_hops`, by number.
const HOPS: [&str; 5] = ["", "core", "node", "socket", "board"];
/// Regions of `mem_region`, by number.
const REGIONS: [&str; 16] = [
    "",
    "",
    "local_share",
    "local_non_share",
    "remote_share",
    "remote_non_share",
    "other",
    "MMIO",
    "MEM0",
    "MEM1",
    "MEM2",
    "MEM3",
    "MEM4",
    "MEM5",
    "MEM6",
    "MEM7",
];

impl From<u64> for DataSource {
    fn from(word: u64) -> Self {
        let bits = |first: u32, num: u32| word.wrapping_shr(first) & (1u64.wrapping_shl(num).wrapping_sub(1));
        let (op, old_level, snoop, lock) = (bits(0, 5), bits(5, 14), bits(19, 5), bits(24, 2));
        let (tlb, snoopx, blocked) = (bits(26, 7), bits(38, 2), bits(40, 3));
        let hit = |bits: u64, hit: u64, miss: u64| match bits {
            bits if bits & hit != 0 => Some(true),
            bits if bits & miss != 0 => Some(false),
            _ => None,
        };
        Self {
            operation: first_set(op, &[(2, "load"), (4, "store"), (8, "prefetch"), (16, "execute")]),
            level: numbered(bits(33, 4), &LEVELS).or_else(|| first_set(old_level, &OLD_LEVELS)),
            level_hit: hit(old_level, 2, 4),
            remote: bits(37, 1) != 0 || old_level & OLD_REMOTE != 0,
            hops: numbered(bits(43, 3), &HOPS),
            snoop: first_set(snoopx, &[(1, "forwarded"), (2, "peer")])
                .or_else(|| first_set(snoop, &[(16, "hit_modified"), (4, "hit"), (8, "miss"), (2, "none")])),
            locked: match lock {
                lock if lock & 2 != 0 => Some(true),
                lock if lock & 1 != 0 => None,
                _ => Some(false),
            },
            tlb: first_set(tlb, &[(8, "L1"), (16, "L2"), (32, "walker"), (64, "OS")]),
            tlb_hit: hit(tlb, 2, 4),
            blocked: first_set(blocked, &[(2, "data"), (4, "address")]),
            region: numbered(bits(46, 5), &REGIONS),
        }
    }
}

impl DataSource {
    /// The source of a word in the byte order of the file.
    #[must_use]
    pub fn of_machine(word: u64, big_endian: bool) -> Self {
        const WIDTHS: [u32; 12] = [5, 14, 5, 2, 7, 4, 1, 2, 3, 3, 5, 13];
        Self::from(bit_fields::from_bottom(word, &WIDTHS, big_endian))
    }
}

/// Whether samples of an event may state what they accessed.
#[must_use]
pub fn has_accesses(attribute: &EventAttribute) -> bool {
    let EventAttribute { fields, layout, .. } = attribute;
    // perf asks for addresses and their sources with every copy of a stack; clocks have none.
    let is_clock = fields.type_ == abi::PERF_TYPE_SOFTWARE && CLOCKS.contains(&fields.config);
    !is_clock && (layout.has(abi::PERF_SAMPLE_DATA_SRC) || layout.has(abi::PERF_SAMPLE_ADDR))
}

/// `PERF_COUNT_SW_CPU_CLOCK` and `PERF_COUNT_SW_TASK_CLOCK`.
const CLOCKS: [u64; 2] = [0, 1];

/// Makes rows of table `memory_accesses`.
#[derive(Debug)]
pub struct MemoryRows {
    table: memory_accesses::Builder,
    big_endian: bool,
}

impl MemoryRows {
    /// Rows of a file with that byte order.
    #[must_use]
    pub fn new(big_endian: bool) -> Self {
        Self { table: memory_accesses::Builder::new(), big_endian }
    }
}

impl SampleRows for MemoryRows {
    fn push(&mut self, row: &SampleRow<'_>, sample: &SampleRecord<'_>) {
        let address = sample.head.addr.filter(|&address| address != 0);
        let source = sample.data_src.map(|word| DataSource::of_machine(word, self.big_endian));
        let is_access = source.is_some_and(|source| source.operation.is_some());
        if address.is_none() && !is_access {
            return;
        }
        let source = source.unwrap_or_default();
        let [latency, instruction, retire] = sample.weight_parts(&row.attribute.layout);
        self.table.push(
            row.sample_id,
            row.ts_ns,
            row.process_id,
            address,
            None,
            sample.phys_addr.filter(|&address| address != 0),
            source.operation,
            source.level,
            source.level_hit,
            source.remote,
            source.hops,
            source.snoop,
            source.locked,
            source.tlb,
            source.tlb_hit,
            source.blocked,
            source.region,
            latency.filter(|&latency| latency != 0),
            instruction,
            retire,
            sample.data_page_size.filter(|&size| size != 0),
            row.source_id,
            row.record_offset,
        );
    }

    fn len(&self) -> usize {
        self.table.len()
    }

    fn finish(&mut self) -> arrow_array::RecordBatch {
        self.table.finish()
    }
}
