//! Threads: their ids are addresses of the system's, which gives them to later threads again.

use rustc_hash::FxHashMap;

use crate::consts::EventByte;
use crate::survey::Survey;
use crate::survey::facts::ThreadFact;

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Its id.
    pub id: u64,
    /// How many had the id before it.
    pub incarnation: u32,
    /// Its names, in the order it was given them.
    pub names: Vec<Box<str>>,
    /// When it started, where that was recorded.
    pub start: Option<u64>,
    /// When it ended, where that was recorded.
    pub end: Option<u64>,
    /// Time of the first that is known of it.
    first: u64,
}

/// All threads of a log.
#[derive(Debug, Default)]
pub struct Threads {
    /// In the order of their first buffers.
    pub list: Vec<Thread>,
    /// By buffer.
    buffers: Vec<u32>,
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
        // What is said in buffers of other threads needs all threads to be known.
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

    fn last(&self, id: u64) -> Option<u32> {
        self.by_id.get(&id)?.last().copied()
    }

    fn begin(&mut self, id: u64, first: u64) -> u32 {
        let number = self.list.len() as u32;
        let before = self.by_id.entry(id).or_default();
        let incarnation = before.len() as u32;
        before.push(number);
        self.list.push(Thread { id, incarnation, first, ..Thread::default() });
        number
    }

    /// A thread starts: this one, if nothing is known of its start or end, else another with its id.
    fn start(&mut self, current: u32, fact: &ThreadFact) -> u32 {
        let fresh = self.get(current).is_some_and(|it| it.start.is_none() && it.end.is_none());
        let number = if fresh { current } else { self.begin(fact.thread, fact.time) };
        if let Some(thread) = self.list.get_mut(number as usize) {
            thread.start = Some(fact.time);
            thread.first = thread.first.min(fact.time);
        }
        number
    }

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

    /// Number of the thread of a buffer.
    #[must_use]
    #[inline]
    pub fn of_buffer(&self, buffer: usize) -> u32 {
        self.buffers.get(buffer).copied().unwrap_or(0)
    }

    /// Number of the thread that has an id at a time.
    #[must_use]
    pub fn at(&self, id: u64, time: u64) -> Option<u32> {
        let all = self.by_id.get(&id)?;
        let began = all.iter().rev().find(|&&number| self.get(number).is_some_and(|it| it.first <= time));
        began.or(all.first()).copied()
    }
}
