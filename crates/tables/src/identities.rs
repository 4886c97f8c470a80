//! Surrogate keys of the rows of several recordings in one profile.

use rustc_hash::FxHashMap;

use crate::{processes, threads};

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

/// Keys of processes and threads, which all recordings of a profile share.
///
/// A decoder requests the key of a `(pid, tid)` and may add a name, a start and an end.
#[derive(Clone, Debug, Default)]
pub struct Identities {
    by_pid: FxHashMap<i32, u32>,
    by_tid: FxHashMap<(i32, i32), u32>,
    by_native_id: FxHashMap<(i32, u64, u32), u32>,
    processes: Vec<IdentityFacts>,
    threads: Vec<(u32, IdentityFacts)>,
}

/// Facts about a process or thread.
#[derive(Clone, Debug, Default)]
struct IdentityFacts {
    id: Option<i32>,
    native_id: Option<u64>,
    name: Option<String>,
    start_ns: Option<i64>,
    end_ns: Option<i64>,
}

impl IdentityFacts {
    fn with_id(id: i32) -> Self {
        Self { id: Some(id), ..Self::default() }
    }
}

impl Identities {
    /// Key of a process.
    pub fn process(&mut self, pid: i32) -> u32 {
        *self.by_pid.entry(pid).or_insert_with(|| {
            self.processes.push(IdentityFacts::with_id(pid));
            (self.processes.len() - 1) as u32
        })
    }

    /// Key of a thread.
    pub fn thread(&mut self, pid: i32, tid: i32) -> u32 {
        if let Some(&id) = self.by_tid.get(&(pid, tid)) {
            return id;
        }
        let process_id = self.process(pid);
        let id = self.threads.len() as u32;
        self.threads.push((process_id, IdentityFacts::with_id(tid)));
        self.by_tid.insert((pid, tid), id);
        id
    }

    /// Key of a thread with an id of the recorder's own; `incarnation` distinguishes threads that had the same id in succession.
    pub fn native_thread(&mut self, pid: i32, native_id: u64, incarnation: u32) -> u32 {
        let process_id = self.process(pid);
        let next = self.threads.len() as u32;
        let id = *self.by_native_id.entry((pid, native_id, incarnation)).or_insert(next);
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
            facts.name = name.map(str::to_owned).or(facts.name.take());
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

    /// Keys and pids of all processes with a pid.
    #[must_use]
    pub fn pids(&self) -> Vec<(u32, i32)> {
        (0..).zip(&self.processes).filter_map(|(id, process)| Some((id, process.id?))).collect()
    }

    /// Sets the name of a thread, and of its process when it is the main thread.
    pub fn name(&mut self, pid: i32, tid: i32, name: &str) {
        let thread = self.thread(pid, tid) as usize;
        self.threads[thread].1.name = Some(name.to_owned());
        if pid == tid {
            let process = self.process(pid) as usize;
            self.processes[process].name = Some(name.to_owned());
        }
    }

    /// Names a process.
    pub fn name_process(&mut self, pid: i32, name: &str) {
        let process = self.process(pid) as usize;
        if let Some(process) = self.processes.get_mut(process) {
            process.name = Some(name.to_owned());
        }
    }

    /// Sets the start of a thread, and of its process when it is the main thread.
    pub fn start(&mut self, pid: i32, tid: i32, ts_ns: i64) {
        self.update(pid, tid, |facts| facts.start_ns = Some(ts_ns));
    }

    /// Sets the end of a thread, and of its process when it is the main thread.
    pub fn end(&mut self, pid: i32, tid: i32, ts_ns: i64) {
        self.update(pid, tid, |facts| facts.end_ns = Some(ts_ns));
    }

    /// Changes the facts of a thread, and of its process when it is the main thread.
    fn update(&mut self, pid: i32, tid: i32, set: impl Fn(&mut IdentityFacts)) {
        let thread = self.thread(pid, tid) as usize;
        set(&mut self.threads[thread].1);
        if pid == tid {
            let process = self.process(pid) as usize;
            set(&mut self.processes[process]);
        }
    }

    /// Table `processes`.
    #[must_use]
    pub fn processes(&self) -> arrow_array::RecordBatch {
        let mut table = processes::Builder::new();
        for (id, p) in self.processes.iter().enumerate() {
            table.push(id as u32, p.id.unwrap_or(0), p.name.as_deref(), p.start_ns, p.end_ns);
        }
        table.finish()
    }

    /// Table `threads`.
    #[must_use]
    pub fn threads(&self) -> arrow_array::RecordBatch {
        let mut table = threads::Builder::new();
        for (id, (process_id, t)) in self.threads.iter().enumerate() {
            let name = t.name.as_deref();
            table.push(id as u32, *process_id, t.id, t.native_id, name, t.start_ns, t.end_ns);
        }
        table.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_native_id_may_be_several_threads() {
        let mut ids = Identities::default();
        let first = ids.native_thread(7, 0x7f00, 0);
        assert_ne!(ids.native_thread(7, 0x7f00, 1), first);
        assert_eq!(ids.native_thread(7, 0x7f00, 0), first);
        ids.describe(first, Some("main"), Some(1), None);
        assert_eq!(ids.threads().num_rows(), 2);
    }

    #[test]
    fn two_sources_agree_on_a_thread() {
        let mut ids = Identities::default();
        let a = ids.thread(7, 9);
        ids.name(7, 7, "main");
        assert_eq!(ids.thread(7, 9), a);
        assert_eq!((ids.owner(a), ids.owner(a + 2)), (Some((7, 9)), None));
        assert_eq!(ids.processes().num_rows(), 1);
        assert_eq!(ids.threads().num_rows(), 2);
        assert_eq!(ids.processes().schema(), processes::SPEC.schema());
    }
}
