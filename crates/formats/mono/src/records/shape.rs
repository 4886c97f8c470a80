//! The encoding of each event, described once for reading, writing and describing. A [`FieldVisitor`] visits the fields in
//! file order: one reads them from bytes, one appends them to bytes, one lists them by name.

use super::{CounterValue, Event, family};
use crate::consts::EventByte;
use crate::dialect::LogDialect;

/// A visitor of the fields of an event.
pub trait FieldVisitor<'a> {
    /// The encoding of the log.
    fn dialect(&self) -> &LogDialect;
    /// The event's time: uleb128, difference to the previous one.
    fn time(&mut self, time: &mut Option<u64>);
    /// One byte.
    fn byte(&mut self, field: &'static str, value: &mut u64);
    /// An unsigned number: uleb128.
    fn value(&mut self, field: &'static str, value: &mut u64);
    /// A signed number: sleb128.
    fn signed(&mut self, field: &'static str, value: &mut i64);
    /// A pointer: sleb128, difference to the base of the buffer.
    fn pointer(&mut self, field: &'static str, value: &mut u64);
    /// An absolute address: sleb128.
    fn absolute(&mut self, field: &'static str, value: &mut u64);
    /// An object: sleb128, difference to the base of the buffer, in units of 8 bytes.
    fn object(&mut self, field: &'static str, value: &mut u64);
    /// A method: sleb128, difference to the previous one.
    fn method(&mut self, field: &'static str, value: &mut u64);
    /// A text and its terminating NUL.
    fn text(&mut self, field: &'static str, value: &mut &'a [u8]);
    /// The bits of a double: 8 bytes.
    fn double(&mut self, field: &'static str, bits: &mut u64);
    /// A number that increases from entry to entry: uleb128, difference to `last`.
    fn increasing(&mut self, field: &'static str, last: &mut u64, value: &mut u64);
    /// The number of entries, then the entries.
    fn list<T: Default>(
        &mut self,
        field: &'static str,
        list: &mut Vec<T>,
        each: impl FnMut(&mut Self, &mut T),
    );
    /// The number of objects, then the objects.
    #[inline]
    fn objects(&mut self, field: &'static str, list: &mut Vec<u64>) {
        self.list(field, list, |visitor, object| visitor.object("object", object));
    }
    /// A backtrace of an event of a kind: the number of frames, then the frames.
    #[inline]
    fn backtrace(&mut self, _: EventByte, list: &mut Vec<u64>, each: impl FnMut(&mut Self, &mut u64)) {
        self.list("frames", list, each);
    }
    /// Entries whose number was visited before.
    fn entries<T: Default>(
        &mut self,
        field: &'static str,
        num: u64,
        list: &mut Vec<T>,
        each: impl FnMut(&mut Self, &mut T),
    );
    /// Entries that each start with a nonzero number; 0 ends the list.
    fn terminated_list(
        &mut self,
        field: &'static str,
        list: &mut Vec<CounterValue<'a>>,
        each: impl FnMut(&mut Self, &mut CounterValue<'a>),
    );
    /// Reports a value that the encoding does not allow.
    fn reject(&mut self, field: &'static str, value: u64, expected: &'static str);

    /// An enumeration: one byte since data version 13, a number before.
    #[inline]
    fn code(&mut self, field: &'static str, value: &mut u64) {
        if self.dialect().since_v13() { self.byte(field, value) } else { self.value(field, value) }
    }
}

/// Visits the fields after the event byte. `event.body` has the kind of `event.byte`.
#[inline]
pub fn visit_fields<'a, C: FieldVisitor<'a>>(visitor: &mut C, event: &mut Event<'a>) {
    if !is_defined(event.byte, visitor.dialect()) {
        return visitor.reject("event", event.byte.0.into(), "an event of this data version");
    }
    match event.byte.0 & 0xf {
        0 => family::visit_alloc(visitor, event),
        1 => family::visit_gc(visitor, event),
        2 => family::visit_metadata(visitor, event),
        3 => family::visit_method(visitor, event),
        4 => family::visit_exception(visitor, event),
        5 => family::visit_monitor(visitor, event),
        6 => family::visit_heap(visitor, event),
        7 => family::visit_sample(visitor, event),
        8 => family::visit_runtime(visitor, event),
        9 => family::visit_coverage(visitor, event),
        _ => family::visit_meta(visitor, event),
    }
}

/// Whether an encoding defines an event.
#[must_use]
#[inline]
pub fn is_defined(byte: EventByte, dialect: &LogDialect) -> bool {
    let version = dialect.version;
    match byte {
        EventByte::GC_HANDLE_CREATED | EventByte::GC_HANDLE_DESTROYED => version > 1 || dialect.minor > 1,
        EventByte::GC_HANDLE_CREATED_BT | EventByte::GC_HANDLE_DESTROYED_BT => version >= 11,
        EventByte::GC_FINALIZE_START
        | EventByte::GC_FINALIZE_END
        | EventByte::GC_FINALIZE_OBJECT_START
        | EventByte::GC_FINALIZE_OBJECT_END
        | EventByte::SYNC_POINT => version >= 13,
        EventByte::METADATA_NAME => version > 1 || dialect.minor > 1,
        EventByte::METADATA_END_UNLOAD => version >= 11,
        EventByte::MONITOR | EventByte::MONITOR_BT => version >= 14,
        EventByte::MONITOR_CONTENTION
        | EventByte::MONITOR_DONE
        | EventByte::MONITOR_FAIL
        | EventByte::MONITOR_CONTENTION_BT => version < 14,
        EventByte::HEAP_ROOT => version >= 3,
        EventByte::HEAP_ROOT_REGISTER | EventByte::HEAP_ROOT_UNREGISTER => version >= 15,
        EventByte::SAMPLE_HIT | EventByte::SAMPLE_USYM => version >= 4,
        EventByte::SAMPLE_UBIN => version >= 4 && !dialect.is_profiler_3(),
        EventByte::COUNTERS_DESC | EventByte::COUNTERS => version >= 5,
        EventByte::JITHELPER => version >= 8,
        EventByte::COVERAGE_ASSEMBLY
        | EventByte::COVERAGE_METHOD
        | EventByte::COVERAGE_STATEMENT
        | EventByte::COVERAGE_CLASS => (10..=15).contains(&version),
        EventByte::AOT_ID => dialect.is_profiler_3(),
        _ => true,
    }
}
