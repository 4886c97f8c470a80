//! Threads: their ids are system addresses, which are reused.

use rustc_hash::FxHashMap;

use crate::consts::EventByte;
use crate::survey::LogSurvey;
use crate::survey::facts::ThreadRecord;

/// A thread. Threads with the same id are distinguished by their start events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogThread {
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
    first_time: u64,
}

/// All threads of a log.
#[derive(Debug, Default)]
pub struct LogThreads {
    /// In the order of their first buffers.
    pub list: Vec<LogThread>,
    /// Index of the thread of each buffer.
    buffers: Vec<u32>,
    /// Indices of the threads of each id.
    by_id: FxHashMap<u64, Vec<u32>>,
}

impl LogThreads {
    pub(super) fn new(survey: &LogSurvey) -> Self {
        let mut all = Self::default();
        let mask = survey.dialect.pointer_mask();
        let mut definitions = survey.definitions.threads.iter().peekable();
        for (number, buffer) in survey.buffers.list.iter().enumerate() {
            let id = buffer.header.thread_id & mask;
            let mut current = all.latest(id).unwrap_or_else(|| all.add_thread(id, buffer.header.time_base));
            while let Some(record) = definitions.next_if(|record| record.buffer == number) {
                if record.own && record.what == EventByte::METADATA_END_LOAD {
                    current = all.add_start(current, record);
                } else if record.own {
                    all.add_name_or_end(current, record);
                }
            }
            all.buffers.push(current);
        }
        // Facts in the buffers of other threads need the complete list of threads.
        for record in survey.definitions.threads.iter().filter(|record| !record.own) {
            let thread = all
                .at(record.thread, record.time)
                .unwrap_or_else(|| all.add_thread(record.thread, record.time));
            if record.what == EventByte::METADATA_END_LOAD {
                all.add_start(thread, record);
            } else {
                all.add_name_or_end(thread, record);
            }
        }
        all
    }

    /// Index of the latest thread with an id.
    fn latest(&self, id: u64) -> Option<u32> {
        self.by_id.get(&id)?.last().copied()
    }

    /// Adds a thread; returns its index.
    fn add_thread(&mut self, id: u64, first_time: u64) -> u32 {
        let number = self.list.len() as u32;
        let before = self.by_id.entry(id).or_default();
        let incarnation = before.len() as u32;
        before.push(number);
        self.list.push(LogThread { id, incarnation, first_time, ..LogThread::default() });
        number
    }

    /// Handles a start event: of the current thread if that has neither start nor end, otherwise of a new thread with
    /// its id. Returns the index.
    fn add_start(&mut self, current: u32, record: &ThreadRecord) -> u32 {
        let is_new = self.get(current).is_some_and(|it| it.start.is_none() && it.end.is_none());
        let number = if is_new { current } else { self.add_thread(record.thread, record.time) };
        if let Some(thread) = self.list.get_mut(number as usize) {
            thread.start = Some(record.time);
            thread.first_time = thread.first_time.min(record.time);
        }
        number
    }

    /// Stores the name or the end of a thread.
    fn add_name_or_end(&mut self, number: u32, record: &ThreadRecord) {
        let Some(thread) = self.list.get_mut(number as usize) else { return };
        if record.what == EventByte::METADATA_NAME {
            thread.names.push(record.name.clone());
        } else {
            thread.end = Some(record.time);
        }
    }

    fn get(&self, number: u32) -> Option<&LogThread> {
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
        let began =
            all.iter().rev().find(|&&number| self.get(number).is_some_and(|it| it.first_time <= time));
        began.or(all.first()).copied()
    }
}
