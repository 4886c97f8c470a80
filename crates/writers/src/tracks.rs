//! The threads of a trace with the ids and names that viewers show.

use arrow_array::types::{Int32Type, UInt32Type};
use arrow_array::{Int32Array, RecordBatch};
use perfuse_tables::access::{ColumnError, nullable, numbers, text};
use rustc_hash::{FxHashMap, FxHashSet};

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
    /// [`ColumnError`]
    pub fn of(processes: &RecordBatch, threads: &RecordBatch) -> Result<Self, ColumnError> {
        let pids = numbers::<Int32Type>(processes, "pid")?.values();
        let shown_pids = distinct(pids);
        let process_names = text(processes, "name")?;
        let process_rows: FxHashMap<u32, usize> =
            numbers::<UInt32Type>(processes, "process_id")?.values().iter().copied().zip(0..).collect();
        let ids = numbers::<UInt32Type>(threads, "thread_id")?.values();
        let process_ids = numbers::<UInt32Type>(threads, "process_id")?.values();
        let tids = numbers::<Int32Type>(threads, "tid")?;
        let names = text(threads, "name")?;
        let thread = |row: usize| {
            let process = process_rows.get(&process_ids[row]).copied();
            let process_name = process.and_then(|row| process_names.get(row)).map(str::to_owned);
            let (pid, shown) = process.map_or((0, 0), |row| (pids[row], shown_pids[row]));
            let process_name = if pid == shown {
                process_name
            } else {
                Some(format!("{} {pid}", process_name.as_deref().unwrap_or("process")))
            };
            let pid = shown;
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

/// The pid that each process of table `processes` is shown with, by its key.
///
/// # Errors
/// [`ColumnError`]
pub fn shown_pids(processes: &RecordBatch) -> Result<FxHashMap<u32, i32>, ColumnError> {
    let ids = numbers::<UInt32Type>(processes, "process_id")?.values();
    let pids = numbers::<Int32Type>(processes, "pid")?.values();
    Ok(ids.iter().copied().zip(distinct(pids)).collect())
}

/// The pids of processes, with free ones in place of those that an earlier process has: viewers find threads by their ids.
fn distinct(pids: &[i32]) -> Vec<i32> {
    let mut free = pids.iter().copied().max().unwrap_or(0);
    let mut known = FxHashSet::default();
    let mut shown = |&pid: &i32| {
        if known.insert(pid) {
            return pid;
        }
        free = free.saturating_add(1);
        free
    };
    pids.iter().map(&mut shown).collect()
}
