//! Events from rows of the common tables, whichever recorder they are from.

use arrow_array::RecordBatch;
use arrow_array::types::{Int64Type, UInt8Type, UInt32Type, UInt64Type};
use perfuse_tables::access::{ColumnError, nullable, numbers};
use rustc_hash::FxHashMap;

use super::consts::EventByte;
use super::records::{Event, EventBody};

/// Values of the column `kind`.
mod kinds {
    pub const ALLOCATION: u8 = 0;
    pub const ENTER: u8 = 1;
    pub const LEAVE: u8 = 2;
    pub const EXCEPTION_LEAVE: u8 = 3;
    pub const SAMPLE: u8 = 4;
}

/// Call stacks: each is a method and the stack of its caller.
#[derive(Clone, Debug, Default)]
pub struct RowStacks {
    /// Caller's stack and method of each stack.
    stacks: FxHashMap<u32, (Option<u32>, u64)>,
}

impl RowStacks {
    /// Maximum number of frames of a stack; ends cycles in the rows.
    const MAX_FRAMES: usize = 1 << 16;

    /// Adds rows with `stack_id`, `parent_stack_id` and `method`.
    ///
    /// # Errors
    /// When a column is missing or has another type.
    pub fn add(&mut self, batch: &RecordBatch) -> Result<(), ColumnError> {
        let ids = numbers::<UInt32Type>(batch, "stack_id")?;
        let parents = numbers::<UInt32Type>(batch, "parent_stack_id")?;
        let methods = numbers::<UInt64Type>(batch, "method")?;
        for row in 0..batch.num_rows() {
            self.stacks.insert(ids.value(row), (nullable(parents, row), methods.value(row)));
        }
        Ok(())
    }

    /// Appends the methods of a stack, innermost first.
    fn append_frames(&self, stack: u32, frames: &mut Vec<u64>) {
        let mut next = Some(stack);
        while let Some(number) = next
            && let Some((parent, method)) = self.stacks.get(&number)
            && frames.len() < Self::MAX_FRAMES
        {
            frames.push(*method);
            next = *parent;
        }
    }
}

/// Passes the thread and event of each row to `write`. The columns are `ts_ns`, `thread`, `kind`, `a` to `c`,
/// `stack_id`.
///
/// # Errors
/// When a column is missing or has another type, or `write` fails.
pub fn events_from_rows<E: From<ColumnError>>(
    batch: &RecordBatch,
    stacks: &RowStacks,
    mut write: impl FnMut(u64, &mut Event<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let times = numbers::<Int64Type>(batch, "ts_ns")?;
    let threads = numbers::<UInt64Type>(batch, "thread")?;
    let kinds = numbers::<UInt8Type>(batch, "kind")?;
    let values = ["a", "b", "c"].map(|name| numbers::<UInt64Type>(batch, name));
    let [a, b, c] = values;
    let (a, b, c) = (a?, b?, c?);
    let ids = numbers::<UInt32Type>(batch, "stack_id")?;
    let mut event = Event::default();
    for row in 0..batch.num_rows() {
        let stack = nullable(ids, row);
        let byte = match kinds.value(row) {
            kinds::ALLOCATION if stack.is_some() => EventByte::ALLOC_BT,
            kinds::ALLOCATION => EventByte::ALLOC,
            kinds::ENTER => EventByte::METHOD_ENTER,
            kinds::LEAVE => EventByte::METHOD_LEAVE,
            kinds::EXCEPTION_LEAVE => EventByte::METHOD_EXC_LEAVE,
            kinds::SAMPLE => EventByte::SAMPLE_HIT,
            _ => return Err(ColumnError { column: "kind" }.into()),
        };
        event.begin(byte);
        event.time = Some(u64::try_from(times.value(row)).unwrap_or(0));
        let thread = threads.value(row);
        event.body = match event.body {
            EventBody::Alloc { .. } => {
                EventBody::Alloc { class: a.value(row), object: b.value(row) & !7, size: c.value(row) }
            }
            EventBody::Call { .. } => EventBody::Call { method: a.value(row) },
            _ => EventBody::SampleHit { kind: 0, timestamp: 0, thread },
        };
        if let Some(stack) = stack {
            stacks.append_frames(stack, &mut event.frames);
            if byte == EventByte::ALLOC_BT {
                event.frames.reverse();
            }
        }
        write(thread, &mut event)?;
    }
    Ok(())
}
