//! Processes, threads and their mappings, in time order.

use std::sync::Arc;

use linux_perf_event_reader::constants::PERF_RECORD_MISC_FORK_EXEC;
use perfuse_recording::AddressSpaceStart;
use rustc_hash::{FxHashMap, FxHashSet};

use super::consts::{RecordType, misc};
use super::features::text;
use super::layout::{Comm, CounterRead, Fork};
use super::reader::RecordFile;
use super::record::RecordLocation;
use super::records::MappingRecord;
use super::rounds::TimedRecord;
use super::survey::RecordSurvey;

/// Largest number of mappings that forked processes inherit in one recording: twice that of ten thousand sampled children of
/// a process with a hundred mappings. A crafted file could otherwise need the square of its size.
const MAX_INHERITED: u64 = 2_000_000;

/// Time after the record of an exec in which the address in user space is still that of the call: the kernel maps the new program
/// then, and sets the registers last.
const EXEC_NS: u64 = 1_000_000;

/// The kernel's name for the threads with id 0, one for each processor.
const IDLE_THREAD: &str = "swapper";
/// Largest size in bytes of a name that a child inherits; names of the kernel have at most 16.
const MAX_INHERITED_NAME_BYTES: usize = 64;

/// A row of the `mappings` table, by the locations of its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappingRow {
    /// MMAP or MMAP2 record.
    pub mapping: RecordLocation,
    /// Process; -1 for the kernel.
    pub pid: i32,
    /// Time of the mapping; 0 where it existed before the recording.
    pub ts: u64,
    /// FORK record of a process that inherited it from its parent.
    pub fork: Option<RecordLocation>,
}

/// A process that replaced its program (exec), which ends its earlier mappings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exec {
    /// Process.
    pub pid: i32,
    /// Time.
    pub ts: u64,
}

/// A fork of a process, which copies its address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessFork {
    /// The new process.
    pub pid: i32,
    /// The process that was forked.
    pub parent: i32,
    /// Time.
    pub ts: u64,
}

/// A fact about a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskFact {
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// Time; 0 for a fact from before the recording.
    pub ts: u64,
    /// Kind of the fact.
    pub kind: TaskFactKind,
}

/// Kind of a fact about a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskFactKind {
    /// It gets a name.
    Name(Arc<str>),
    /// It starts.
    Start,
    /// It ends.
    End,
    /// A record states something else of it: what was counted in it, its namespaces.
    Mentioned,
}

/// Mappings and facts of all processes and threads.
#[derive(Debug, Default)]
pub struct Tasks {
    /// Mappings, in time order; a later one of a process hides an earlier one where they overlap.
    pub mappings: Vec<MappingRow>,
    /// Processes that replaced their program, in time order.
    pub execs: Vec<Exec>,
    /// Forks of processes, in time order; without those of guests.
    pub forks: Vec<ProcessFork>,
    /// Facts about threads, in time order.
    pub facts: Vec<TaskFact>,
    /// FORK records of processes that got the pid of one that ended before, each with the pid.
    pub reused: Vec<(RecordLocation, i32)>,
    /// Number of inherited mappings beyond `MAX_INHERITED`, which have no rows.
    pub num_left_out: u64,
}

impl Tasks {
    /// Collects mappings and facts from the records of a survey.
    pub fn new(file: &RecordFile, survey: &RecordSurvey) -> Self {
        let mut builder = TasksBuilder {
            file,
            survey,
            tasks: Self::default(),
            images: Vec::new(),
            current: FxHashMap::default(),
            names: FxHashMap::default(),
            ended: FxHashSet::default(),
            num_inherited: 0,
            guest_kernels: Vec::new(),
        };
        if survey.sampled.contains_key(&0) || survey.counts.contains_key(&RecordType::SWITCH_CPU_WIDE) {
            // No record names the thread that a processor runs when it is idle.
            builder.set_name(0, 0, 0, Arc::from(IDLE_THREAD));
        }
        for &record in &survey.task_records {
            builder.add_record(record);
        }
        let mut remaining: Vec<_> = builder.current.drain().collect();
        remaining.sort_unstable();
        for (pid, image) in remaining {
            builder.inherit(pid, image, u64::MAX);
        }
        builder.add_guest_kernels();
        let mut tasks = builder.tasks;
        // Without times, what a process inherited precedes what it mapped itself.
        tasks.mappings.sort_by_key(|row| (row.ts, row.fork.is_none()));
        tasks
    }

    /// Starts of address spaces by forks and execs, in time order.
    pub fn address_spaces(&self) -> Vec<AddressSpaceStart> {
        let forks = self.forks.iter().map(|&ProcessFork { pid, parent, ts }| AddressSpaceStart {
            pid,
            ts,
            parent: Some(parent),
        });
        let execs = self.execs.iter().map(|&Exec { pid, ts }| AddressSpaceStart { pid, ts, parent: None });
        let mut starts: Vec<_> = forks.chain(execs).collect();
        starts.sort_by_key(|start| start.ts);
        starts
    }
}

/// A process from its beginning or an exec up to the next exec.
#[derive(Debug, Default)]
struct ProcessImage {
    /// The fork it began with.
    fork: Option<(RecordLocation, u64)>,
    /// The image it was forked from, and how many mappings of its own that one had then.
    parent: Option<(usize, usize)>,
    /// Rows of its own mappings.
    own: Vec<usize>,
}

/// [`Tasks`] under construction.
struct TasksBuilder<'a> {
    file: &'a RecordFile,
    survey: &'a RecordSurvey,
    tasks: Tasks,
    images: Vec<ProcessImage>,
    current: FxHashMap<i32, usize>,
    names: FxHashMap<(i32, i32), Arc<str>>,
    /// Processes whose first thread has ended.
    ended: FxHashSet<i32>,
    num_inherited: u64,
    /// Mappings of kernels of guests, each with its guest; 0 and -1 for any.
    guest_kernels: Vec<(i32, MappingRow)>,
}

impl TasksBuilder<'_> {
    fn add_record(&mut self, TimedRecord { time, location }: TimedRecord) {
        let Some(record) = self.file.at(location) else { return };
        let mut cursor = record.cursor(self.file.endian);
        match record.record_type {
            RecordType::MMAP | RecordType::MMAP2 | RecordType::KSYMBOL => {
                if let Some(mapping) = MappingRecord::read(&record, self.file.endian) {
                    if mapping.is_guest_kernel() {
                        let machine_pid = self.file.machine_pid(&record, mapping.pid);
                        self.guest_kernels.push((
                            machine_pid,
                            MappingRow { mapping: location, pid: -1, ts: time, fork: None },
                        ));
                        return;
                    }
                    let pid =
                        if mapping.is_kernel() { -1 } else { self.file.process_number(&record, mapping.pid) };
                    self.add_mapping(pid, time, location);
                }
            }
            RecordType::COMM => {
                let Ok(Comm { pid, tid }) = Comm::read(&mut cursor) else { return };
                let pid = self.file.process_number(&record, pid);
                self.set_name(pid, tid, time, Arc::from(text(cursor.rest())));
                // perf also writes such records for processes that ran before the recording, with time 0.
                if record.misc & misc::COMM_EXEC != 0 && time != 0 {
                    self.tasks.execs.push(Exec { pid, ts: time });
                    self.begin_image(pid, time, ProcessImage::default());
                }
            }
            RecordType::FORK => {
                let Ok(mut fork) = Fork::read(&mut cursor) else { return };
                fork.pid = self.file.process_number(&record, fork.pid);
                fork.ppid = self.file.process_number(&record, fork.ppid);
                // perf sets this bit for tasks that existed before the recording, whose mappings it records too, and no time. The
                // kernel writes a time also where others have none (`--no-timestamp`).
                let existed_before =
                    time.max(fork.time) == 0 || record.misc & PERF_RECORD_MISC_FORK_EXEC != 0;
                self.add_fork(&fork, time, location, existed_before);
            }
            // The fields of EXIT are those of FORK.
            RecordType::EXIT => {
                let Ok(Fork { pid, tid, .. }) = Fork::read(&mut cursor) else { return };
                let pid = self.file.process_number(&record, pid);
                self.tasks.facts.push(TaskFact { pid, tid, ts: time, kind: TaskFactKind::End });
                if pid == tid {
                    self.ended.insert(pid);
                }
            }
            // Both begin with the thread.
            RecordType::READ | RecordType::NAMESPACES => {
                let Ok(CounterRead { pid, tid }) = CounterRead::read(&mut cursor) else { return };
                let pid = self.file.process_number(&record, pid);
                self.tasks.facts.push(TaskFact { pid, tid, ts: time, kind: TaskFactKind::Mentioned });
            }
            _ => {}
        }
    }

    /// Adds the mappings of each guest's kernel to those of its sampled processes.
    fn add_guest_kernels(&mut self) {
        if self.guest_kernels.is_empty() {
            return;
        }
        let mut sampled: Vec<i32> = self.survey.sampled.keys().copied().filter(|&pid| pid < -1).collect();
        sampled.sort_unstable_by(|a, b| b.cmp(a));
        for pid in sampled {
            let Some(process) = self.file.guests.process(pid) else { continue };
            for &(machine_pid, row) in &self.guest_kernels {
                if machine_pid == process.machine_pid || machine_pid <= 0 {
                    self.tasks.mappings.push(MappingRow { pid, ..row });
                }
            }
        }
    }

    fn set_name(&mut self, pid: i32, tid: i32, ts: u64, name: Arc<str>) {
        self.names.insert((pid, tid), name.clone());
        self.tasks.facts.push(TaskFact { pid, tid, ts, kind: TaskFactKind::Name(name) });
    }

    fn add_mapping(&mut self, pid: i32, ts: u64, location: RecordLocation) {
        let row = self.tasks.mappings.len();
        self.tasks.mappings.push(MappingRow { mapping: location, pid, ts, fork: None });
        if pid != -1 {
            let image = self.image(pid);
            if let Some(image) = self.images.get_mut(image) {
                image.own.push(row);
            }
        }
    }

    fn add_fork(&mut self, fork: &Fork, ts: u64, location: RecordLocation, existed_before: bool) {
        let &Fork { pid, ppid, tid, ptid, .. } = fork;
        if !existed_before && ts != 0 {
            self.tasks.facts.push(TaskFact { pid, tid, ts, kind: TaskFactKind::Start });
        }
        if let Some(name) = self.names.get(&(ppid, ptid)).cloned()
            && name.len() <= MAX_INHERITED_NAME_BYTES
        {
            self.set_name(pid, tid, ts, name);
        }
        if existed_before || pid == ppid {
            return;
        }
        if self.ended.remove(&pid) {
            self.tasks.reused.push((location, pid));
        }
        if pid >= 0 && ppid >= 0 {
            self.tasks.forks.push(ProcessFork { pid, parent: ppid, ts });
        }
        let parent = self.image(ppid);
        let parent = match self.images.get(parent) {
            // An image without mappings is skipped, so that every ancestor in a chain has mappings.
            Some(ProcessImage { own, parent, .. }) if own.is_empty() => *parent,
            Some(ProcessImage { own, .. }) => Some((parent, own.len())),
            None => None,
        };
        self.begin_image(pid, ts, ProcessImage { fork: Some((location, ts)), parent, own: Vec::new() });
    }

    /// Index of the current image of a process.
    fn image(&mut self, pid: i32) -> usize {
        if let Some(&image) = self.current.get(&pid) {
            return image;
        }
        self.begin_image(pid, 0, ProcessImage::default());
        self.images.len().saturating_sub(1)
    }

    fn begin_image(&mut self, pid: i32, ts: u64, image: ProcessImage) {
        if let Some(previous) = self.current.insert(pid, self.images.len()) {
            self.inherit(pid, previous, ts);
        }
        self.images.push(image);
    }

    /// Adds rows for the mappings that a forked process inherited, when its image ends. Images without samples get no rows:
    /// most children call exec immediately. Samples of that call are samples of the image.
    fn inherit(&mut self, pid: i32, image: usize, end: u64) {
        let Some(&ProcessImage { fork: Some((fork, ts)), parent, .. }) = self.images.get(image) else {
            return;
        };
        let sampled = self.survey.sampled.get(&pid);
        let end = end.saturating_add(EXEC_NS);
        if !sampled.is_some_and(|&(first, last)| first <= end && last >= ts) {
            return;
        }
        let mut ancestors = Vec::new();
        let mut ancestor = parent;
        while let Some((index, num_own)) = ancestor
            && let Some(image) = self.images.get(index)
        {
            ancestors.push((index, num_own));
            ancestor = image.parent;
            self.num_inherited = self.num_inherited.saturating_add(num_own as u64);
            if self.num_inherited > MAX_INHERITED {
                self.tasks.num_left_out = self.tasks.num_left_out.saturating_add(num_own as u64);
                return;
            }
        }
        // The oldest ancestor first: mappings of a younger one hide those of an older one.
        for (index, num_own) in ancestors.into_iter().rev() {
            let Some(image) = self.images.get(index) else { continue };
            for &row in image.own.iter().take(num_own) {
                if let Some(&inherited) = self.tasks.mappings.get(row) {
                    self.tasks.mappings.push(MappingRow { pid, ts, fork: Some(fork), ..inherited });
                }
            }
        }
    }
}
