//! Survey of consecutive buffers, as one parallel task.

use perfuse_wire::ParseError;

use super::allocated::{Adder, Allocated};
use super::facts::Facts;
use super::marks::Marks;
use super::shots::{self, Held};
use crate::consts::{EventByte, KindSet};
use crate::decode::{BareObject, Decoder};
use crate::dialect::Dialect;
use crate::reader::Buffer;
use crate::records::{Body, Event};

/// The results from some buffers.
pub(super) struct Part {
    pub counts: [u64; 256],
    pub span: Option<(u64, u64)>,
    pub faults: Vec<(usize, ParseError)>,
    pub facts: Facts,
    pub allocated: Allocated,
    pub held: Held,
    pub num_moves: u64,
    pub marks: Marks,
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
            num_moves: 0,
            marks: Marks::default(),
            kinds: Vec::new(),
            lengths: Vec::new(),
        }
    }

    /// Adds the results from the following buffers.
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
        self.num_moves = self.num_moves.saturating_add(other.num_moves);
        self.marks.append(other.marks);
        self.kinds.extend(other.kinds);
        self.lengths.extend(other.lengths);
        self
    }
}

/// A task that surveys consecutive buffers.
pub(super) struct Task {
    part: Part,
    dialect: Dialect,
    allocated: Adder,
    held: shots::Adder,
}

/// The results from the current buffer.
struct Tally {
    thread: u64,
    kinds: KindSet,
    length: u64,
    first: u64,
    last: u64,
}

impl Tally {
    /// Extends the time span. Mono 4.6 writes time 0 in the first COUNTERS event.
    #[inline(always)]
    fn time(&mut self, time: u64) {
        if time != 0 {
            (self.first, self.last) = (self.first.min(time), self.last.max(time));
        }
    }
}

/// Number of METHOD_ENTER, METHOD_LEAVE and METHOD_EXC_LEAVE events among `num` calls, from the sums of the bits 0x10
/// and 0x20 of their event bytes. This needs fewer additions per call than three counts.
fn kinds_of_calls(num: u64, lower: u64, upper: u64) -> (u64, u64, u64) {
    // The event bytes are 0x23, 0x13 and 0x33.
    let (lower, upper) = (lower >> 4, upper >> 5);
    let thrown = lower.wrapping_add(upper).wrapping_sub(num);
    (upper.wrapping_sub(thrown), lower.wrapping_sub(thrown), thrown)
}

impl Task {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self { part: Part::new(), dialect, allocated: Adder::new(), held: shots::Adder::default() }
    }

    pub(super) fn finish(self) -> Part {
        Part { allocated: self.allocated.finish(), held: self.held.finish(), ..self.part }
    }

    /// Surveys a buffer.
    pub(super) fn read(&mut self, data: &[u8], number: usize, buffer: &Buffer) {
        let mut decoder = buffer.decoder(data, self.dialect).lean(KindSet::all());
        let mut event = Event::default();
        let thread = buffer.header.thread_id & self.dialect.pointer_mask();
        let mut tally = Tally { thread, kinds: KindSet::default(), length: 0, first: u64::MAX, last: 0 };
        self.part.facts.begin(number, buffer, self.dialect.pointer_mask());
        self.part.marks.begin(buffer.len);
        loop {
            self.runs(&mut decoder, &mut tally);
            let state = decoder.state();
            let Some(read) = decoder.read(&mut event) else { break };
            if let Err(error) = read {
                self.part.faults.push((number, error));
                break;
            }
            self.part.marks.add(event.byte, state);
            self.event(&event, &mut tally);
        }
        self.part.marks.end();
        self.allocated.end(number, buffer, self.part.facts.tell_of_own_thread());
        self.part.facts.num_frames = self.part.facts.num_frames.saturating_add(decoder.num_passed());
        self.part.kinds.push(tally.kinds);
        self.part.lengths.push(tally.length);
        if tally.first <= tally.last {
            let (a, b) = self.part.span.unwrap_or((tally.first, tally.last));
            self.part.span = Some((a.min(tally.first), b.max(tally.last)));
        }
    }

    /// Surveys the following run of frequent events: allocations and moves, calls, or heapshot objects.
    #[inline]
    fn runs(&mut self, decoder: &mut Decoder<'_>, tally: &mut Tally) {
        let Some(next) = decoder.next_byte() else { return };
        let before = tally.length;
        if matches!(next, EventByte::ALLOC | EventByte::ALLOC_BT | EventByte::GC_MOVE) {
            let (mut with_stack, mut without, mut moves) = (0u64, 0u64, 0u64);
            loop {
                if let Some(it) = decoder.alloc() {
                    let is_with_stack = u64::from(it.byte == EventByte::ALLOC_BT);
                    with_stack = with_stack.wrapping_add(is_with_stack);
                    without = without.wrapping_add(1 ^ is_with_stack);
                    tally.time(it.time);
                    self.allocated.add(it.class, it.object, it.size, it.time, it.offset);
                } else if let Some((num_addresses, time)) = decoder.moves() {
                    moves = moves.wrapping_add(1);
                    self.part.num_moves = self.part.num_moves.saturating_add(num_addresses / 2);
                    tally.time(time);
                } else {
                    break;
                }
            }
            self.count(EventByte::ALLOC_BT, with_stack, tally);
            self.count(EventByte::ALLOC, without, tally);
            self.count(EventByte::GC_MOVE, moves, tally);
        } else if Decoder::is_call(next) {
            let (mut num, mut lower, mut upper) = (0u64, 0u64, 0u64);
            let (mut first, mut last) = (u64::MAX, 0);
            decoder.bare_calls(|call, time| {
                num = num.wrapping_add(1);
                lower = lower.wrapping_add((call.0 & 0x10).into());
                upper = upper.wrapping_add((call.0 & 0x20).into());
                // Maps time 0, which is not a time, to the maximum.
                first = first.min(time.wrapping_sub(1));
                last = last.max(time);
            });
            tally.time(first.wrapping_add(1));
            tally.time(last);
            let (entered, left, thrown) = kinds_of_calls(num, lower, upper);
            self.count(EventByte::METHOD_ENTER, entered, tally);
            self.count(EventByte::METHOD_LEAVE, left, tally);
            self.count(EventByte::METHOD_EXC_LEAVE, thrown, tally);
        } else if next == EventByte::HEAP_OBJECT {
            let mut num = 0u64;
            let (held, thread, is_timed) = (&mut self.held, tally.thread, self.dialect.modern());
            decoder.shot_objects(|object| {
                held.add(thread, &object);
                num = num.wrapping_add(1);
                if is_timed {
                    tally.time(object.time);
                }
            });
            self.count(next, num, tally);
        }
        if tally.length != before {
            self.part.facts.pass_to(decoder.time());
        }
    }

    /// Adds to the number of events of a kind.
    #[inline]
    fn count(&mut self, byte: EventByte, more: u64, tally: &mut Tally) {
        if more > 0 {
            tally.kinds.add(byte);
            tally.length = tally.length.wrapping_add(more);
            if let Some(count) = self.part.counts.get_mut(usize::from(byte.0)) {
                *count = count.wrapping_add(more);
            }
        }
    }

    /// Surveys an event that is not part of a run.
    #[inline]
    fn event(&mut self, event: &Event<'_>, tally: &mut Tally) {
        self.count(event.byte, 1, tally);
        if let Some(time) = event.time {
            tally.time(time);
        }
        self.part.facts.note(event);
        match event.body {
            Body::Alloc { class, object, size } => {
                self.allocated.add(class, object, size, event.time.unwrap_or(0), event.offset);
            }
            Body::GcMove => {
                let num = event.addresses.len() as u64 / 2;
                self.part.num_moves = self.part.num_moves.saturating_add(num);
            }
            Body::HeapMark => self.held.end(),
            Body::HeapObject(it) => {
                let (time, num_references) = (self.part.facts.time(), event.references.len() as u64);
                let it = BareObject::of(&it, time, num_references, event.offset);
                self.held.add(tally.thread, &it);
            }
            _ => {}
        }
    }
}
