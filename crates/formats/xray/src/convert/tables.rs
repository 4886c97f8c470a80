//! Writes logs from the tables `call_events` and `instants` of any recording.

use std::collections::VecDeque;
use std::fmt;

use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use perfuse_tables::CallEvent;
use perfuse_tables::access::{ColumnError, bytes, choices, nullable, numbers, text};
use rustc_hash::FxHashMap;

use super::selection::{RecordSelection, SelectionFilter};
use crate::consts::Action;
use crate::writer::{LogSink, ThreadEvent, ThreadIds, TscStamp, WriteError};

/// Why a log cannot be written from tables.
#[derive(Debug)]
pub enum TablesError {
    /// Writing failed.
    Write(WriteError),
    /// A column is missing or has another type.
    Column(ColumnError),
}

impl fmt::Display for TablesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(error) => error.fmt(f),
            Self::Column(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TablesError {}

impl From<WriteError> for TablesError {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
    }
}

impl From<ColumnError> for TablesError {
    fn from(error: ColumnError) -> Self {
        Self::Column(error)
    }
}

/// The function id of each function: the native id where all of them fit and none has two names; else numbered from
/// 1.
#[derive(Clone, Debug, Default)]
pub struct FunctionNumbers {
    numbers: FxHashMap<u32, u32>,
    /// Number of functions that were renumbered: all or 0.
    pub num_new: u64,
}

impl FunctionNumbers {
    /// Numbers the functions of the table `functions` for ids of this many bits.
    ///
    /// # Errors
    /// When a column is missing or has another type.
    pub fn new(functions: impl IntoIterator<Item = RecordBatch>, bits: u32) -> Result<Self, ColumnError> {
        let mut numbered = Self::default();
        let mut all_fit = true;
        let mut native = FxHashMap::default();
        let mut names: FxHashMap<u32, String> = FxHashMap::default();
        for batch in functions {
            let keys = numbers::<UInt32Type>(&batch, "function_id")?;
            let ids = numbers::<UInt64Type>(&batch, "native_id")?;
            let texts = text(&batch, "name")?;
            for row in 0..batch.num_rows() {
                let key = keys.value(row);
                let next = u32::try_from(numbered.numbers.len()).unwrap_or(u32::MAX).saturating_add(1);
                numbered.numbers.insert(key, next);
                let id = nullable(ids, row).filter(|id| id.checked_shr(bits).unwrap_or(0) == 0);
                let Some(id) = id.and_then(|id| u32::try_from(id).ok()) else {
                    all_fit = false;
                    continue;
                };
                let name = texts.get(row).unwrap_or_default();
                all_fit &= names.entry(id).or_insert_with(|| name.to_owned()) == name;
                native.insert(key, id);
            }
        }
        if all_fit {
            numbered.numbers = native;
        } else {
            numbered.num_new = numbered.numbers.len() as u64;
        }
        Ok(numbered)
    }

    /// The function id for a key; 0 for an unknown key.
    fn get(&self, key: u32) -> u32 {
        self.numbers.get(&key).copied().unwrap_or(0)
    }
}

/// Values of `instants.kind` for XRay's own events.
const KIND_CUSTOM: &str = "custom_event";
const KIND_TYPED: &str = "typed_event";

/// A row of `instants`, kept until its thread reaches its time.
struct PendingInstant {
    ts_ns: i64,
    cpu: Option<u32>,
    event_type: Option<u16>,
    payload: Vec<u8>,
}

/// Passes `call_events` and `instants` to a sink, one tick per nanosecond. Instants of other recorders become custom
/// events with their kind and name.
///
/// # Errors
/// When writing fails, or a column is missing or has another type.
pub fn write_tables<S: LogSink>(
    call_events: impl Iterator<Item = RecordBatch>,
    instants: impl Iterator<Item = RecordBatch>,
    functions: &FunctionNumbers,
    thread_ids: impl FnMut(u32) -> ThreadIds,
    selection: &RecordSelection,
    sink: &mut S,
) -> Result<(), TablesError> {
    let mut sink = SelectionFilter::new(selection, sink);
    let mut replay = TableReplay {
        thread_ids,
        selection,
        threads: FxHashMap::default(),
        pending: pending_instants(instants)?,
        sink: &mut sink,
    };
    for batch in call_events {
        replay.batch(&batch, functions)?;
        replay.sink.check()?;
    }
    let mut threads_left: Vec<u32> = replay.pending.keys().copied().collect();
    threads_left.sort_unstable();
    for thread in threads_left {
        let thread_ids = replay.thread_ids(thread);
        replay.instants(thread, thread_ids, i64::MAX);
    }
    Ok(replay.sink.check()?)
}

/// The rows of `instants`, by thread.
fn pending_instants(
    instants: impl Iterator<Item = RecordBatch>,
) -> Result<FxHashMap<u32, VecDeque<PendingInstant>>, ColumnError> {
    let mut pending: FxHashMap<u32, VecDeque<PendingInstant>> = FxHashMap::default();
    for batch in instants {
        let times = numbers::<Int64Type>(&batch, "ts_ns")?;
        let threads = numbers::<UInt32Type>(&batch, "thread_id")?;
        let cpus = numbers::<UInt32Type>(&batch, "cpu")?;
        let types = numbers::<UInt32Type>(&batch, "event_type")?;
        let (kinds, names) = (text(&batch, "kind")?, text(&batch, "name")?);
        let payloads = bytes(&batch, "payload")?;
        for row in 0..batch.num_rows() {
            let payload = match (kinds.get(row).unwrap_or_default(), names.get(row)) {
                (KIND_CUSTOM | KIND_TYPED, _) if payloads.is_valid(row) => payloads.value(row).to_vec(),
                (KIND_CUSTOM | KIND_TYPED, name) => name.unwrap_or_default().into(),
                (kind, Some(name)) => format!("{kind}: {name}").into(),
                (kind, None) => kind.into(),
            };
            let is_typed = kinds.get(row) == Some(KIND_TYPED);
            pending.entry(threads.value(row)).or_default().push_back(PendingInstant {
                ts_ns: times.value(row),
                cpu: nullable(cpus, row),
                event_type: nullable(types, row).filter(|_| is_typed).map(|number| number as u16),
                payload,
            });
        }
    }
    Ok(pending)
}

/// A time as a counter value, one tick per nanosecond.
fn tsc_stamp(ts_ns: i64, cpu: Option<u32>) -> TscStamp {
    TscStamp { tsc: u64::try_from(ts_ns).unwrap_or(0), cpu: cpu.unwrap_or(0) as u16 }
}

struct TableReplay<'a, F, S> {
    thread_ids: F,
    selection: &'a RecordSelection,
    threads: FxHashMap<u32, ThreadIds>,
    pending: FxHashMap<u32, VecDeque<PendingInstant>>,
    sink: &'a mut S,
}

impl<F: FnMut(u32) -> ThreadIds, S: LogSink> TableReplay<'_, F, S> {
    /// Process and thread ids for a thread key.
    fn thread_ids(&mut self, thread: u32) -> ThreadIds {
        *self.threads.entry(thread).or_insert_with(|| (self.thread_ids)(thread))
    }

    /// Passes a batch of `call_events` to the sink.
    fn batch(&mut self, batch: &RecordBatch, functions: &FunctionNumbers) -> Result<(), ColumnError> {
        let times = numbers::<Int64Type>(batch, "ts_ns")?;
        let threads = numbers::<UInt32Type>(batch, "thread_id")?;
        let cpus = numbers::<UInt32Type>(batch, "cpu")?;
        let kinds = choices::<CallEvent>(batch, "kind")?;
        let keys = numbers::<UInt32Type>(batch, "function_id")?;
        let values = numbers::<UInt64Type>(batch, "value")?;
        let mut last: Option<(u32, ThreadIds)> = None;
        for row in 0..batch.num_rows() {
            let (thread, ts_ns) = (threads.value(row), times.value(row));
            let thread_ids = match last {
                Some((of, thread_ids)) if of == thread => thread_ids,
                _ => self.thread_ids(thread),
            };
            last = Some((thread, thread_ids));
            if !self.selection.has_thread(thread_ids) {
                continue;
            }
            let at = tsc_stamp(ts_ns, nullable(cpus, row));
            let action = match kinds.get(row) {
                CallEvent::Enter => Action::ENTRY,
                CallEvent::Exit | CallEvent::ExceptionExit => Action::EXIT,
                CallEvent::TailExit => Action::TAIL_EXIT,
                CallEvent::Argument => {
                    self.sink.write_event(
                        thread_ids,
                        at,
                        ThreadEvent::Argument(nullable(values, row).unwrap_or(0)),
                    );
                    continue;
                }
            };
            self.instants(thread, thread_ids, ts_ns);
            let function_id = functions.get(keys.value(row));
            self.sink.write_event(thread_ids, at, ThreadEvent::Call { action, function_id });
        }
        Ok(())
    }

    /// Passes on the pending instants of a thread before a time.
    fn instants(&mut self, thread: u32, thread_ids: ThreadIds, until: i64) {
        if self.pending.is_empty() {
            return;
        }
        let Some(pending) = self.pending.get_mut(&thread) else { return };
        while pending.front().is_some_and(|instant| instant.ts_ns < until) {
            let Some(PendingInstant { ts_ns, cpu, event_type, payload }) = pending.pop_front() else { break };
            if self.selection.has_thread(thread_ids) {
                let event = ThreadEvent::Event { event_type, payload: &payload };
                self.sink.write_event(thread_ids, tsc_stamp(ts_ns, cpu), event);
            }
        }
        if pending.is_empty() {
            self.pending.remove(&thread);
        }
    }
}
