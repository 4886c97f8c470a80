//! Recordings of a profile, each with its clock and the keys of its rows.

use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use perfuse_formats::{Clock, Placement, Recording, TableRequest, table_of};
use perfuse_tables::{Identities, Offsets, SnapshotSum};

use crate::definitions::DefinedLines;

/// A recording to be added to a profile.
#[derive(Clone)]
pub struct ProfileInput {
    /// The open file.
    pub recording: Arc<dyn Recording>,
    /// Its clock, and how its times become those of the profile.
    pub clock: Clock,
    /// Process id on the recorded machine, where the file contains another one (pid namespaces).
    pub pid: Option<i32>,
    /// Lines of its functions, where it was recorded with some.
    pub definitions: Option<Arc<DefinedLines>>,
}

/// A recording of a profile.
pub(crate) struct PlacedRecording {
    pub(crate) recording: Arc<dyn Recording>,
    pub(crate) clock: Clock,
    pub(crate) placement: Placement,
    /// Lines of its functions, and of those of perf maps beside it.
    pub(crate) definitions: Option<Arc<DefinedLines>>,
}

impl PlacedRecording {
    /// All batches of a table.
    pub(crate) fn table(&self, name: &str, request: &TableRequest) -> Vec<RecordBatch> {
        let batches = table_of(&self.recording, name, &self.placement, request).into_iter().flatten();
        match &self.definitions {
            Some(definitions) if name == "functions" => {
                batches.map(|batch| definitions.with_lines(batch)).collect()
            }
            _ => batches.collect(),
        }
    }
}

/// Gives each recording keys of its own: those of one follow those of the previous one. Also returns the first keys after
/// all of them.
pub(crate) fn place(
    inputs: Vec<ProfileInput>,
    identities: &Arc<Mutex<Identities>>,
) -> (Vec<PlacedRecording>, Offsets) {
    let mut next = Offsets::default();
    let mut placed = Vec::with_capacity(inputs.len());
    for (ProfileInput { recording, clock, pid, definitions }, source_id) in inputs.into_iter().zip(0u32..) {
        let identities = Arc::clone(identities);
        let placement = Placement { source_id, first: next, clock: clock.map, pid, identities };
        next = next.plus(recording.extent());
        placed.push(PlacedRecording { recording, clock, placement, definitions });
    }
    (placed, next)
}

/// Some recordings of a profile, owned, so that tables can be made after the profile is gone.
#[derive(Clone)]
pub struct RecordingSet(Vec<(Arc<dyn Recording>, Placement)>);

impl RecordingSet {
    pub(crate) fn new<'a>(placed: impl IntoIterator<Item = &'a PlacedRecording>) -> Self {
        let owned = |placed: &PlacedRecording| (Arc::clone(&placed.recording), placed.placement.clone());
        Self(placed.into_iter().map(owned).collect())
    }

    /// One set per recording: addresses of one process have no meaning in another.
    pub(crate) fn each(self) -> impl Iterator<Item = Self> {
        self.0.into_iter().map(|one| Self(vec![one]))
    }

    /// Whether any of them has rows of a table.
    pub(crate) fn fills(&self, table: &str) -> bool {
        self.0.iter().any(|(recording, _)| recording.fills(table))
    }

    /// Sums of heap snapshots, where every recording has them without making tables.
    pub(crate) fn snapshot_sums(&self) -> Option<Vec<SnapshotSum>> {
        let sums = self.0.iter().map(|(recording, placement)| recording.snapshot_sums(placement));
        Some(sums.collect::<Option<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// Rows of a table, of one recording after the other, made on demand.
    pub fn rows(
        self,
        name: &str,
        request: TableRequest,
    ) -> impl Iterator<Item = RecordBatch> + Send + 'static {
        let name = name.to_owned();
        self.0.into_iter().flat_map(move |(recording, placement)| {
            table_of(&recording, &name, &placement, &request).into_iter().flatten()
        })
    }
}

/// Tables of events that have stacks of their own.
const TABLES_WITH_STACKS: [&str; 3] = ["exceptions", "lock_events", "gc_handles"];

/// A request for a table of events, with or without its stacks.
pub(crate) fn table_request(table: &str, with_stacks: bool) -> TableRequest {
    let stacks_of = TABLES_WITH_STACKS.iter().find(|name| with_stacks && **name == table).copied();
    TableRequest { no_stacks: !with_stacks, stacks_of, ..TableRequest::default() }
}
