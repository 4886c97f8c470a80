//! Recordings of a profile, each with its clock and the keys of its rows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use perfuse_formats::{Clock, Placement, Recording, TableRequest, table_of};
use perfuse_tables::{Identities, Offsets, SnapshotSum, namesake};
use rustc_hash::FxHashMap;

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
    let namesakes = namesakes(&inputs, identities);
    for ((input, namesakes), source_id) in inputs.into_iter().zip(namesakes).zip(0u32..) {
        let ProfileInput { recording, clock, pid, definitions } = input;
        let identities = Arc::clone(identities);
        let placement = Placement { source_id, first: next, clock: clock.map, pid, namesakes, identities };
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

/// Numbers in place of the pids of each recording that is not of the first process with them: logs of one format that overlap in
/// time are of several processes, as a process writes one log at a time. In pid namespaces of their own these may have the same
/// pid: all containers have a process 1.
fn namesakes(inputs: &[ProfileInput], identities: &Mutex<Identities>) -> Vec<Arc<BTreeMap<i32, i32>>> {
    let lanes = lanes(inputs);
    let mut identities = identities.lock().unwrap_or_else(PoisonError::into_inner);
    // By pid, the lanes of its processes: the number of a process is the place of its lane.
    let mut known: FxHashMap<i32, Vec<usize>> = FxHashMap::default();
    let mut numbers_of = |(input, lane): (&ProfileInput, Option<usize>)| {
        let Some(lane) = lane else { return Arc::default() };
        let mut numbers = BTreeMap::new();
        for pid in input.recording.pids() {
            let lanes = known.entry(pid).or_default();
            let nth = lanes.iter().position(|known| *known == lane).unwrap_or_else(|| {
                lanes.push(lane);
                lanes.len().saturating_sub(1)
            });
            let number = namesake(pid, nth);
            // Saved tables have the keys in this order.
            identities.process(number);
            numbers.insert(pid, number);
        }
        Arc::new(numbers)
    };
    inputs.iter().zip(lanes).map(&mut numbers_of).collect()
}

/// Of logs of events, the first lane in which no other log of the format is at its time; `None` where no logs overlap.
fn lanes(inputs: &[ProfileInput]) -> Vec<Option<usize>> {
    let mut taken: Vec<(&str, usize, i64, i64)> = Vec::new();
    let lane_of = |input: &ProfileInput| {
        let format = input.recording.format();
        let (first, last) =
            input.recording.span().filter(|_| format.role.logs_events() && input.pid.is_none())?;
        let (start, end) = (input.clock.map.ns(first), input.clock.map.ns(last));
        let is_free = |lane: &usize| {
            let at = |&(name, of, from, to): &(&str, usize, i64, i64)| {
                name == format.name && of == *lane && from < end && start < to
            };
            !taken.iter().any(at)
        };
        let lane = (0..=taken.len()).find(is_free)?;
        taken.push((format.name, lane, start, end));
        Some(lane)
    };
    let lanes: Vec<_> = inputs.iter().map(lane_of).collect();
    if lanes.iter().any(|lane| lane.is_some_and(|lane| lane > 0)) { lanes } else { vec![None; inputs.len()] }
}
