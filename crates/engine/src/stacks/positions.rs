//! Samples by position in selected code.

use std::collections::BTreeMap;

use arrow_array::{RecordBatch, UInt64Array};
use rustc_hash::{FxHashMap, FxHashSet};

use super::columns::{Keys, Texts, column, numbers, text};
use super::{CallTreeOptions, StackError, StackTables, samples};
use crate::NONE;

/// Code whose samples are counted.
#[derive(Clone, Debug, Default)]
pub struct SelectedCode {
    /// Keys of code objects.
    pub code_objects: Vec<u32>,
    /// Native code: a mapping, and first and last address (not included) relative to its file.
    pub ranges: Vec<(u32, u64, u64)>,
    /// Sorted addresses, relative to the file or the code object, at which instructions start: positions are those of
    /// instructions then, and a sample with several addresses of one instruction on its stack counts once. None for addresses as they are.
    pub starts: Vec<u64>,
}

impl SelectedCode {
    /// The start of the instruction that contains an address.
    fn instruction(&self, address: u64) -> u64 {
        let after = self.starts.partition_point(|&start| start <= address);
        after.checked_sub(1).and_then(|at| self.starts.get(at)).copied().unwrap_or(address)
    }
}

/// A position in selected code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodePosition {
    /// The code object; none for native code.
    pub code_object_id: Option<u32>,
    /// Where the code was: the difference of the address and `relative_address`.
    pub base: u64,
    /// Address relative to the file or the code object; for return addresses, of the byte before it.
    pub relative_address: u64,
}

/// Samples at a position. Sums saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PositionSum {
    /// Samples taken there.
    pub self_samples: u64,
    /// Their weight.
    pub self_weight: u64,
    /// Samples with the position anywhere on the stack, each once.
    pub total_samples: u64,
    /// Their weight.
    pub total_weight: u64,
}

/// A function that was called at a position, as stacks have it: `(position, function, code object)`.
pub type Callee = (CodePosition, Option<u32>, Option<u32>);

/// Samples of selected code.
#[derive(Clone, Debug, Default)]
pub struct CodeSamples {
    /// By position.
    pub positions: BTreeMap<CodePosition, PositionSum>,
    /// Samples in functions that were called from a position, each once for a position and a callee.
    pub callees: BTreeMap<Callee, u64>,
    /// Number and weight of the samples with a code object on the stack; none stands for native code.
    pub totals: BTreeMap<Option<u32>, (u64, u64)>,
}

/// Adds up the samples of selected code by position.
///
/// # Errors
/// When a table lacks a column, or a key refers to no row.
pub fn code_samples(
    tables: &StackTables,
    options: &CallTreeOptions,
    code: &SelectedCode,
) -> Result<CodeSamples, StackError> {
    let frames = Frames::of(&tables.frames, code)?;
    let keys = Keys::of(&numbers(&tables.stacks, "stacks", "stack_id")?);
    let sums = samples::add_up(tables, options, &keys)?;
    let stacks = stack_rows(&tables.stacks, &keys, &frames)?;
    let mut out = CodeSamples::default();
    let (mut seen, mut seen_callees, mut seen_code) =
        (FxHashSet::default(), FxHashSet::default(), FxHashSet::default());
    for sum in sums {
        let Some(&leaf) = stacks.get(sum.stack as usize) else { continue };
        if leaf.selected == NONE {
            continue;
        }
        if let Some(position) = frames.positions.get(&leaf.frame) {
            let at = out.positions.entry(*position).or_default();
            at.self_samples = at.self_samples.saturating_add(sum.samples);
            at.self_weight = at.self_weight.saturating_add(sum.weight);
        }
        seen.clear();
        seen_callees.clear();
        seen_code.clear();
        let mut child = NONE;
        let mut row = sum.stack;
        // Each step goes to a parent, whose row is less.
        while let Some(&stack) = stacks.get(row as usize) {
            if let Some(&position) = frames.positions.get(&stack.frame) {
                if seen.insert(position) {
                    let at = out.positions.entry(position).or_default();
                    at.total_samples = at.total_samples.saturating_add(sum.samples);
                    at.total_weight = at.total_weight.saturating_add(sum.weight);
                }
                if seen_code.insert(position.code_object_id) {
                    let total = out.totals.entry(position.code_object_id).or_default();
                    total.0 = total.0.saturating_add(sum.samples);
                    total.1 = total.1.saturating_add(sum.weight);
                }
                if let Some(callee) = frames.callee(child).map(|(function, code)| (position, function, code))
                    && seen_callees.insert(callee)
                {
                    let samples = out.callees.entry(callee).or_default();
                    *samples = samples.saturating_add(sum.samples);
                }
            }
            // Frames without a selected one below them are skipped, except the one that a selected frame called.
            child = stack.frame;
            row = stack.parent;
            if stacks.get(row as usize).is_none_or(|below| below.selected == NONE) {
                break;
            }
        }
    }
    Ok(out)
}

#[derive(Clone, Copy)]
struct Stack {
    parent: u32,
    /// Row of `frames`.
    frame: u32,
    /// The nearest stack down to the root whose frame is in selected code.
    selected: u32,
}

/// The rows of table `stacks`.
fn stack_rows(batches: &[RecordBatch], keys: &Keys, frames: &Frames) -> Result<Vec<Stack>, StackError> {
    let dangling = |column, key| StackError::Reference { table: "stacks", column, key };
    let parents = numbers(batches, "stacks", "parent_stack_id")?;
    let of_stacks = numbers(batches, "stacks", "frame_id")?;
    let mut stacks: Vec<Stack> = Vec::with_capacity(parents.len());
    for (row, (&parent_key, &frame_key)) in parents.iter().zip(&of_stacks).enumerate() {
        let parent = if parent_key == NONE { NONE } else { keys.row(parent_key) };
        if parent_key != NONE && parent as usize >= row {
            return Err(dangling("parent_stack_id", parent_key));
        }
        let frame = frames.keys.row(frame_key);
        if frame == NONE {
            return Err(dangling("frame_id", frame_key));
        }
        let is_selected = frames.positions.contains_key(&frame);
        let below = stacks.get(parent as usize).copied();
        let selected = if is_selected { row as u32 } else { below.map_or(NONE, |below| below.selected) };
        stacks.push(Stack { parent, frame, selected });
    }
    Ok(stacks)
}

/// The frames of a profile that are in selected code.
struct Frames {
    keys: Keys,
    positions: FxHashMap<u32, CodePosition>,
    functions: Vec<u32>,
    code_objects: Vec<u32>,
    /// Whether a call was inlined, by row.
    inlined: Vec<bool>,
}

impl Frames {
    fn of(batches: &[RecordBatch], code: &SelectedCode) -> Result<Self, StackError> {
        let keys = Keys::of(&numbers(batches, "frames", "frame_id")?);
        let functions = numbers(batches, "frames", "function_id")?;
        let code_objects = numbers(batches, "frames", "code_object_id")?;
        let mappings = numbers(batches, "frames", "mapping_id")?;
        let inlined =
            numbers(batches, "frames", "inline_depth")?.into_iter().map(|depth| depth > 0).collect();
        let mut texts = Texts::default();
        let exact: Vec<u32> = ["sampled", "trace"].into_iter().map(|word| texts.id(word)).collect();
        let unwound_by = text(batches, "frames", "unwound_by", &mut texts)?;
        let selected: FxHashSet<u32> = code.code_objects.iter().copied().collect();
        let mut positions = FxHashMap::default();
        let mut row = 0u32;
        for batch in batches {
            let addresses: &UInt64Array = column(batch, "frames", "address")?;
            let relative: &UInt64Array = column(batch, "frames", "relative_address")?;
            for (address, relative) in addresses.iter().zip(relative) {
                let at = row as usize;
                row = row.saturating_add(1);
                let (Some(address), Some(relative)) = (address, relative) else { continue };
                let is_exact = unwound_by.get(at).is_some_and(|by| exact.contains(by));
                // Caller frames have the address to which the call returns.
                let position = if is_exact || address == 0 { relative } else { relative.saturating_sub(1) };
                let code_object = code_objects.get(at).copied().filter(|id| *id != NONE);
                let is_selected = match code_object {
                    Some(id) => selected.contains(&id),
                    None => {
                        let mapping = mappings.get(at).copied().unwrap_or(NONE);
                        let is_in = |(of, start, end): &(u32, u64, u64)| {
                            *of == mapping && (*start..*end).contains(&position)
                        };
                        code.ranges.iter().any(is_in)
                    }
                };
                if is_selected {
                    let base = address.wrapping_sub(relative);
                    positions.insert(
                        row.saturating_sub(1),
                        CodePosition {
                            code_object_id: code_object,
                            base,
                            relative_address: code.instruction(position),
                        },
                    );
                }
            }
        }
        Ok(Self { keys, positions, functions, code_objects, inlined })
    }

    /// Function and code of a frame that was called, and not inlined.
    fn callee(&self, row: u32) -> Option<(Option<u32>, Option<u32>)> {
        let at = row as usize;
        if self.inlined.get(at).copied().unwrap_or(true) {
            return None;
        }
        let key = |keys: &[u32]| keys.get(at).copied().filter(|key| *key != NONE);
        Some((key(&self.functions), key(&self.code_objects)))
    }
}
