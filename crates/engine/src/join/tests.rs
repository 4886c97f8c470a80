//! Joins of hand-built tables whose answers follow from how they are built.

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use perfuse_binaries::symbolize::{Options, Symbolizer};
use perfuse_tables::access::text;
use perfuse_tables::{Offsets, callchains, code_moves, code_objects, inline_calls, line_rows, mappings};

use super::*;
use crate::address_spaces::{AddressSpaces, Region};
use crate::code_map;
use crate::forks::AddressSpaceStarts;
use crate::mappings::Mappings;
use crate::unwind::Chains;

const KERNEL: u64 = (-128i64) as u64;
const USER: u64 = (-512i64) as u64;

#[derive(Default)]
struct Recorded {
    code: code_objects::Builder,
    moves: code_moves::Builder,
    mapped: mappings::Builder,
    chains: callchains::Builder,
    lines: line_rows::Builder,
    inlines: inline_calls::Builder,
    num_samples: u64,
}

impl Recorded {
    /// JIT code of process 1 from one time to another; its function's key is its own plus 100.
    fn code(mut self, id: u32, start: u64, size: u64, from_ns: i64, until_ns: Option<i64>) -> Self {
        self.code.push(id, id + 100, 1, None, "jit", None, from_ns, until_ns, start, size, None, 0, 0, 0);
        self
    }

    fn moved(mut self, id: u32, at_ns: i64, old: u64, new: u64) -> Self {
        self.moves.push(id, at_ns, old, new, 0, 0);
        self
    }

    fn mapping(mut self, id: u32, from_ns: i64, start: u64, end: u64, path: &str) -> Self {
        self.mapped.push(id, Some(1), Some(from_ns), start, end, 0, path, None, true, 0, 0);
        self
    }

    /// A sample of process 1 and thread 9, innermost address first.
    fn sample(mut self, at_ns: i64, addresses: &[u64]) -> Self {
        self.chains.push(self.num_samples, at_ns, 1, 9, None, 1, "cycles", addresses, None, 0, 0);
        self.num_samples += 1;
        self
    }

    fn join(mut self, first: Offsets) -> Joined {
        let (code, moves) = (vec![self.code.finish()], vec![self.moves.finish()]);
        let codes = code_map::of_tables(&code, &moves).unwrap();
        let mapped = Mappings::new(&[self.mapped.finish()]).unwrap();
        let starts = AddressSpaceStarts::default();
        let spaces = AddressSpaces { codes: &codes, mappings: &mapped, starts: &starts };
        let chains = Ok(Chains::from(self.chains.finish()));
        let located = locate([chains].into_iter(), Vec::new(), spaces).unwrap();
        let lines = CodeLines::new(vec![self.lines.finish()], vec![self.inlines.finish()]).unwrap();
        let symbolizer = Symbolizer::new(Options::default());
        let perf_maps = PerfMaps::new(
            PerfMapDirs::default(),
            [],
            Default::default(),
            Box::new(|_, _| MapFunction::default()),
        );
        let native = NativeNames {
            symbolizer: &symbolizer,
            perf_maps: &perf_maps,
            recorded: &RecordedNames::default(),
            starts: &starts,
        };
        let functions = CodeFunctions::new(&code).unwrap();
        let resolution = resolve(&located, &mapped, &functions, &lines, &native).unwrap();
        Joined { tables: emit(&located, &resolution, &mapped, first).unwrap(), located }
    }
}

struct Joined {
    located: LocatedSamples,
    tables: JoinedTables,
}

fn keys(batch: &RecordBatch, column: &str) -> Vec<Option<u32>> {
    batch.column_by_name(column).unwrap().as_primitive::<UInt32Type>().iter().collect()
}

impl Joined {
    /// Rows of `frames` of each sample, innermost first.
    fn frames(&self) -> Vec<Vec<usize>> {
        let stacks = &self.tables.stacks;
        let (stack_ids, parents) = (keys(stacks, "stack_id"), keys(stacks, "parent_stack_id"));
        let (of, frame_ids) = (keys(stacks, "frame_id"), keys(&self.tables.frames, "frame_id"));
        let row = |ids: &[Option<u32>], id: u32| ids.iter().position(|known| *known == Some(id)).unwrap();
        let samples = self.tables.samples.iter().flat_map(|batch| keys(batch, "stack_id"));
        let frames = |mut stack: Option<u32>| {
            let mut rows = Vec::new();
            while let Some(id) = stack {
                let at = row(&stack_ids, id);
                rows.push(row(&frame_ids, of[at].unwrap()));
                stack = parents[at];
            }
            rows
        };
        samples.map(frames).collect()
    }

    /// Keys of functions of each sample, innermost first.
    fn functions(&self) -> Vec<Vec<Option<u32>>> {
        let functions = keys(&self.tables.frames, "function_id");
        self.frames().into_iter().map(|rows| rows.into_iter().map(|row| functions[row]).collect()).collect()
    }

    fn column(&self, column: &'static str) -> Vec<Option<String>> {
        let texts = text(&self.tables.frames, column).unwrap();
        (0..self.tables.frames.num_rows()).map(|row| texts.get(row).map(str::to_owned)).collect()
    }
}

#[test]
fn a_reused_address_is_the_code_of_the_time() {
    let joined = Recorded::default()
        .code(0, 0x1000, 0x100, 10, Some(20))
        .code(1, 0x1000, 0x100, 20, None)
        .sample(15, &[USER, 0x1010])
        .sample(20, &[USER, 0x1010])
        .sample(5, &[USER, 0x1010])
        .join(Offsets::default());
    assert_eq!(joined.functions(), [[Some(100)], [Some(101)], [None]]);
    assert_eq!(joined.located.code_objects, [0, 1]);
}

#[test]
fn moved_code_is_found_at_its_new_address_only_after_the_move() {
    let joined = Recorded::default()
        .code(3, 0x1000, 0x100, 0, None)
        .moved(3, 50, 0x1000, 0x8000)
        .sample(49, &[USER, 0x1010])
        .sample(49, &[USER, 0x8010])
        .sample(50, &[USER, 0x1010])
        .sample(50, &[USER, 0x8010])
        .join(Offsets::default());
    assert_eq!(joined.functions(), [[Some(103)], [None], [None], [Some(103)]]);
    let code_offset = |location: &Location| match location.region {
        Region::Jit { code_offset, .. } => Some(code_offset),
        _ => None,
    };
    let offsets: Vec<_> = joined.located.locations.iter().map(code_offset).collect();
    assert_eq!(offsets, [Some(0x10), None, None, Some(0x10)]);
}

/// A call in the last instruction returns to the address after the code; the frame is of the code all the same.
#[test]
fn a_return_address_after_the_end_of_code_belongs_to_the_call() {
    let joined = Recorded::default()
        .code(0, 0x1000, 0x100, 0, None)
        .code(1, 0x1100, 0x100, 0, None)
        .sample(1, &[USER, 0x1150, 0x1100])
        .sample(1, &[USER, 0x1100])
        .join(Offsets::default());
    assert_eq!(joined.functions(), [vec![Some(101), Some(100)], vec![Some(101)]]);
}

#[test]
fn addresses_outside_any_code_keep_a_frame_with_a_reason() {
    let joined = Recorded::default()
        .mapping(4, 0, 0x5000, 0x6000, "//anon")
        .sample(1, &[USER, 0x5010])
        .sample(1, &[USER, 0x9000])
        .sample(1, &[KERNEL, 0xffff_8000_0000_1000])
        .join(Offsets::default());
    assert_eq!(joined.functions(), [[None], [None], [None]]);
    assert_eq!(keys(&joined.tables.frames, "mapping_id"), [Some(4), None, None]);
    let kinds = joined.column("kind");
    assert_eq!(kinds.iter().flatten().collect::<Vec<_>>(), ["unknown", "unknown", "kernel"]);
    assert!(joined.column("unnamed_because").iter().all(Option::is_some));
}

/// A file mapped over JIT code replaces it; code made later in memory of that mapping is the code.
#[test]
fn the_latest_of_code_and_mapped_file_wins() {
    let region = |code_ns, file_ns, at_ns| {
        let mut code = code_objects::Builder::new();
        code.push(0, 100, 1, None, "jit", None, code_ns, None, 0x1000, 0x100, None, 0, 0, 0);
        let mut mapped = mappings::Builder::new();
        mapped.push(0, Some(1), Some(file_ns), 0x1000, 0x2000, 0, "/lib.so", None, true, 0, 0);
        let codes = code_map::of_tables(&[code.finish()], &[]).unwrap();
        let mapped = Mappings::new(&[mapped.finish()]).unwrap();
        let starts = AddressSpaceStarts::default();
        AddressSpaces { codes: &codes, mappings: &mapped, starts: &starts }.find_user(1, 0x1010, at_ns)
    };
    let jit = Region::Jit { code_object_id: 0, code_offset: 0x10 };
    assert_eq!(region(10, 20, 15), (jit, 10, 20), "the file is not there yet");
    assert_eq!(region(10, 20, 25).0, Region::Mapped { mapping: 0 });
    assert_eq!(region(20, 10, 25), (jit, 20, i64::MAX));
    assert_eq!(region(20, 10, 15).0, Region::Mapped { mapping: 0 });
}

#[test]
fn inlined_calls_become_frames_with_the_positions_of_their_calls() {
    let mut recorded = Recorded::default().code(0, 0x1000, 0x100, 0, None).sample(1, &[USER, 0x1020]);
    for (offset, line) in [(0, 10), (0x20, 20), (0x30, 30)] {
        recorded.lines.push(0, offset, "a.js", line, None, None, 0, 0);
    }
    // Function 7 is inlined at [0x10, 0x40) by a call at line 12, and in it function 8 by a call at line 73.
    recorded.inlines.push(0, 0x10, 0x30, 0, 7, Some("a.js"), Some(12), None, 0, 0);
    recorded.inlines.push(0, 0x18, 0x10, 1, 8, Some("b.js"), Some(73), None, 0, 0);
    let joined = recorded.join(Offsets::default());
    assert_eq!(joined.functions(), [[Some(8), Some(7), Some(100)]]);
    let lines = keys(&joined.tables.frames, "line");
    let lines: Vec<_> = joined.frames()[0].iter().map(|&row| lines[row]).collect();
    assert_eq!(lines, [Some(20), Some(73), Some(12)]);
}

#[test]
fn equal_chains_share_a_stack_and_common_callers_share_one() {
    let joined = Recorded::default()
        .code(0, 0x1000, 0x1000, 0, None)
        .sample(1, &[USER, 0x1010, 0x1100, 0x1200])
        .sample(2, &[USER, 0x1010, 0x1100, 0x1200])
        .sample(3, &[USER, 0x1020, 0x1100, 0x1200])
        .join(Offsets::default());
    let stacks = keys(&joined.tables.samples[0], "stack_id");
    assert_eq!(stacks[0], stacks[1]);
    assert_ne!(stacks[0], stacks[2]);
    assert_eq!(joined.tables.stacks.num_rows(), 4, "two callers and two leaves");
}

#[test]
fn keys_start_at_the_first_free_ones_and_samples_keep_their_own() {
    let first = Offsets { frame: 1000, stack: 2000, function: 300, module: 40, ..Offsets::default() };
    let joined = Recorded::default()
        .code(0, 0x1000, 0x100, 0, None)
        .sample(1, &[USER, 0x1010])
        .sample(2, &[USER, 0x1020])
        .join(first);
    assert_eq!(keys(&joined.tables.frames, "frame_id"), [Some(1000), Some(1001)]);
    assert_eq!(keys(&joined.tables.stacks, "stack_id"), [Some(2000), Some(2001)]);
    let samples = &joined.tables.samples[0];
    let ids = samples.column_by_name("sample_id").unwrap().as_primitive::<UInt64Type>();
    assert_eq!(ids.values().to_vec(), [0, 1]);
    assert_eq!(keys(samples, "stack_id"), [Some(2000), Some(2001)]);
}

/// The kernel's addresses are one address space for all processes, and a chain may pass from user to kernel.
#[test]
fn markers_separate_the_kernel_from_the_process() {
    let joined = Recorded::default()
        .code(0, 0x1000, 0x100, 0, None)
        .sample(1, &[KERNEL, 0xffff_8000_0000_1000, 0xffff_8000_0000_2000, USER, 0x1010, 0x1020])
        .join(Offsets::default());
    let of = |location: &Location| (location.process_id, location.is_return, location.is_kernel());
    let found: Vec<_> = joined.located.locations.iter().map(of).collect();
    assert_eq!(found, [(0, false, true), (0, true, true), (1, false, false), (1, true, false)]);
}
