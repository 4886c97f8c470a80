//! Allocations in the form of samples, for analyses of samples. The innermost frame is the allocated type.

use arrow_array::RecordBatch;
use arrow_array::types::UInt32Type;
use perfuse_tables::access::{ColumnError, nullable, numbers, text};
use perfuse_tables::{AllocationSum, frames, functions, samples, stacks};
use rustc_hash::FxHashMap;

use super::sums::AllocationSums;

/// Name of the frames of objects whose type is not recorded.
const UNKNOWN_TYPE: &str = "(unknown type)";

/// Types as functions, which are the innermost ones of allocations: one for each name in a module.
#[derive(Clone, Debug)]
pub struct TypeFunctions {
    /// Rows of `functions`.
    pub functions: RecordBatch,
    first: u32,
    /// Number of the function of each type; the key `None` is for objects whose type is not recorded.
    number_of: FxHashMap<Option<u32>, u32>,
}

impl TypeFunctions {
    /// Functions of all rows of table `types`, with keys from `first`.
    ///
    /// # Errors
    /// [`ColumnError`]
    pub fn of(types: &[RecordBatch], first: u32) -> Result<Self, ColumnError> {
        let mut functions = functions::Builder::new();
        let (mut number_of, mut named) = (FxHashMap::default(), FxHashMap::default());
        let mut add = |type_id: Option<u32>, name: &str, module: Option<u32>| {
            let number = *named.entry((Box::<str>::from(name), module)).or_insert_with(|| {
                let number = functions.len() as u32;
                functions.push(first.saturating_add(number), None, name, name, module, None, None, None);
                number
            });
            number_of.insert(type_id, number);
        };
        add(None, UNKNOWN_TYPE, None);
        for batch in types {
            let ids = numbers::<UInt32Type>(batch, "type_id")?.values();
            let modules = numbers::<UInt32Type>(batch, "module_id")?;
            let names = text(batch, "name")?;
            for (row, id) in ids.iter().enumerate() {
                add(Some(*id), names.get(row).unwrap_or(UNKNOWN_TYPE), nullable(modules, row));
            }
        }
        Ok(Self { functions: functions.finish(), first, number_of })
    }

    /// Rows of `frames`, one for each function, with keys from `first`.
    #[must_use]
    pub fn frames(&self, first: u32) -> RecordBatch {
        let mut frames = frames::Builder::new();
        for number in 0..self.functions.num_rows() as u32 {
            let (id, function) = (first.saturating_add(number), self.first.saturating_add(number));
            frames.push(
                id,
                Some(function),
                None,
                None,
                None,
                None,
                None,
                None,
                None,
                0,
                "type",
                "type",
                None,
            );
        }
        frames.finish()
    }

    fn number(&self, type_id: Option<u32>) -> u32 {
        self.number_of.get(&type_id).copied().unwrap_or_default()
    }
}

/// Allocating stacks with the allocated type as their innermost frame.
#[derive(Clone, Debug)]
pub struct TypedStacks {
    /// Rows of `stacks`.
    pub stacks: RecordBatch,
    /// Stack by the stack that allocates and the number of the type's function.
    stack_of: FxHashMap<(Option<u32>, u32), u32>,
}

impl TypedStacks {
    /// The stacks of all sums, with keys from `first_stack` and frames from `first_frame`; `recorded` are the rows of table
    /// `stacks` with those that allocate.
    ///
    /// # Errors
    /// [`ColumnError`]
    pub fn of(
        sums: &AllocationSums,
        types: &TypeFunctions,
        recorded: &[RecordBatch],
        first_frame: u32,
        first_stack: u32,
    ) -> Result<Self, ColumnError> {
        let mut depth_of: FxHashMap<u32, u32> =
            sums.all().iter().filter_map(|sum| Some((sum.group.stack_id?, 0))).collect();
        for batch in recorded {
            let ids = numbers::<UInt32Type>(batch, "stack_id")?.values();
            let depths = numbers::<UInt32Type>(batch, "depth")?.values();
            for (id, depth) in ids.iter().zip(depths) {
                if let Some(known) = depth_of.get_mut(id) {
                    *known = *depth;
                }
            }
        }
        let mut stacks = stacks::Builder::new();
        let mut stack_of = FxHashMap::default();
        for sum in sums.all() {
            let (allocating, number) = (sum.group.stack_id, types.number(sum.group.type_id));
            stack_of.entry((allocating, number)).or_insert_with(|| {
                let id = first_stack.saturating_add(stacks.len() as u32);
                let frame = first_frame.saturating_add(number);
                let below = allocating.and_then(|stack| depth_of.get(&stack));
                stacks.push(id, allocating, frame, below.map_or(0, |depth| depth.saturating_add(1)));
                id
            });
        }
        Ok(Self { stacks: stacks.finish(), stack_of })
    }

    /// The same of the rows that [`Self::of`] has made, among rows of `stacks`.
    ///
    /// # Errors
    /// [`ColumnError`], where frames are none of types.
    pub fn of_rows(rows: &[RecordBatch], first_frame: u32, first_stack: u32) -> Result<Self, ColumnError> {
        let mut stacks = stacks::Builder::new();
        let mut stack_of = FxHashMap::default();
        for batch in rows {
            let ids = numbers::<UInt32Type>(batch, "stack_id")?.values();
            let parents = numbers::<UInt32Type>(batch, "parent_stack_id")?;
            let frames = numbers::<UInt32Type>(batch, "frame_id")?.values();
            let depths = numbers::<UInt32Type>(batch, "depth")?.values();
            for (row, ((&id, &frame), &depth)) in ids.iter().zip(frames).zip(depths).enumerate() {
                if id >= first_stack {
                    let number = frame.checked_sub(first_frame).ok_or(ColumnError { column: "frame_id" })?;
                    let allocating = nullable(parents, row);
                    stacks.push(id, allocating, frame, depth);
                    stack_of.insert((allocating, number), id);
                }
            }
        }
        Ok(Self { stacks: stacks.finish(), stack_of })
    }
}

/// Two rows of `samples` per thread, stack and type, by the time of the first allocation: event `allocated-bytes` has a weight
/// in bytes, event `allocations` in objects.
#[must_use]
pub fn samples(
    sums: &AllocationSums,
    types: &TypeFunctions,
    typed: &TypedStacks,
    first_sample: u64,
) -> RecordBatch {
    let mut row_of = FxHashMap::default();
    let mut rows: Vec<(Option<u32>, AllocationSum)> = Vec::new();
    for sum in sums.all() {
        let stack = typed.stack_of.get(&(sum.group.stack_id, types.number(sum.group.type_id))).copied();
        let row = *row_of.entry((sum.group.thread_id, stack)).or_insert(rows.len());
        match rows.get_mut(row) {
            Some((_, row)) => {
                row.count = row.count.saturating_add(sum.count);
                row.bytes = row.bytes.saturating_add(sum.bytes);
                row.first_ns = row.first_ns.min(sum.first_ns);
            }
            None => rows.push((stack, *sum)),
        }
    }
    rows.sort_by_key(|(_, row)| (row.first_ns, row.record_offset));
    let mut table = samples::Builder::new();
    for (stack, row) in &rows {
        let weights = [(row.bytes, "bytes", "allocated-bytes"), (row.count, "allocations", "allocations")];
        for (weight, unit, event) in weights {
            table.push(
                first_sample.saturating_add(table.len() as u64),
                row.first_ns,
                row.group.thread_id,
                None,
                *stack,
                weight,
                unit,
                event,
                row.source_id,
                row.record_offset,
            );
        }
    }
    table.finish()
}
