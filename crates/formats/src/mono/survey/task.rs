//! What of the survey one task reads: some buffers that follow each other.

use perfuse_wire::ParseError;

use super::allocated::{Adder, Allocated};
use super::facts::Facts;
use super::marks::{Marker, Marks};
use super::shots::{self, Held};
use crate::mono::consts::{EventByte, KindSet};
use crate::mono::decode::{BareObject, Decoder};
use crate::mono::dialect::Dialect;
use crate::mono::reader::Buffer;
use crate::mono::records::{Body, Event};

/// Events whose backtraces are not looked at: those that there may be very many of.
const PASSED_OVER: KindSet = KindSet::of(&[EventByte::ALLOC_BT, EventByte::SAMPLE_HIT]);

/// What was found in some buffers.
pub(super) struct Part {
    pub counts: [u64; 256],
    pub span: Option<(u64, u64)>,
    pub faults: Vec<(usize, ParseError)>,
    pub facts: Facts,
    pub allocated: Allocated,
    pub held: Held,
    pub num_moved: u64,
    pub marks: Vec<Marks>,
    pub kinds: Vec<KindSet>,
    pub lengths: Vec<u64>,
}

impl Part {
    pub(super) fn new() -> Self {
        Self {
            counts: [0; 256],
            span: None,
            faults: Vec::new(),
            facts: Facts::default(),
            allocated: Allocated::default(),
            held: Held::default(),
            num_moved: 0,
            marks: Vec::new(),
            kinds: Vec::new(),
            lengths: Vec::new(),
        }
    }

    pub(super) fn merge(mut self, other: Self) -> Self {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count = count.saturating_add(more);
        }
        self.span = match (self.span, other.span) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
        self.faults.extend(other.faults);
        self.facts.append(other.facts);
        self.allocated.append(other.allocated);
        self.held.append(other.held);
        self.num_moved = self.num_moved.saturating_add(other.num_moved);
        self.marks.extend(other.marks);
        self.kinds.extend(other.kinds);
        self.lengths.extend(other.lengths);
        self
    }
}

/// A task at work.
pub(super) struct Task {
    part: Part,
    dialect: Dialect,
    allocated: Adder,
    held: shots::Adder,
    marker: Marker,
}

/// What is kept of a buffer's events while it is read.
struct Tally {
    thread: u64,
    kinds: KindSet,
    length: u64,
    first: u64,
    last: u64,
}

impl Tally {
    /// Mono 4.6 writes 0 as the time of the first values of counters.
    #[inline(always)]
    fn time(&mut self, time: u64) {
        if time != 0 {
            (self.first, self.last) = (self.first.min(time), self.last.max(time));
        }
    }
}

impl Task {
    pub(super) fn new(dialect: Dialect) -> Self {
        let (allocated, held, marker) = (Adder::new(), shots::Adder::default(), Marker::default());
        Self { part: Part::new(), dialect, allocated, held, marker }
    }

    pub(super) fn finish(self) -> Part {
        Part { allocated: self.allocated.finish(), held: self.held.finish(), ..self.part }
    }

    pub(super) fn read(&mut self, data: &[u8], number: usize, buffer: &Buffer) {
        let mut decoder = buffer.decoder(data, self.dialect).lean(PASSED_OVER);
        let mut event = Event::default();
        let thread = buffer.header.thread_id & self.dialect.pointer_mask();
        let mut tally =
            Tally { thread, kinds: KindSet::default(), length: 0, first: u64::MAX, last: 0 };
        self.part.facts.begin(number, buffer, self.dialect.pointer_mask());
        self.marker.begin(buffer);
        loop {
            self.runs(&mut decoder, &mut tally);
            let state = decoder.state_of_its_own();
            let Some(read) = decoder.read(&mut event) else { break };
            if let Err(error) = read {
                self.part.faults.push((number, error));
                break;
            }
            self.marker.note(event.byte, state);
            self.event(&event, &mut tally);
        }
        self.allocated.end(number, buffer, self.part.facts.tell_of_own_thread());
        self.part.facts.num_frames = self.part.facts.num_frames.saturating_add(decoder.num_passed());
        self.part.marks.push(self.marker.end());
        self.part.kinds.push(tally.kinds);
        self.part.lengths.push(tally.length);
        if tally.first <= tally.last {
            let (a, b) = self.part.span.unwrap_or((tally.first, tally.last));
            self.part.span = Some((a.min(tally.first), b.max(tally.last)));
        }
    }

    /// Calls and objects of heap shots that come next.
    #[inline]
    fn runs(&mut self, decoder: &mut Decoder<'_>, tally: &mut Tally) {
        let Some(next) = decoder.next_byte() else { return };
        let before = tally.length;
        if Decoder::is_call(next) {
            let counts = &mut self.part.counts;
            decoder.calls(|call| {
                if let Some(count) = counts.get_mut(usize::from(call.byte.0)) {
                    *count = count.wrapping_add(1);
                }
                tally.kinds.add(call.byte);
                tally.length = tally.length.wrapping_add(1);
                tally.time(call.time);
            });
        } else if next == EventByte::HEAP_OBJECT {
            let (held, thread, is_timed) = (&mut self.held, tally.thread, self.dialect.modern());
            decoder.objects(|object| {
                held.add(thread, &object);
                tally.length = tally.length.wrapping_add(1);
                if is_timed {
                    tally.time(object.time);
                }
            });
            let num = tally.length.wrapping_sub(before);
            if num > 0 {
                tally.kinds.add(next);
            }
            if let Some(count) = self.part.counts.get_mut(usize::from(next.0)) {
                *count = count.wrapping_add(num);
            }
        }
        if tally.length != before {
            self.part.facts.go_on(decoder.time());
        }
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>, tally: &mut Tally) {
        if let Some(count) = self.part.counts.get_mut(usize::from(event.byte.0)) {
            *count = count.wrapping_add(1);
        }
        tally.kinds.add(event.byte);
        tally.length = tally.length.wrapping_add(1);
        if let Some(time) = event.time {
            tally.time(time);
        }
        self.part.facts.note(event);
        match event.body {
            Body::Alloc { .. } => self.allocated.add(event),
            Body::GcMove => {
                let num = event.addresses.len() as u64 / 2;
                self.part.num_moved = self.part.num_moved.saturating_add(num);
            }
            Body::HeapMark => self.held.end(),
            Body::HeapObject(it) => {
                let (time, num_references) = (self.part.facts.time(), event.references.len() as u64);
                let (class, size, offset) = (it.class, it.size, event.offset);
                self.held.add(tally.thread, &BareObject { time, class, size, num_references, offset });
            }
            _ => {}
        }
    }
}
