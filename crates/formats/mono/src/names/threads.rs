//! Threads: their ids are system addresses, which are reused.

use rustc_hash::FxHashMap;

use crate::consts::EventByte;
use crate::survey::Survey;
use crate::survey::facts::ThreadFact;

/// A thread. Threads with the same id are distinguished by their start events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Its id.
    pub id: u64,
    /// Number of earlier threads with the same id.
    pub incarnation: u32,
    /// Its names, in the order of their assignment.
    pub names: Vec<Box<str>>,
    /// Time of its start, if recorded.
    pub start: Option<u64>,
    /// Time of its end, if recorded.
    pub end: Option<u64>,
    /// Time of the first known event of the thread.
    first: u64,
}

/// All threads of a log.
#[derive(Debug, Default)]
pub struct Threads {
    /// In the order of their first buffers.
    pub list: Vec<Thread>,
    /// Index of the thread of each buffer.
    buffers: Vec<u32>,
    /// Indices of the threads of each id.
    by_id: FxHashMap<u64, Vec<u32>>,
}

impl Threads {
    pub(super) fn new(survey: &Survey) -> Self {
        let mut all = Self::default();
        let mask = survey.dialect.pointer_mask();
        let mut facts = survey.facts.threads.iter().peekable();
        for (number, buffer) in survey.buffers.list.iter().enumerate() {
            let id = buffer.header.thread_id & mask;
            let mut current = all.last(id).unwrap_or_else(|| all.begin(id, buffer.header.time_base));
            while let Some(fact) = facts.next_if(|fact| fact.buffer == number) {
                if fact.own && fact.what == EventByte::METADATA_END_LOAD {
                    current = all.start(current, fact);
                } else if fact.own {
                    all.note(current, fact);
                }
            }
            all.buffers.push(current);
        }
        // Facts in the buffers of other threads need the complete list of threads.
        for fact in survey.facts.threads.iter().filter(|fact| !fact.own) {
            let thread = all.at(fact.thread, fact.time).unwrap_or_else(|| all.begin(fact.thread, fact.time));
            if fact.what == EventByte::METADATA_END_LOAD {
                all.start(thread, fact);
            } else {
                all.note(thread, fact);
            }
        }
        all
    }

    /// Index of the latest thread with an id.
    fn last(&self, id: u64) -> Option<u32> {
        self.by_id.get(&id)?.last().copied()
    }

    /// Adds a thread; returns its index.
    fn begin(&mut self, id: u64, first: u64) -> u32 {
        let number = self.list.len() as u32;
        let before = self.by_id.entry(id).or_default();
        let incarnation = before.len() as u32;
        before.push(number);
        self.list.push(Thread { id, incarnation, first, ..Thread::default() });
        number
    }

    /// Handles a start event: of the current thread if that has neither start nor end, otherwise of a new thread with
    /// its id. Returns the index.
    fn start(&mut self, current: u32, fact: &ThreadFact) -> u32 {
        let fresh = self.get(current).is_some_and(|it| it.start.is_none() && it.end.is_none());
        let number = if fresh { current } else { self.begin(fact.thread, fact.time) };
        if let Some(thread) = self.list.get_mut(number as usize) {
            thread.start = Some(fact.time);
            thread.first = thread.first.min(fact.time);
        }
        number
    }

    /// Stores the name or the end of a thread.
    fn note(&mut self, number: u32, fact: &ThreadFact) {
        let Some(thread) = self.list.get_mut(number as usize) else { return };
        if fact.what == EventByte::METADATA_NAME {
            thread.names.push(fact.name.clone());
        } else {
            thread.end = Some(fact.time);
        }
    }

    fn get(&self, number: u32) -> Option<&Thread> {
        self.list.get(number as usize)
    }

    /// Index of the thread of a buffer.
    #[must_use]
    #[inline]
    pub fn of_buffer(&self, buffer: usize) -> u32 {
        self.buffers.get(buffer).copied().unwrap_or(0)
    }

    /// Index of the thread that has an id at a time.
    #[must_use]
    pub fn at(&self, id: u64, time: u64) -> Option<u32> {
        let all = self.by_id.get(&id)?;
        let began = all.iter().rev().find(|&&number| self.get(number).is_some_and(|it| it.first <= time));
        began.or(all.first()).copied()
    }
}
