//! Allocations: sums by thread, type and stack, and where objects were allocated.

use arrow_array::RecordBatch;
pub use perfuse_engine::allocated::AllocationGrouping;
use perfuse_engine::allocated::{
    AllocationOrigin, AllocationSums, TypeFunctions, TypedStacks, origin_rows, origins, samples,
};
use perfuse_engine::calls::Selection;
use perfuse_formats::TableRequest;
use perfuse_tables::Offsets;
use perfuse_tables::access::ColumnError;

use crate::prefetch::Prefetch;
use crate::profile::{Profile, SavedTraces};

/// Which sums of allocations are requested.
#[derive(Clone, Debug, Default)]
pub struct AllocationQuery {
    /// Threads and time.
    pub selection: Selection,
    /// Groups; thread, type and stack where `None`.
    pub by: Option<AllocationGrouping>,
    /// Whether stacks are needed; without them sums are faster.
    pub with_stacks: bool,
}

impl Profile {
    /// Table `allocations`, decoded in another thread while it is added up in this one.
    fn allocations(&self, with_stacks: bool) -> Prefetch {
        let request = TableRequest { no_allocation_stacks: !with_stacks, ..TableRequest::default() };
        Prefetch::new(self.recording_set().rows("allocations", request))
    }

    /// Sums of all allocations by thread and type, where every recording has them without another pass.
    fn recorded_allocation_sums(&self) -> Option<AllocationSums> {
        let placed = self.placed.iter().filter(|placed| placed.recording.fills("allocations"));
        let sums = placed.map(|placed| placed.recording.allocation_sums(&placed.placement));
        let sums = sums.collect::<Option<Vec<_>>>()?;
        Some(AllocationSums::default().with(sums.into_iter().flatten()))
    }

    /// Sums of all allocations by thread, type and stack.
    pub(crate) fn all_allocation_sums(&self) -> Result<&AllocationSums, ColumnError> {
        let sums = self.allocation_sums.get_or_init(|| {
            match self.saved_events().and_then(|_| self.recorded_allocation_sums()) {
                // Saved sums are by stack, too.
                Some(sums) => Ok(sums),
                None => AllocationSums::of(self.allocations(true), &Selection::default()),
            }
        });
        sums.as_ref().map_err(|error| *error)
    }

    /// Types as the innermost functions of allocations, with keys after those of the join; `None` without allocations.
    pub(crate) fn type_functions(&self) -> Result<Option<&TypeFunctions>, ColumnError> {
        if !self.fills("allocations") {
            return Ok(None);
        }
        let functions = self.type_functions.get_or_init(|| {
            let types = self.collect("types", &TableRequest::default());
            TypeFunctions::of(&types, self.keys_after_join()?.function)
        });
        functions.as_ref().map(Some).map_err(|error| *error)
    }

    /// Rows of `frames` for the types of allocations, with keys after all others.
    pub(crate) fn type_frames(&self) -> Result<Option<RecordBatch>, ColumnError> {
        let Some(types) = self.type_functions()? else { return Ok(None) };
        Ok(Some(types.frames(self.keys_after_traces()?.frame)))
    }

    /// The stacks of allocations, with types; `None` without allocations.
    pub(crate) fn typed_stacks(&self) -> Result<Option<&TypedStacks>, ColumnError> {
        let Some(types) = self.type_functions()? else { return Ok(None) };
        let stacks = self.typed_stacks.get_or_init(|| {
            let keys = self.keys_after_traces()?;
            if self.saved_traces.is_some() {
                return TypedStacks::of_rows(&self.saved_batches("stacks")?, keys.frame, keys.stack);
            }
            let recorded = self.collect("stacks", &TableRequest::default());
            TypedStacks::of(self.all_allocation_sums()?, types, &recorded, keys.frame, keys.stack)
        });
        stacks.as_ref().map(Some).map_err(|error| *error)
    }

    /// First keys after those of the join and of call traces.
    fn keys_after_traces(&self) -> Result<Offsets, ColumnError> {
        let keys = self.keys_after_join()?;
        let Some(traced) = self.trace_samples()? else { return Ok(keys) };
        Ok(keys.plus(Offsets {
            frame: traced.sampled.frames.num_rows() as u32,
            stack: traced.sampled.stacks.num_rows() as u32,
            sample: self
                .saved_traces
                .map_or(traced.samples.num_rows() as u64, |SavedTraces { num_samples }| num_samples),
            ..Offsets::default()
        }))
    }

    /// Allocations as rows of `samples`, with keys after all others.
    pub(crate) fn allocation_samples(
        &self,
        selected: Option<&Selection>,
    ) -> Result<Option<RecordBatch>, ColumnError> {
        let (Some(types), Some(typed)) = (self.type_functions()?, self.typed_stacks()?) else {
            return Ok(None);
        };
        let first = self.keys_after_traces()?.sample;
        Ok(Some(match selected {
            None => samples(self.all_allocation_sums()?, types, typed, first),
            Some(selection) => {
                samples(&AllocationSums::of(self.allocations(true), selection)?, types, typed, first)
            }
        }))
    }

    /// Sums of allocations, a row per group.
    ///
    /// # Errors
    /// When a recording's table is not as declared.
    pub fn allocation_sums(&self, query: &AllocationQuery) -> Result<RecordBatch, ColumnError> {
        let AllocationQuery { selection, by, with_stacks } = query;
        let is_whole = selection.threads.is_none() && selection.time_ns.is_none();
        if is_whole && (*with_stacks || self.allocation_sums.get().is_some()) {
            return Ok(self.all_allocation_sums()?.batch(*by));
        }
        if is_whole && let Some(sums) = self.recorded_allocation_sums() {
            return Ok(sums.batch(*by));
        }
        AllocationSums::of(self.allocations(*with_stacks), selection).map(|sums| sums.batch(*by))
    }

    /// Allocation of each object, given by an address and a time at which it was there: a row each, null where it was not
    /// recorded. `None` where events are those of a range of a saved profile, and an object is not of one of them.
    ///
    /// # Errors
    /// When a recording's table is not as declared.
    pub fn object_origins(&self, objects: &[(u64, i64)]) -> Result<Option<RecordBatch>, ColumnError> {
        let found = match self.saved_traces {
            Some(_) => self.saved_origins(objects)?,
            None => Some(self.origins(objects)?),
        };
        Ok(found.map(|found| origin_rows(&found)))
    }

    /// The same, found in the tables of the recordings.
    pub(crate) fn origins(
        &self,
        objects: &[(u64, i64)],
    ) -> Result<Vec<Option<AllocationOrigin>>, ColumnError> {
        let rows = |table, addresses: &[u64]| {
            let objects = Some(addresses.into());
            let request = TableRequest { no_allocation_stacks: true, objects, ..TableRequest::default() };
            Prefetch::new(self.recording_set().rows(table, request))
        };
        origins(
            objects,
            |addresses| rows("object_moves", addresses),
            |addresses| rows("allocations", addresses),
        )
    }
}
