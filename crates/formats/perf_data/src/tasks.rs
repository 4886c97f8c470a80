//! Processes, threads and what they had mapped, told in time order.

use std::sync::Arc;

use linux_perf_event_reader::constants::PERF_RECORD_MISC_FORK_EXEC;
use rustc_hash::FxHashMap;

use super::consts::{RecordType, misc};
use super::features::text;
use super::layout::{Comm, Fork};
use super::order::Key;
use super::reader::{File, Location};
use super::records::Mapping;

/// Most mappings that forked processes may inherit in one recording. Ten thousand sampled children of a process of a
/// hundred mappings are half of it; a hostile file could ask for the square of its size.
const MAX_INHERITED: u64 = 2_000_000;

/// Longest name a child takes from its parent; the kernel's have 16 bytes at most.
const MAX_INHERITED_NAME_BYTES: usize = 64;

/// A row of the `mappings` table, still in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappingRow {
    /// Its MMAP or MMAP2 record.
    pub mapping: Location,
    /// Process that has it, -1 for the kernel.
    pub pid: i32,
    /// Since when, 0 where it was there before the recording.
    pub ts: u64,
    /// FORK record by which the process got it from its parent.
    pub fork: Option<Location>,
}

/// A process that replaced its program: nothing it had mapped before is there any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exec {
    /// Process.
    pub pid: i32,
    /// When.
    pub ts: u64,
}

/// What became known of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskFact {
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// When, 0 where it was so before the recording.
    pub ts: u64,
    /// What.
    pub kind: TaskFactKind,
}

/// Kinds of facts about threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskFactKind {
    /// It has this name.
    Name(Arc<str>),
    /// It began.
    Start,
    /// It ended.
    End,
}

/// The story of all tasks.
#[derive(Debug, Default)]
pub struct Tasks {
    /// Mappings, in time order; a later one of a process hides an earlier one where they overlap.
    pub mappings: Vec<MappingRow>,
    /// Processes that replaced their program.
    pub execs: Vec<Exec>,
    /// Facts about threads, in time order.
    pub facts: Vec<TaskFact>,
    /// Inherited mappings that were left out because there are too many.
    pub num_left_out: u64,
}

impl Tasks {
    /// Tells it from the records the survey gathered.
    pub fn new(file: &File) -> Self {
        let mut teller = Teller {
            file,
            tasks: Self::default(),
            images: Vec::new(),
            current: FxHashMap::default(),
            names: FxHashMap::default(),
            num_inherited: 0,
        };
        for &key in &file.survey().task_records {
            teller.take(key);
        }
        let mut left: Vec<_> = teller.current.drain().collect();
        left.sort_unstable();
        for (pid, image) in left {
            teller.inherit(pid, image, u64::MAX);
        }
        let mut tasks = teller.tasks;
        tasks.mappings.sort_by_key(|row| row.ts);
        tasks
    }
}

/// A process from its beginning or an exec up to the next exec.
#[derive(Debug, Default)]
struct Image {
    /// The fork it began with.
    fork: Option<(Location, u64)>,
    /// The image it was forked from, and how many mappings of its own that one had then.
    parent: Option<(usize, usize)>,
    /// Rows of its own mappings.
    own: Vec<usize>,
}

struct Teller<'a> {
    file: &'a File,
    tasks: Tasks,
    images: Vec<Image>,
    current: FxHashMap<i32, usize>,
    names: FxHashMap<(i32, i32), Arc<str>>,
    num_inherited: u64,
}

impl Teller<'_> {
    fn take(&mut self, Key { time, location }: Key) {
        let Some(record) = self.file.at(location) else { return };
        let mut cursor = record.cursor(self.file.endian);
        match record.record_type {
            RecordType::MMAP | RecordType::MMAP2 => {
                if let Some(mapping) = Mapping::read(self.file, &record) {
                    self.map(&mapping, time, location);
                }
            }
            RecordType::COMM => {
                let Ok(Comm { pid, tid }) = Comm::read(&mut cursor) else { return };
                self.name(pid, tid, time, Arc::from(text(cursor.rest())));
                // perf tells the same of processes that ran before the recording, at time 0.
                if record.misc & misc::COMM_EXEC != 0 && time != 0 {
                    self.tasks.execs.push(Exec { pid, ts: time });
                    self.begin(pid, time, Image::default());
                }
            }
            RecordType::FORK => {
                let Ok(fork) = Fork::read(&mut cursor) else { return };
                // Marked so where perf tells of tasks that were already there, and tells their mappings too.
                let told = time == 0 || record.misc & PERF_RECORD_MISC_FORK_EXEC != 0;
                self.fork(&fork, time, location, told);
            }
            // EXIT has the fields of FORK.
            RecordType::EXIT => {
                let Ok(Fork { pid, tid, .. }) = Fork::read(&mut cursor) else { return };
                self.tasks.facts.push(TaskFact { pid, tid, ts: time, kind: TaskFactKind::End });
            }
            _ => {}
        }
    }

    fn name(&mut self, pid: i32, tid: i32, ts: u64, name: Arc<str>) {
        self.names.insert((pid, tid), name.clone());
        self.tasks.facts.push(TaskFact { pid, tid, ts, kind: TaskFactKind::Name(name) });
    }

    fn map(&mut self, mapping: &Mapping<'_>, ts: u64, location: Location) {
        let pid = if mapping.is_kernel() { -1 } else { mapping.pid };
        let row = self.tasks.mappings.len();
        self.tasks.mappings.push(MappingRow { mapping: location, pid, ts, fork: None });
        if pid != -1 {
            let image = self.image(pid);
            if let Some(image) = self.images.get_mut(image) {
                image.own.push(row);
            }
        }
    }

    fn fork(&mut self, fork: &Fork, ts: u64, location: Location, told: bool) {
        let &Fork { pid, ppid, tid, ptid, .. } = fork;
        if !told {
            self.tasks.facts.push(TaskFact { pid, tid, ts, kind: TaskFactKind::Start });
        }
        if let Some(name) = self.names.get(&(ppid, ptid)).cloned()
            && name.len() <= MAX_INHERITED_NAME_BYTES
        {
            self.name(pid, tid, ts, name);
        }
        if told || pid == ppid {
            return;
        }
        let parent = self.image(ppid);
        let parent = match self.images.get(parent) {
            // Skipped, so that a walk over ancestors finds mappings at every step.
            Some(Image { own, parent, .. }) if own.is_empty() => *parent,
            Some(Image { own, .. }) => Some((parent, own.len())),
            None => None,
        };
        self.begin(pid, ts, Image { fork: Some((location, ts)), parent, own: Vec::new() });
    }

    fn image(&mut self, pid: i32) -> usize {
        if let Some(&image) = self.current.get(&pid) {
            return image;
        }
        self.begin(pid, 0, Image::default());
        self.images.len().saturating_sub(1)
    }

    fn begin(&mut self, pid: i32, ts: u64, image: Image) {
        if let Some(before) = self.current.insert(pid, self.images.len()) {
            self.inherit(pid, before, ts);
        }
        self.images.push(image);
    }

    /// Lists what a process that was forked has of its ancestors' mappings, now that its image ends. Most children exec
    /// at once and need none of it: those that no sample was taken in are left out.
    fn inherit(&mut self, pid: i32, image: usize, end: u64) {
        let Some(&Image { fork: Some((fork, ts)), parent, .. }) = self.images.get(image) else { return };
        let sampled = self.file.survey().sampled.get(&pid);
        if !sampled.is_some_and(|&(first, last)| first <= end && last >= ts) {
            return;
        }
        let mut line = Vec::new();
        let mut ancestor = parent;
        while let Some((index, num_own)) = ancestor
            && let Some(image) = self.images.get(index)
        {
            line.push((index, num_own));
            ancestor = image.parent;
            self.num_inherited = self.num_inherited.saturating_add(num_own as u64);
            if self.num_inherited > MAX_INHERITED {
                self.tasks.num_left_out = self.tasks.num_left_out.saturating_add(num_own as u64);
                return;
            }
        }
        // The oldest ancestor first: what a younger one mapped hides it.
        for (index, num_own) in line.into_iter().rev() {
            let Some(image) = self.images.get(index) else { continue };
            for &row in image.own.iter().take(num_own) {
                if let Some(&inherited) = self.tasks.mappings.get(row) {
                    self.tasks.mappings.push(MappingRow { pid, ts, fork: Some(fork), ..inherited });
                }
            }
        }
    }
}
