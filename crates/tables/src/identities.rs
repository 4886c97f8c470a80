//! Surrogate keys of the rows of several recordings in one profile.

use std::collections::BTreeMap;

use arrow_array::PrimitiveArray;
use arrow_array::RecordBatch;
use arrow_array::types::{Int32Type, Int64Type, UInt32Type, UInt64Type};
use rustc_hash::FxHashMap;

use crate::access::{Text, nullable, numbers, text};
use crate::{processes, thread_names, threads};

/// First free surrogate key of each kind. Tables of several recordings in one profile continue from each other's keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offsets {
    /// Next `source_id`.
    pub source: u32,
    /// Next `function_id`.
    pub function: u32,
    /// Next `module_id`.
    pub module: u32,
    /// Next `code_object_id`.
    pub code_object: u32,
    /// Next `mapping_id`.
    pub mapping: u32,
    /// Next `sample_id`.
    pub sample: u64,
    /// Next `unwind_function_id`.
    pub unwind_function: u32,
    /// Next `slice_id`.
    pub slice: u64,
    /// Next `frame_id`.
    pub frame: u32,
    /// Next `stack_id`.
    pub stack: u32,
    /// Next `type_id`.
    pub type_: u32,
    /// Next `counter_id`.
    pub counter: u32,
    /// Next `snapshot_id`.
    pub snapshot: u32,
}

impl Offsets {
    /// The first free keys after `count` more of each kind.
    #[must_use]
    pub fn plus(self, count: Self) -> Self {
        Self {
            source: self.source.saturating_add(count.source),
            function: self.function.saturating_add(count.function),
            module: self.module.saturating_add(count.module),
            code_object: self.code_object.saturating_add(count.code_object),
            mapping: self.mapping.saturating_add(count.mapping),
            sample: self.sample.saturating_add(count.sample),
            unwind_function: self.unwind_function.saturating_add(count.unwind_function),
            slice: self.slice.saturating_add(count.slice),
            frame: self.frame.saturating_add(count.frame),
            stack: self.stack.saturating_add(count.stack),
            type_: self.type_.saturating_add(count.type_),
            counter: self.counter.saturating_add(count.counter),
            snapshot: self.snapshot.saturating_add(count.snapshot),
        }
    }
}

/// Which process of a profile: several may have one pid, as those of virtual machines, of pid namespaces, or of other times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessIdentity {
    /// Of a process of a virtual machine, the process of that machine; 0 of others.
    machine_pid: i32,
    /// The pid that is shown.
    pid: i32,
    /// Number, from 0, among the processes with that pid.
    nth: u32,
}

impl ProcessIdentity {
    /// The process that is `nth`, from 0, of those with a pid.
    #[must_use]
    pub const fn new(pid: i32, nth: u32) -> Self {
        Self { machine_pid: 0, pid, nth }
    }

    /// A process of a virtual machine, which is a process too.
    #[must_use]
    pub const fn guest(machine_pid: i32, pid: i32) -> Self {
        Self { machine_pid, pid, nth: 0 }
    }

    /// The pid that is shown, which is not unique.
    #[must_use]
    pub const fn pid(self) -> i32 {
        self.pid
    }
}

impl From<i32> for ProcessIdentity {
    /// The first process with a pid.
    fn from(pid: i32) -> Self {
        Self::new(pid, 0)
    }
}

/// Keys of processes and threads, which all recordings of a profile share.
///
/// A decoder requests the key of a process and tid and may add a name, a start and an end.
#[derive(Clone, Debug, Default)]
pub struct Identities {
    by_process: FxHashMap<ProcessIdentity, u32>,
    by_tid: FxHashMap<(ProcessIdentity, i32), u32>,
    by_native_id: FxHashMap<(ProcessIdentity, u64, u32), u32>,
    processes: Vec<IdentityFacts>,
    threads: Vec<(u32, IdentityFacts)>,
}

/// Facts about a process or thread.
#[derive(Clone, Debug, Default)]
struct IdentityFacts {
    id: Option<i32>,
    native_id: Option<u64>,
    /// Of a process of a virtual machine, the process of that machine; 0 of others.
    machine_pid: i32,
    /// The latest name.
    name: Option<String>,
    /// Names of a thread, each from a time on.
    names: BTreeMap<Option<i64>, String>,
    start_ns: Option<i64>,
    end_ns: Option<i64>,
}

impl IdentityFacts {
    fn with_id(id: i32) -> Self {
        Self { id: Some(id), ..Self::default() }
    }
}

/// Columns of names and times that both tables have.
struct TableFacts<'a> {
    names: Text<'a>,
    starts: &'a PrimitiveArray<Int64Type>,
    ends: &'a PrimitiveArray<Int64Type>,
}

impl<'a> TableFacts<'a> {
    fn of(batch: &'a RecordBatch) -> Option<Self> {
        Some(Self {
            names: text(batch, "name").ok()?,
            starts: numbers(batch, "start_ns").ok()?,
            ends: numbers(batch, "end_ns").ok()?,
        })
    }

    fn row(&self, row: usize, id: Option<i32>, native_id: Option<u64>) -> IdentityFacts {
        IdentityFacts {
            id,
            native_id,
            machine_pid: 0,
            name: self.names.get(row).map(str::to_owned),
            names: BTreeMap::new(),
            start_ns: nullable(self.starts, row),
            end_ns: nullable(self.ends, row),
        }
    }
}

impl Identities {
    /// Identities with the keys of tables `processes` and `threads`; `None` where their rows are not in the order of their keys.
    #[must_use]
    pub fn of_tables(processes: &[RecordBatch], threads: &[RecordBatch]) -> Option<Self> {
        let mut all = Self::default();
        let mut identities = Vec::new();
        let mut num_with: FxHashMap<i32, u32> = FxHashMap::default();
        for batch in processes {
            let ids = numbers::<UInt32Type>(batch, "process_id").ok()?;
            let pids = numbers::<Int32Type>(batch, "pid").ok()?;
            let facts = TableFacts::of(batch)?;
            for row in 0..batch.num_rows() {
                let id = u32::try_from(all.processes.len()).ok()?;
                if ids.value(row) != id {
                    return None;
                }
                // Processes with one pid are in the order of their numbers.
                let pid = pids.value(row);
                let nth = num_with.entry(pid).or_default();
                let identity = ProcessIdentity::new(pid, *nth);
                *nth += 1;
                all.by_process.insert(identity, id);
                identities.push(identity);
                all.processes.push(facts.row(row, Some(pid), None));
            }
        }
        for batch in threads {
            let ids = numbers::<UInt32Type>(batch, "thread_id").ok()?;
            let process_ids = numbers::<UInt32Type>(batch, "process_id").ok()?;
            let tids = numbers::<Int32Type>(batch, "tid").ok()?;
            let native_ids = numbers::<UInt64Type>(batch, "native_id").ok()?;
            let facts = TableFacts::of(batch)?;
            for row in 0..batch.num_rows() {
                let (id, process_id) = (u32::try_from(all.threads.len()).ok()?, process_ids.value(row));
                let process = *identities.get(process_id as usize)?;
                let (tid, native_id) = (nullable(tids, row), nullable(native_ids, row));
                if ids.value(row) != id {
                    return None;
                }
                match (tid, native_id) {
                    (Some(tid), _) => drop(all.by_tid.insert((process, tid), id)),
                    (None, Some(native_id)) => {
                        // Threads that had the same id in succession have keys in that order.
                        let incarnation =
                            (0..).find(|n| !all.by_native_id.contains_key(&(process, native_id, *n)))?;
                        all.by_native_id.insert((process, native_id, incarnation), id);
                    }
                    (None, None) => {}
                }
                all.threads.push((process_id, facts.row(row, tid, native_id)));
            }
        }
        Some(all)
    }

    /// Key of a process.
    pub fn process(&mut self, process: ProcessIdentity) -> u32 {
        *self.by_process.entry(process).or_insert_with(|| {
            let ProcessIdentity { machine_pid, pid, .. } = process;
            let name = (machine_pid != 0).then(|| format!("[guest {machine_pid}]"));
            self.processes.push(IdentityFacts { machine_pid, name, ..IdentityFacts::with_id(pid) });
            (self.processes.len() - 1) as u32
        })
    }

    /// Key of a process that has one already.
    #[must_use]
    pub fn key(&self, process: ProcessIdentity) -> Option<u32> {
        self.by_process.get(&process).copied()
    }

    /// Key of a thread.
    pub fn thread(&mut self, process: ProcessIdentity, tid: i32) -> u32 {
        if let Some(&id) = self.by_tid.get(&(process, tid)) {
            return id;
        }
        let process_id = self.process(process);
        let id = self.threads.len() as u32;
        self.threads.push((process_id, IdentityFacts::with_id(tid)));
        self.by_tid.insert((process, tid), id);
        id
    }

    /// Key of a thread with an id of the recorder's own; `incarnation` distinguishes threads that had the same id in succession.
    pub fn native_thread(&mut self, process: ProcessIdentity, native_id: u64, incarnation: u32) -> u32 {
        let process_id = self.process(process);
        let next = self.threads.len() as u32;
        let id = *self.by_native_id.entry((process, native_id, incarnation)).or_insert(next);
        if id == next {
            self.threads
                .push((process_id, IdentityFacts { native_id: Some(native_id), ..IdentityFacts::default() }));
        }
        id
    }

    /// Sets facts about the thread with a key; `None` leaves a fact unchanged.
    pub fn describe(
        &mut self,
        thread_id: u32,
        name: Option<&str>,
        start_ns: Option<i64>,
        end_ns: Option<i64>,
    ) {
        if let Some((_, facts)) = self.threads.get_mut(thread_id as usize) {
            if let Some(name) = name {
                facts.name = Some(name.to_owned());
                facts.names.insert(None, name.to_owned());
            }
            facts.start_ns = start_ns.or(facts.start_ns);
            facts.end_ns = end_ns.or(facts.end_ns);
        }
    }

    /// Pid and tid of the thread with a key; 0 for ids that are not known.
    #[must_use]
    pub fn owner(&self, thread_id: u32) -> Option<(i32, i32)> {
        let (process_id, thread) = self.threads.get(thread_id as usize)?;
        let process = self.processes.get(*process_id as usize)?;
        Some((process.id.unwrap_or(0), thread.id.unwrap_or(0)))
    }

    /// Keys and pids of all processes with a pid, those of virtual machines excepted.
    #[must_use]
    pub fn pids(&self) -> Vec<(u32, i32)> {
        let own = (0..).zip(&self.processes).filter(|(_, process)| process.machine_pid == 0);
        own.filter_map(|(id, process)| Some((id, process.id?))).collect()
    }

    /// Sets the name of a thread from a time on, and of its process when it is the main thread; `None` for a name from before the
    /// recording.
    pub fn name(&mut self, process: ProcessIdentity, tid: i32, name: &str, from_ns: Option<i64>) {
        let thread = self.thread(process, tid) as usize;
        self.threads[thread].1.name = Some(name.to_owned());
        self.threads[thread].1.names.insert(from_ns, name.to_owned());
        let process = self.process(process) as usize;
        if self.processes[process].id == Some(tid) {
            let process = &mut self.processes[process];
            process.name = Some(match process.machine_pid {
                0 => name.to_owned(),
                machine_pid => format!("{name} [guest {machine_pid}]"),
            });
        }
    }

    /// Names a process.
    pub fn name_process(&mut self, process: ProcessIdentity, name: &str) {
        let process = self.process(process) as usize;
        if let Some(process) = self.processes.get_mut(process) {
            process.name = Some(name.to_owned());
        }
    }

    /// Sets the start of a thread, and of its process when it is the main thread.
    pub fn start(&mut self, process: ProcessIdentity, tid: i32, ts_ns: i64) {
        self.update(process, tid, |facts| facts.start_ns = Some(ts_ns));
    }

    /// Sets the end of a thread, and of its process when it is the main thread.
    pub fn end(&mut self, process: ProcessIdentity, tid: i32, ts_ns: i64) {
        self.update(process, tid, |facts| facts.end_ns = Some(ts_ns));
    }

    /// Changes the facts of a thread, and of its process when it is the main thread.
    fn update(&mut self, process: ProcessIdentity, tid: i32, set: impl Fn(&mut IdentityFacts)) {
        let thread = self.thread(process, tid) as usize;
        set(&mut self.threads[thread].1);
        let process = self.process(process) as usize;
        if self.processes[process].id == Some(tid) {
            set(&mut self.processes[process]);
        }
    }

    /// Table `processes`, `threads` or `thread_names`; `None` for other tables, which identities do not fill.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<RecordBatch> {
        match name {
            "processes" => Some(self.processes()),
            "threads" => Some(self.threads()),
            "thread_names" => Some(self.thread_names()),
            _ => None,
        }
    }

    /// Table `processes`.
    #[must_use]
    pub fn processes(&self) -> RecordBatch {
        let mut table = processes::Builder::new();
        for (id, p) in self.processes.iter().enumerate() {
            table.push(id as u32, p.id.unwrap_or(0), p.name.as_deref(), p.start_ns, p.end_ns);
        }
        table.finish()
    }

    /// Table `threads`.
    #[must_use]
    pub fn threads(&self) -> RecordBatch {
        let mut table = threads::Builder::new();
        for (id, (process_id, t)) in self.threads.iter().enumerate() {
            let name = t.name.as_deref();
            table.push(id as u32, *process_id, t.id, t.native_id, name, t.start_ns, t.end_ns);
        }
        table.finish()
    }

    /// Table `thread_names`: one row for each change of a name.
    fn thread_names(&self) -> RecordBatch {
        let mut table = thread_names::Builder::new();
        for (id, (_, thread)) in self.threads.iter().enumerate() {
            let mut latest = None;
            for (&from_ns, name) in &thread.names {
                if latest.replace(name) != Some(name) {
                    table.push(id as u32, from_ns, name);
                }
            }
        }
        table.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;

    #[test]
    fn one_native_id_may_be_several_threads() {
        let mut ids = Identities::default();
        let first = ids.native_thread(7.into(), 0x7f00, 0);
        assert_ne!(ids.native_thread(7.into(), 0x7f00, 1), first);
        assert_eq!(ids.native_thread(7.into(), 0x7f00, 0), first);
        ids.describe(first, Some("main"), Some(1), None);
        assert_eq!(ids.threads().num_rows(), 2);
    }

    #[test]
    fn identities_of_tables_have_the_keys_and_facts_of_the_tables() {
        let mut ids = Identities::default();
        ids.name(7.into(), 7, "main", None);
        ids.start(7.into(), 9, 5);
        ids.native_thread(8.into(), 0x7f00, 0);
        ids.native_thread(8.into(), 0x7f00, 1);
        let (processes, threads) = (ids.processes(), ids.threads());
        let mut again = Identities::of_tables(from_ref(&processes), from_ref(&threads)).unwrap();
        assert_eq!((again.processes(), again.threads()), (processes.clone(), threads.clone()));
        assert_eq!(again.thread(7.into(), 9), ids.thread(7.into(), 9));
        assert_eq!(again.native_thread(8.into(), 0x7f00, 1), ids.native_thread(8.into(), 0x7f00, 1));
        assert!(Identities::of_tables(&[], from_ref(&threads)).is_none());
        assert!(Identities::of_tables(&[processes], &[threads.slice(1, 1)]).is_none());
    }

    #[test]
    fn processes_with_one_pid_are_several_also_when_read_again() {
        let mut ids = Identities::default();
        let processes = [0, 1, 2].map(|nth| ProcessIdentity::new(1, nth));
        let keys = processes.map(|process| (ids.process(process), ids.thread(process, 1)));
        assert_eq!(keys, [(0, 0), (1, 1), (2, 2)]);
        assert_eq!(ids.pids(), [(0, 1), (1, 1), (2, 1)]);
        assert_eq!(ids.owner(2), Some((1, 1)));
        let mut again = Identities::of_tables(from_ref(&ids.processes()), from_ref(&ids.threads())).unwrap();
        assert_eq!(processes.map(|process| (again.process(process), again.thread(process, 1))), keys);
        assert_eq!(ids.process(ProcessIdentity::guest(7, 1)), 3, "a process of a virtual machine");
        assert_eq!(ids.pids().len(), 3, "with a pid there");
    }

    #[test]
    fn names_are_listed_by_time_whatever_order_they_come_in() {
        let mut ids = Identities::default();
        for (from_ns, name) in [(Some(9), "cc1"), (None, "sh"), (Some(4), "sh"), (Some(9), "cc1")] {
            ids.name(7.into(), 7, name, from_ns);
        }
        ids.name(7.into(), 8, "worker", Some(2));
        let names = ids.table("thread_names").unwrap();
        let text = text(&names, "name").unwrap();
        assert_eq!(
            (0..names.num_rows()).map(|row| text.get(row)).collect::<Vec<_>>(),
            [Some("sh"), Some("cc1"), Some("worker")]
        );
        let times = numbers::<Int64Type>(&names, "start_ns").unwrap();
        assert_eq!((0..3).map(|row| nullable(times, row)).collect::<Vec<_>>(), [None, Some(9), Some(2)]);
    }

    #[test]
    fn two_sources_agree_on_a_thread() {
        let mut ids = Identities::default();
        let a = ids.thread(7.into(), 9);
        ids.name(7.into(), 7, "main", Some(3));
        assert_eq!(ids.thread(7.into(), 9), a);
        assert_eq!((ids.owner(a), ids.owner(a + 2)), (Some((7, 9)), None));
        assert_eq!(ids.processes().num_rows(), 1);
        assert_eq!(ids.threads().num_rows(), 2);
        assert_eq!(ids.processes().schema(), processes::SPEC.schema());
    }
}
