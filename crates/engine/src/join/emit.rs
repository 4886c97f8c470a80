//! Step 4 of the join: the tables.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{RecordBatch, UInt32Array};
use perfuse_tables::access::{ColumnError, text};
use perfuse_tables::{Offsets, frames, functions, modules, samples, stacks};

use super::locate::{LocatedSamples, Location};
use super::resolve::{DEFERRED, DEFERRED_MODULE, FrameFunction, NO_MODULE, Resolution, ResolvedFrame};
use super::same_names::{NativeName, SameNames};
use crate::NONE;
use crate::address_spaces::Region;
use crate::mappings::Mappings;

/// Tables that the join makes.
#[derive(Debug)]
pub struct JoinedTables {
    /// Table `frames`.
    pub frames: RecordBatch,
    /// Table `stacks`.
    pub stacks: RecordBatch,
    /// Table `samples`.
    pub samples: Vec<RecordBatch>,
    /// Rows of table `functions` for native code and perf maps.
    pub functions: RecordBatch,
    /// Rows of table `modules` for native code.
    pub modules: RecordBatch,
    /// Innermost frame of each address in the columns of [`AddressColumn`](super::AddressColumn); [`NO_FRAME`] where there is none.
    pub points: Vec<Vec<u32>>,
}

/// Stands for "no frame".
pub const NO_FRAME: u32 = u32::MAX;

/// Writes the tables. `first` are the first free keys of functions, modules, frames and stacks.
///
/// # Errors
/// When a batch is not of table `callchains`.
pub fn emit(
    located: &LocatedSamples,
    resolution: &Resolution,
    mappings: &Mappings,
    first: Offsets,
) -> Result<JoinedTables, ColumnError> {
    let same_names = SameNames::of(resolution.frames.iter().flatten());
    let mut native_keys = NativeKeys::new(mappings, same_names, first);
    let (frames, frame_ranges) = frames_table(located, resolution, mappings, &mut native_keys);
    let (stacks, tops) = stacks_table(located, &frame_ranges, first);
    let samples = located.samples.iter().map(|(batch, nodes)| samples_table(batch, nodes, &tops));
    let frame_of = |&location: &u32| {
        let (start, end) = frame_ranges.get(location as usize).copied().unwrap_or_default();
        if end > start { end.wrapping_sub(1) } else { NO_FRAME }
    };
    let points = located.points.iter().map(|column| column.iter().map(frame_of).collect()).collect();
    Ok(JoinedTables {
        frames,
        stacks,
        samples: samples.collect::<Result<_, _>>()?,
        functions: native_keys.functions.finish(),
        modules: native_keys.modules.finish(),
        points,
    })
}

/// Keys of native functions and modules, each given at its first occurrence.
struct NativeKeys<'a> {
    mappings: &'a Mappings,
    same_names: SameNames<'a>,
    first: Offsets,
    functions: functions::Builder,
    modules: modules::Builder,
    function_ids: HashMap<(NativeName<'a>, u32), u32>,
    module_ids: HashMap<u32, u32>,
}

impl<'a> NativeKeys<'a> {
    fn new(mappings: &'a Mappings, same_names: SameNames<'a>, first: Offsets) -> Self {
        Self {
            mappings,
            same_names,
            first,
            functions: functions::Builder::new(),
            modules: modules::Builder::new(),
            function_ids: HashMap::new(),
            module_ids: HashMap::new(),
        }
    }

    fn function(&mut self, frame: &'a ResolvedFrame, is_kernel: bool) -> Option<u32> {
        let FrameFunction::Native { module, linkage_name, name, symbol_address, path, line, .. } =
            &frame.function
        else {
            return None;
        };
        let own = self.same_names.find(frame);
        let key = ((*module, &**linkage_name, &**name, *line), own.number);
        if let Some(known) = self.function_ids.get(&key) {
            return Some(*known);
        }
        let module_id = self.module(*module, is_kernel);
        let id = self.first.function.wrapping_add(self.functions.len() as u32);
        let path = path.as_deref().or(own.path.as_deref());
        self.functions.push(id, *symbol_address, name, linkage_name, Some(module_id), path, *line, None);
        self.function_ids.insert(key, id);
        Some(id)
    }

    fn module(&mut self, module: u32, is_kernel: bool) -> u32 {
        if let Some(known) = self.module_ids.get(&module) {
            return *known;
        }
        let id = self.first.module.wrapping_add(self.modules.len() as u32);
        match self.mappings.files.get(module as usize).filter(|_| module != NO_MODULE) {
            Some(m) => {
                let kind = if is_kernel { "kernel" } else { "native" };
                self.modules.push(id, &m.path, kind, m.build_id.as_deref());
            }
            None if module == DEFERRED_MODULE => self.modules.push(id, DEFERRED, "native", None),
            None => self.modules.push(id, "[perf map]", "jit", None),
        }
        self.module_ids.insert(module, id);
        id
    }
}

/// Table `frames`, and the range of keys of each location's frames.
fn frames_table<'a>(
    located: &LocatedSamples,
    resolution: &'a Resolution,
    mappings: &'a Mappings,
    native_keys: &mut NativeKeys<'a>,
) -> (RecordBatch, Vec<(u32, u32)>) {
    let mut table = frames::Builder::new();
    let mut ranges = Vec::with_capacity(located.locations.len());
    for (location, all) in located.locations.iter().zip(&resolution.frames) {
        let first = native_keys.first.frame.wrapping_add(table.len() as u32);
        let is_kernel = location.is_kernel() && location.region != Region::Deferred;
        let (code_object_id, mapping_id) = match location.region {
            Region::Jit { code_object_id, .. } => (Some(code_object_id), None),
            Region::Mapped { mapping } | Region::Anonymous { mapping, .. } => {
                (None, mappings.rows.get(mapping as usize).map(|row| row.mapping_id))
            }
            Region::Kernel | Region::Unmapped { .. } | Region::Deferred => (None, None),
        };
        for (frame, depth) in all.iter().zip(0u32..) {
            let (function_id, unnamed_because) = match &frame.function {
                FrameFunction::Existing(id) => (Some(*id), None),
                FrameFunction::Native { .. } => (native_keys.function(frame, is_kernel), None),
                FrameFunction::Unnamed(unnamed_because) => (None, Some(unnamed_because.as_str())),
            };
            table.push(
                native_keys.first.frame.wrapping_add(table.len() as u32),
                function_id,
                code_object_id,
                mapping_id,
                Some(location.address).filter(|_| location.region != Region::Deferred),
                frame.relative_address,
                frame.position.path.as_deref(),
                frame.position.line,
                frame.position.column,
                depth,
                kind(location, function_id.is_some()),
                location.origin.name(),
                unnamed_because,
            );
        }
        ranges.push((first, native_keys.first.frame.wrapping_add(table.len() as u32)));
    }
    (table.finish(), ranges)
}

/// Value of column `frames.kind`.
fn kind(location: &Location, named: bool) -> &'static str {
    match location.region {
        Region::Jit { .. } => "jit",
        Region::Mapped { .. } if location.is_kernel() => "kernel",
        Region::Mapped { .. } => "native",
        Region::Kernel => "kernel",
        Region::Anonymous { .. } | Region::Unmapped { .. } if named => "jit",
        Region::Anonymous { .. } | Region::Unmapped { .. } | Region::Deferred => "unknown",
    }
}

/// Table `stacks`, and the stack of each node. A node becomes as many stacks as its location has frames; the innermost one
/// is the node's own.
fn stacks_table(
    located: &LocatedSamples,
    frame_ranges: &[(u32, u32)],
    keys: Offsets,
) -> (RecordBatch, Vec<u32>) {
    let mut table = stacks::Builder::new();
    let mut stacks: Vec<(Option<u32>, u32)> = Vec::with_capacity(located.nodes.len());
    for &(parent, location) in &located.nodes {
        let (mut top, mut depth) = match parent {
            NONE => (None, 0),
            parent => stacks.get(parent as usize).copied().unwrap_or_default(),
        };
        let (first, end) = frame_ranges.get(location as usize).copied().unwrap_or_default();
        for frame in first..end {
            let id = keys.stack.wrapping_add(table.len() as u32);
            table.push(id, top, frame, depth);
            top = Some(id);
            depth = depth.wrapping_add(1);
        }
        stacks.push((top, depth));
    }
    (table.finish(), stacks.into_iter().map(|(top, _)| top.unwrap_or(NONE)).collect())
}

/// Unit of the weights of an event's samples.
fn unit(event: &str) -> &'static str {
    // Times off the processor, as a BPF program or context switches have them, are in nanoseconds too.
    if event.contains("clock") || matches!(event, "offcpu-time" | "off-cpu") { "ns" } else { "events" }
}

/// The rows of `samples` for those of a batch of `callchains`, whose columns they share.
fn samples_table(batch: &RecordBatch, nodes: &[u32], tops: &[u32]) -> Result<RecordBatch, ColumnError> {
    let shared = |column| batch.column_by_name(column).cloned().ok_or(ColumnError { column });
    let stack = |&node| tops.get(node as usize).copied().filter(|&top| top != NONE);
    let stacks: UInt32Array = nodes.iter().map(stack).collect();
    Ok(samples::batch(vec![
        shared("sample_id")?,
        shared("ts_ns")?,
        shared("thread_id")?,
        shared("cpu")?,
        Arc::new(stacks),
        shared("period")?,
        Arc::new(text(batch, "event")?.map(unit)),
        shared("event")?,
        shared("source_id")?,
        shared("record_offset")?,
    ]))
}
