//! Sums of samples, as the query gives them.

use arrow_array::types::{Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, PrimitiveArray, RecordBatch};

use super::SampleEvent;
use perfuse_engine::stacks::StackError;
use perfuse_engine::stacks::columns::{Texts, column, text};

/// The columns of a batch.
pub struct SumColumns<'a> {
    stacks: &'a PrimitiveArray<UInt32Type>,
    pids: &'a PrimitiveArray<Int32Type>,
    tids: &'a PrimitiveArray<Int32Type>,
    threads: Vec<u32>,
    processes: Vec<u32>,
    tiers: Vec<u32>,
    /// Index of the event.
    events: Vec<Option<usize>>,
    num_samples: &'a PrimitiveArray<Int64Type>,
    weights: &'a PrimitiveArray<UInt64Type>,
}

impl<'a> SumColumns<'a> {
    /// The columns of a batch; names of threads go into `names`.
    pub fn of(batch: &'a RecordBatch, events: &[SampleEvent], names: &mut Texts) -> Result<Self, StackError> {
        let one = std::slice::from_ref(batch);
        let mut words = Texts::default();
        let texts = text(one, "samples", "event", &mut words)?;
        let event = |word| events.iter().position(|event| words.get(word) == Some(event.name.as_str()));
        Ok(Self {
            stacks: column(batch, "samples", "stack_id")?,
            pids: column(batch, "samples", "pid")?,
            tids: column(batch, "samples", "tid")?,
            threads: text(one, "samples", "thread", names)?,
            processes: text(one, "samples", "process", names)?,
            tiers: text(one, "samples", "tier", names)?,
            events: texts.into_iter().map(event).collect(),
            num_samples: column(batch, "samples", "num_samples")?,
            weights: column(batch, "samples", "weight")?,
        })
    }

    /// Stack.
    pub fn stack(&self, row: usize) -> Option<u32> {
        self.stacks.is_valid(row).then(|| self.stacks.value(row))
    }

    /// Process.
    pub fn pid(&self, row: usize) -> i32 {
        self.pids.value(row)
    }

    /// Thread.
    pub fn tid(&self, row: usize) -> i32 {
        self.tids.value(row)
    }

    /// Names of the thread, of its process, and of the tier of the innermost function.
    pub fn names(&self, row: usize) -> [u32; 3] {
        [self.threads[row], self.processes[row], self.tiers[row]]
    }

    /// Which event.
    pub fn event(&self, row: usize) -> Option<usize> {
        self.events[row]
    }

    /// How many samples.
    pub fn num_samples(&self, row: usize) -> i64 {
        self.num_samples.value(row)
    }

    /// What they stand for; values are signed in a profile.
    pub fn weight(&self, row: usize) -> i64 {
        i64::try_from(self.weights.value(row)).unwrap_or(i64::MAX)
    }
}
