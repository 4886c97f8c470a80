//! The threads of a trace, as viewers want them told.

use arrow_array::RecordBatch;
use arrow_array::types::{Int32Type, UInt32Type};
use perfuse_tables::access::{ColumnError, numbers, text};
use rustc_hash::FxHashMap;

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Its process.
    pub pid: i32,
    /// Thread id.
    pub tid: i32,
    /// Its name.
    pub name: Option<String>,
    /// Its process's name.
    pub process_name: Option<String>,
}

/// Threads by key.
#[derive(Clone, Debug, Default)]
pub struct Tracks {
    threads: FxHashMap<u32, Thread>,
}

impl Tracks {
    /// The threads of tables `processes` and `threads`.
    ///
    /// # Errors
    /// [`ColumnError`]
    pub fn of(processes: &RecordBatch, threads: &RecordBatch) -> Result<Self, ColumnError> {
        let pids = numbers::<Int32Type>(processes, "pid")?.values();
        let process_names = text(processes, "name")?;
        let process_rows: FxHashMap<u32, usize> =
            numbers::<UInt32Type>(processes, "process_id")?.values().iter().copied().zip(0..).collect();
        let ids = numbers::<UInt32Type>(threads, "thread_id")?.values();
        let process_ids = numbers::<UInt32Type>(threads, "process_id")?.values();
        let tids = numbers::<Int32Type>(threads, "tid")?.values();
        let names = text(threads, "name")?;
        let thread = |row: usize| {
            let process = process_rows.get(&process_ids[row]).copied();
            let process_name = process.and_then(|row| process_names.get(row)).map(str::to_owned);
            let pid = process.map_or(0, |row| pids[row]);
            Thread { pid, tid: tids[row], name: names.get(row).map(str::to_owned), process_name }
        };
        Ok(Self { threads: ids.iter().enumerate().map(|(row, &id)| (id, thread(row))).collect() })
    }

    /// The thread of a key; one without ids for a key that none has.
    #[must_use]
    pub fn get(&self, thread_id: u32) -> Thread {
        self.threads.get(&thread_id).cloned().unwrap_or_default()
    }

    /// Some threads and their keys, process by process, the main thread of each first.
    pub fn in_order(&self, thread_ids: &[u32]) -> impl Iterator<Item = (u32, Thread)> {
        let mut threads: Vec<_> = thread_ids.iter().map(|&id| (id, self.get(id))).collect();
        threads.sort_by_key(|(_, Thread { pid, tid, .. })| (*pid, tid != pid, *tid));
        threads.into_iter()
    }
}
