//! Recordings of a profile, each with its clock and the keys of its rows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use perfuse_formats::{Clock, Placement, RecordedPrograms, Recording, TableRequest, table_of};
use perfuse_tables::{Identities, Offsets, ProcessIdentity, SnapshotSum};
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
    /// By pid, which of the processes with that pid is its process, from 0, where that is known; pids of the first are left out.
    pub nth_of_pid: Arc<BTreeMap<i32, u32>>,
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
    /// Whether this is the recording of an input, with the same clock and processes, and neither has lines of its own.
    pub(crate) fn is_of(&self, input: &ProfileInput) -> bool {
        Arc::ptr_eq(&self.recording, &input.recording)
            && self.clock == input.clock
            && self.placement.pid == input.pid
            && self.placement.nth_of_pid == input.nth_of_pid
            && self.definitions.is_none()
            && input.definitions.is_none()
    }

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
    let numbers = numbers_of_processes(&inputs, identities);
    for ((input, nth_of_pid), source_id) in inputs.into_iter().zip(numbers).zip(0u32..) {
        let ProfileInput { recording, clock, pid, definitions, .. } = input;
        let identities = Arc::clone(identities);
        let placement = Placement { source_id, first: next, clock: clock.map, pid, nth_of_pid, identities };
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

/// By pid, which of the processes with that pid is the one of each recording: logs of one format that overlap in time are of several
/// processes, as a process writes one log at a time, and so are those whose headers state that their processes began at different
/// times. In pid namespaces of their own these may have the same pid: all containers have a process 1.
fn numbers_of_processes(
    inputs: &[ProfileInput],
    identities: &Mutex<Identities>,
) -> Vec<Arc<BTreeMap<i32, u32>>> {
    let lanes = lanes(inputs);
    let most = u32::try_from(inputs.len()).unwrap_or(u32::MAX);
    let mut identities = identities.lock().unwrap_or_else(PoisonError::into_inner);
    // By pid, the lanes of its processes: the number of a process is the place of its lane.
    let mut known: FxHashMap<i32, Vec<usize>> = FxHashMap::default();
    let mut numbers_of = |(input, lane): (&ProfileInput, Option<usize>)| {
        for (&pid, &nth) in input.nth_of_pid.iter() {
            // Saved tables have the keys in this order.
            for before in 0..=nth.min(most) {
                identities.process(ProcessIdentity::new(pid, before));
            }
        }
        let Some(lane) = lane.filter(|_| input.nth_of_pid.is_empty()) else {
            return Arc::clone(&input.nth_of_pid);
        };
        let mut numbers = BTreeMap::new();
        for pid in input.recording.pids() {
            let lanes = known.entry(pid).or_default();
            let nth = lanes.iter().position(|known| *known == lane).unwrap_or_else(|| {
                lanes.push(lane);
                lanes.len().saturating_sub(1)
            });
            let nth = u32::try_from(nth).unwrap_or(u32::MAX);
            // Saved tables have the keys in this order.
            identities.process(ProcessIdentity::new(pid, nth));
            numbers.insert(pid, nth);
        }
        Arc::new(numbers)
    };
    inputs.iter().zip(lanes).map(&mut numbers_of).collect()
}

/// By pid, which of the processes with that pid is the one of each recording of samples, from 0; pids of the first are left out. Those
/// whose machines or programs differ are of several processes.
#[must_use]
pub fn process_numbers<'a>(
    recordings: impl IntoIterator<Item = &'a Arc<dyn Recording>>,
) -> Vec<BTreeMap<i32, u32>> {
    let mut all: Vec<RecordedPrograms> = Vec::new();
    // By pid, the recordings of each process.
    let mut known: FxHashMap<i32, Vec<Vec<usize>>> = FxHashMap::default();
    let number_of = |recording: &Arc<dyn Recording>| {
        let own = recording.recorded_programs();
        let mut numbers = BTreeMap::new();
        for pid in own.pids() {
            let processes = known.entry(pid).or_default();
            let is_one = |of: &Vec<usize>| {
                of.iter().filter_map(|&other| all.get(other)).all(|other| other.may_share(&own, pid))
            };
            let nth = processes.iter().position(is_one).unwrap_or_else(|| {
                processes.push(Vec::new());
                processes.len().saturating_sub(1)
            });
            processes.get_mut(nth).into_iter().for_each(|of| of.push(all.len()));
            if let Some(nth) = u32::try_from(nth).ok().filter(|&nth| nth > 0) {
                numbers.insert(pid, nth);
            }
        }
        all.push(own);
        numbers
    };
    recordings.into_iter().map(number_of).collect()
}

/// Of logs of events, the first lane in which no other log of the format is at its time, or of a process that began at another time;
/// `None` where one lane suffices.
fn lanes(inputs: &[ProfileInput]) -> Vec<Option<usize>> {
    let mut taken: Vec<(&str, usize, Option<i64>, i64, i64)> = Vec::new();
    let lane_of = |input: &ProfileInput| {
        let format = input.recording.format();
        let (first, last) =
            input.recording.span().filter(|_| format.role.logs_events() && input.pid.is_none())?;
        let (start, end) = (input.clock.map.ns(first), input.clock.map.ns(last));
        let began = input.recording.process_start();
        let is_free = |lane: &usize| {
            let is_other = |&(name, of, began_at, from, to): &(&str, usize, Option<i64>, i64, i64)| {
                let is_of_other_start = began_at.zip(began).is_some_and(|(one, other)| one != other);
                name == format.name && of == *lane && (is_of_other_start || (from < end && start < to))
            };
            !taken.iter().any(is_other)
        };
        let lane = (0..=taken.len()).find(is_free)?;
        taken.push((format.name, lane, began, start, end));
        Some(lane)
    };
    let lanes: Vec<_> = inputs.iter().map(lane_of).collect();
    if lanes.iter().any(|lane| lane.is_some_and(|lane| lane > 0)) { lanes } else { vec![None; inputs.len()] }
}
