//! Rows of table `branches`: the branches that the processor recorded with each sample.

use linux_perf_data::Feature;
use perfuse_tables::branches;

use super::bit_fields;
use super::perf_file::PerfFile;
use super::sample::SampleRecord;
use super::sample_rows::{SampleRow, SampleRows};

/// `PERF_BR_EXTEND_ABI`: the kind of the branch is in further bits.
const EXTENDED: u64 = 15;
/// Kinds of branches, by number; 0 is unknown.
const KINDS: [&str; 15] = [
    "",
    "conditional",
    "unconditional",
    "indirect",
    "call",
    "indirect_call",
    "return",
    "syscall",
    "syscall_return",
    "conditional_call",
    "conditional_return",
    "exception_return",
    "interrupt",
    "system_error",
    "no_transaction",
];
/// Further kinds, by number.
const EXTENDED_KINDS: [&str; 8] =
    ["alignment_fault", "data_fault", "instruction_fault", "arch_1", "arch_2", "arch_3", "arch_4", "arch_5"];
/// Outcomes of speculation, by number; 0 is unknown.
const SPECULATION: [&str; 4] = ["", "wrong_path", "correct_path_not_speculated", "correct_path"];
/// Privilege levels of the target, by number; 0 is unknown.
const PRIVILEGE: [&str; 4] = ["", "user", "kernel", "hypervisor"];

/// The flags of a branch, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchFlags {
    /// Kind of instruction; `None` where not recorded.
    pub kind: Option<&'static str>,
    /// Whether it was predicted wrongly; `None` where not recorded.
    pub mispredicted: Option<bool>,
    /// Whether it was in a transaction.
    pub in_transaction: bool,
    /// Whether it aborted a transaction.
    pub aborted: bool,
    /// Processor cycles since the previous branch; `None` where not recorded.
    pub cycles: Option<u32>,
    /// Outcome of speculation; `None` where not recorded.
    pub speculation: Option<&'static str>,
    /// Privilege level of the target; `None` where not recorded.
    pub privilege: Option<&'static str>,
}

impl From<u64> for BranchFlags {
    fn from(word: u64) -> Self {
        let bits = |first: u32, num: u32| word.wrapping_shr(first) & (1u64.wrapping_shl(num).wrapping_sub(1));
        let named = |names: &[&'static str], number: u64| {
            let name = usize::try_from(number).ok().and_then(|number| names.get(number).copied());
            name.filter(|name| !name.is_empty())
        };
        Self {
            kind: match bits(20, 4) {
                EXTENDED => named(&EXTENDED_KINDS, bits(26, 4)),
                number => named(&KINDS, number),
            },
            mispredicted: match bits(0, 2) {
                0 => None,
                number => Some(number & 1 != 0),
            },
            in_transaction: bits(2, 1) != 0,
            aborted: bits(3, 1) != 0,
            cycles: u32::try_from(bits(4, 16)).ok().filter(|&cycles| cycles != 0),
            speculation: named(&SPECULATION, bits(24, 2)),
            privilege: named(&PRIVILEGE, bits(30, 3)),
        }
    }
}

impl BranchFlags {
    /// The flags of a word in the byte order of the file.
    #[must_use]
    pub fn of_machine(word: u64, big_endian: bool) -> Self {
        const WIDTHS: [u32; 10] = [1, 1, 1, 1, 16, 4, 2, 4, 3, 31];
        Self::from(bit_fields::from_bottom(word, &WIDTHS, big_endian))
    }
}

/// Counters in the word of counters of a branch.
#[derive(Clone, Copy, Debug)]
struct CounterWidth {
    num: u32,
    bits: u32,
}

impl CounterWidth {
    /// From the capabilities of the PMU; the whole word is one counter where they are not recorded.
    fn of(file: &PerfFile) -> Self {
        let value = |name: &str| {
            let features = [Feature::CPU_PMU_CAPS, Feature::HYBRID_CPU_PMU_CAPS];
            let caps = features.into_iter().find_map(|feature| {
                super::feature_values::capability(
                    file.features.cursor(feature, &file.source, file.endian)?,
                    name,
                )
            });
            caps.and_then(|text| text.parse::<u32>().ok())
        };
        match (value("branch_counter_nr"), value("branch_counter_width")) {
            (Some(num), Some(bits)) if (1..=64).contains(&bits) && num.saturating_mul(bits) <= 64 => {
                Self { num, bits }
            }
            _ => Self { num: 1, bits: 64 },
        }
    }

    fn split(self, word: u64, out: &mut Vec<u64>) {
        let mask = u64::MAX.wrapping_shr(64u32.saturating_sub(self.bits));
        for number in 0..self.num {
            out.push(word.checked_shr(number.saturating_mul(self.bits)).unwrap_or(0) & mask);
        }
    }
}

/// Makes rows of table `branches`.
pub struct BranchRows {
    table: branches::Builder,
    width: CounterWidth,
    counters: Vec<u64>,
    big_endian: bool,
}

impl BranchRows {
    /// Rows of a file.
    #[must_use]
    pub fn new(file: &PerfFile) -> Self {
        Self {
            table: branches::Builder::new(),
            width: CounterWidth::of(file),
            counters: Vec::new(),
            big_endian: file.endian == perfuse_wire::Endian::Big,
        }
    }
}

impl SampleRows for BranchRows {
    fn push(&mut self, row: &SampleRow<'_>, sample: &SampleRecord<'_>) {
        let Some(stack) = sample.branch_stack else { return };
        let mut words = stack.iter();
        let mut counters = sample.branch_counters.map(|words| words.iter());
        let mut position = 0u32;
        while let (Some(from), Some(to), Some(flags)) = (words.next(), words.next(), words.next()) {
            let flags = BranchFlags::of_machine(flags, self.big_endian);
            self.counters.clear();
            if let Some(word) = counters.as_mut().and_then(Iterator::next) {
                self.width.split(word, &mut self.counters);
            }
            self.table.push(
                row.sample_id,
                position,
                row.ts_ns,
                row.process_id,
                from,
                to,
                None,
                None,
                flags.kind,
                flags.mispredicted,
                flags.in_transaction,
                flags.aborted,
                flags.cycles,
                flags.speculation,
                flags.privilege,
                &self.counters,
                sample.branch_hw_index.filter(|&index| index != u64::MAX),
                row.source_id,
                row.record_offset,
            );
            position = position.saturating_add(1);
        }
    }

    fn len(&self) -> usize {
        self.table.len()
    }

    fn finish(&mut self) -> arrow_array::RecordBatch {
        self.table.finish()
    }
}
