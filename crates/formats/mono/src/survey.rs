//! The survey of a log: one parallel scan of all buffers for counts, damage and definitions.

pub mod definitions;
pub mod events;
pub mod rare_events;
pub mod totals;

use perfuse_recording::Source;

use crate::consts::{EventByte, KindSet};
use crate::decode::backtraces::{KnownBacktraces, Meaning};
use crate::decode::runs::AllocEvent;
use crate::dialect::LogDialect;
use crate::reader::BufferList;
use crate::records::Event;
use crate::survey::events::EventSurvey;

/// The result of the survey.
#[derive(Debug)]
pub struct LogSurvey {
    /// The encoding of the events.
    pub dialect: LogDialect,
    /// The buffers of the log.
    pub buffers: BufferList,
    /// What the events of all buffers contain.
    pub events: EventSurvey,
}

impl LogSurvey {
    /// Surveys a log whose first buffer has the file offset `first`.
    #[must_use]
    pub fn new(data: &Source, dialect: LogDialect, first: u64) -> Self {
        let buffers = BufferList::find(data, first);
        let mut events = EventSurvey::of(data, &buffers.list, dialect);
        let mut best = dialect;
        // A truncated buffer ends inside an event in every encoding.
        let is_truncated =
            |number: &usize| buffers.list.get(*number).is_none_or(|it| it.len < it.header.len.into());
        let num_misread =
            |events: &EventSurvey| events.faults.iter().filter(|(number, _)| !is_truncated(number)).count();
        // No field of the file distinguishes the layouts of one data version: the one with the fewest unreadable
        // buffers is selected.
        if num_misread(&events) > 0 {
            for other in dialect.candidates().into_iter().skip(1) {
                let others = EventSurvey::of(data, &buffers.list, other);
                if num_misread(&others) < num_misread(&events) {
                    (events, best) = (others, other);
                }
            }
        }
        definitions::clear_invalid_sizes(&mut events.definitions.methods);
        events.rare_events.finish();
        Self { dialect: best, buffers, events }
    }

    /// Passes every event of these kinds in a buffer to `each`, with its time or that of the previous timed event.
    /// Events of the kinds in `without_backtraces` may lack their backtraces.
    #[inline]
    pub fn for_each_event<'a>(
        &self,
        data: &'a [u8],
        number: usize,
        kinds: KindSet,
        without_backtraces: KindSet,
        mut each: impl FnMut(u64, &Event<'a>),
    ) {
        let Some(buffer) = self.buffers.list.get(number) else { return };
        let mut decoder = buffer.decoder(data, self.dialect).skip_backtraces(without_backtraces);
        let mut event = Event::default();
        if let Some(rare_events) = self.rare_events_of(number, kinds) {
            for position in rare_events.iter().filter(|position| kinds.has(position.byte)) {
                decoder.jump_to(position.state);
                if let Some(Ok(())) = decoder.read(&mut event) {
                    each(event.time.unwrap_or(position.state.time()), &event);
                }
            }
            return;
        }
        let mut time = buffer.header.time_base;
        while let Some(Ok(())) = decoder.read(&mut event) {
            time = event.time.unwrap_or(time);
            if kinds.has(event.byte) {
                each(time, &event);
            }
        }
    }

    /// Passes every allocation of a buffer to `each`, without its backtrace.
    #[inline]
    pub fn for_each_alloc(&self, data: &[u8], number: usize, mut each: impl FnMut(&AllocEvent)) {
        let Some(buffer) = self.buffers.list.get(number) else { return };
        let mut decoder = buffer.decoder(data, self.dialect).skip_backtraces(KindSet::all());
        let mut event = Event::default();
        loop {
            while let Some(alloc) = decoder.read_alloc() {
                each(&alloc);
            }
            let Some(Ok(())) = decoder.read(&mut event) else { return };
            if let Some(alloc) = AllocEvent::of(&event) {
                each(&alloc);
            }
        }
    }

    /// Passes every allocation of a buffer to `each`, with what its backtrace stands for. `meaning_of` gets the methods of
    /// a backtrace that `known` does not contain, and the time.
    #[inline]
    pub fn for_each_alloc_and_backtrace<T: Copy>(
        &self,
        data: &[u8],
        number: usize,
        known: &mut KnownBacktraces<T>,
        mut meaning_of: impl FnMut(&[u64], u64) -> Meaning<T>,
        mut each: impl FnMut(&AllocEvent, T),
    ) {
        let Some(buffer) = self.buffers.list.get(number) else { return };
        let mut decoder = buffer.decoder(data, self.dialect);
        let mut event = Event::default();
        loop {
            while let Some((alloc, value)) = decoder.read_alloc_and_backtrace(known, &mut meaning_of) {
                each(&alloc, value);
            }
            let Some(Ok(())) = decoder.read(&mut event) else { return };
            if let Some(alloc) = AllocEvent::of(&event) {
                each(&alloc, meaning_of(&event.frames, alloc.time).value());
            }
        }
    }

    /// Positions of the rare events of a buffer, if all of these kinds are rare; `None` if the buffer must be read
    /// whole.
    fn rare_events_of(&self, number: usize, kinds: KindSet) -> Option<&[rare_events::EventPosition]> {
        if rare_events::are_rare(kinds) { self.events.rare_events.in_buffer(number) } else { None }
    }

    /// Number of events of a kind.
    #[must_use]
    pub fn count(&self, byte: EventByte) -> u64 {
        self.events.counts.get(usize::from(byte.0)).copied().unwrap_or(0)
    }

    /// Index in the log of the first event of each buffer.
    #[must_use]
    pub fn first_indices(&self) -> Vec<u64> {
        let running = self.events.events_per_buffer.iter().scan(0u64, |next, length| {
            let first = *next;
            *next = next.saturating_add(*length);
            Some(first)
        });
        running.collect()
    }

    /// Number of all readable events.
    #[must_use]
    pub fn num_events(&self) -> u64 {
        self.events.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }
}
