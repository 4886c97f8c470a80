//! The threads of a trace with the ids and names that viewers show.

use std::slice;
use std::sync::Arc;

use arrow_array::types::{Int32Type, UInt32Type};
use arrow_array::{Int32Array, RecordBatch, StringArray, UInt32Array};
use perfuse_tables::access::{nullable, numbers, text};
use rustc_hash::{FxHashMap, FxHashSet};

use super::Error;

use perfuse_engine::batch;
use perfuse_engine::stacks::StackError;
use perfuse_engine::stacks::columns::{self, Texts, column, text as words};

/// A thread of a timeline, as viewers name it.
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
    /// Where a column is not as declared.
    pub fn of(processes: &RecordBatch, threads: &RecordBatch) -> Result<Self, Error> {
        let shown = shown_processes(slice::from_ref(processes))?;
        let process_rows: FxHashMap<u32, &ShownProcess> =
            shown.iter().map(|process| (process.process_id, process)).collect();
        let ids = numbers::<UInt32Type>(threads, "thread_id")?.values();
        let process_ids = numbers::<UInt32Type>(threads, "process_id")?.values();
        let tids = numbers::<Int32Type>(threads, "tid")?;
        let names = text(threads, "name")?;
        let thread = |row: usize| {
            let process = process_rows.get(&process_ids[row]).copied();
            let pid = process.map_or(0, |process| process.pid);
            let process_name = process.and_then(|process| process.name.clone());
            // A thread without an id of the operating system gets its key.
            let tid = nullable(tids, row).unwrap_or(ids[row].cast_signed());
            Thread { pid, tid, name: names.get(row).map(str::to_owned), process_name }
        };
        Ok(Self { threads: ids.iter().enumerate().map(|(row, &id)| (id, thread(row))).collect() })
    }

    /// Threads in rows `thread_id`, `pid`, `tid`, `name` and `process_name`.
    ///
    /// # Errors
    /// [`StackError`]
    pub fn of_rows(rows: &[RecordBatch]) -> Result<Self, StackError> {
        let mut texts = Texts::default();
        let ids = columns::numbers(rows, "threads", "thread_id")?;
        let names = words(rows, "threads", "name", &mut texts)?;
        let process_names = words(rows, "threads", "process_name", &mut texts)?;
        let (mut pids, mut tids) = (Vec::new(), Vec::new());
        for batch in rows {
            pids.extend_from_slice(column::<Int32Array>(batch, "threads", "pid")?.values());
            tids.extend_from_slice(column::<Int32Array>(batch, "threads", "tid")?.values());
        }
        let text = |id| texts.get(id).map(str::to_owned);
        let thread = |row: usize| Thread {
            pid: pids[row],
            tid: tids[row],
            name: text(names[row]),
            process_name: text(process_names[row]),
        };
        Ok(Self { threads: ids.iter().enumerate().map(|(row, &id)| (id, thread(row))).collect() })
    }

    /// All keys, sorted.
    #[must_use]
    pub fn ids(&self) -> Vec<u32> {
        let mut ids: Vec<_> = self.threads.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// The thread of a key; one without ids for a key that none has.
    #[must_use]
    pub fn get(&self, thread_id: u32) -> Thread {
        self.threads.get(&thread_id).cloned().unwrap_or_default()
    }

    /// What a process is called, as its threads say.
    #[must_use]
    pub fn process_name(&self, pid: i32) -> Option<&str> {
        self.threads.values().filter(|thread| thread.pid == pid).find_map(|it| it.process_name.as_deref())
    }

    /// A thread id that is above all there are.
    #[must_use]
    pub fn free_tid(&self) -> i64 {
        self.threads.values().map(|thread| i64::from(thread.tid) + 1).max().unwrap_or(1).max(1)
    }

    /// Some threads and their keys, process by process, the main thread of each first.
    pub fn in_order(&self, thread_ids: &[u32]) -> impl Iterator<Item = (u32, Thread)> {
        let mut threads: Vec<_> = thread_ids.iter().map(|&id| (id, self.get(id))).collect();
        threads.sort_by_key(|(_, Thread { pid, tid, .. })| (*pid, tid != pid, *tid));
        threads.into_iter()
    }
}

/// A process as viewers show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownProcess {
    /// Its key.
    pub process_id: u32,
    /// A pid that no other one is shown with.
    pub pid: i32,
    /// Its name; that of a process with another pid than its own ends with its own.
    pub name: Option<String>,
}

impl ShownProcess {
    /// One row per process: `process_id`, `pid`, `name`.
    #[must_use]
    pub fn batch(processes: &[Self]) -> RecordBatch {
        let names: StringArray = processes.iter().map(|process| process.name.as_deref()).collect();
        let keys = processes.iter().map(|process| process.process_id);
        batch::of(vec![
            ("process_id", Arc::new(UInt32Array::from_iter_values(keys))),
            ("pid", Arc::new(Int32Array::from_iter_values(processes.iter().map(|process| process.pid)))),
            ("name", Arc::new(names)),
        ])
    }
}

/// The processes of table `processes`. Viewers find threads by their ids: where an earlier process has the pid, a free one is
/// in its place.
///
/// # Errors
/// [`StackError`]
pub fn shown_processes(processes: &[RecordBatch]) -> Result<Vec<ShownProcess>, StackError> {
    let mut texts = Texts::default();
    let ids = columns::numbers(processes, "processes", "process_id")?;
    let names = words(processes, "processes", "name", &mut texts)?;
    let mut pids = Vec::with_capacity(ids.len());
    for batch in processes {
        pids.extend_from_slice(column::<Int32Array>(batch, "processes", "pid")?.values());
    }
    let rows = ids.into_iter().zip(names).zip(&pids).zip(distinct(&pids));
    Ok(rows
        .map(|(((process_id, name), &own), pid)| {
            let name = texts.get(name);
            let name = if pid == own {
                name.map(str::to_owned)
            } else {
                Some(format!("{} {own}", name.unwrap_or("process")))
            };
            ShownProcess { process_id, pid, name }
        })
        .collect())
}

/// The pids of processes, with free ones in place of those that an earlier process has.
fn distinct(pids: &[i32]) -> Vec<i32> {
    let all: FxHashSet<i32> = pids.iter().copied().collect();
    let above = pids.iter().copied().max().unwrap_or(0);
    // Below the least positive one are few, if any: of a file with the greatest of all pids.
    let mut free = (above.saturating_add(1)..=i32::MAX).chain(1..above).filter(|pid| !all.contains(pid));
    let mut known = FxHashSet::default();
    pids.iter().map(|&pid| if known.insert(pid) { pid } else { free.next().unwrap_or(pid) }).collect()
}
