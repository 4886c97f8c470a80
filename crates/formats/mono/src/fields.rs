//! The encoding of each event, described once for reading, writing and describing.
//!
//! A [`FieldVisitor`] visits the fields in file order: one reads them from bytes, one appends them to bytes, one
//! lists them by name.

use crate::consts::{EventByte, PERFCOUNTERS, counter, metadata as mtypes};
use crate::dialect::LogDialect;
use crate::records::{
    CounterDescription, CounterEntry, CounterPayload, Event, EventBody, HeapRootEntry, Reference,
};

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
        list: &mut Vec<CounterEntry<'a>>,
        each: impl FnMut(&mut Self, &mut CounterEntry<'a>),
    );
    /// Whether flags and a name follow where the specification has none and mprof-report reads them: assemblies until data
    /// version 10. `name` is the name of an event that is encoded.
    fn has_name(&self, name: &[u8]) -> bool {
        !name.is_empty()
    }
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
        0 => visit_alloc(visitor, event),
        1 => visit_gc(visitor, event),
        2 => visit_metadata(visitor, event),
        3 => visit_method(visitor, event),
        4 => visit_exception(visitor, event),
        5 => visit_monitor(visitor, event),
        6 => visit_heap(visitor, event),
        7 => visit_sample(visitor, event),
        8 => visit_runtime(visitor, event),
        9 => visit_coverage(visitor, event),
        _ => visit_meta(visitor, event),
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
        EventByte::METADATA_LOAD_ERR => version < 11,
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

/// The class of an object; since data version 15, its vtable.
#[inline]
fn visit_class<'a, C: FieldVisitor<'a>>(c: &mut C, value: &mut u64) {
    c.pointer(if c.dialect().has_vtables() { "vtable" } else { "class" }, value);
}

/// The `flags` value before names, until data version 12.
#[inline]
fn visit_flags<'a, C: FieldVisitor<'a>>(c: &mut C, flags: &mut u64) {
    if !c.dialect().since_v13() {
        c.value("flags", flags);
    }
}

/// The backtrace, if the event has one.
#[inline]
fn visit_backtrace<'a, C: FieldVisitor<'a>>(c: &mut C, event: &mut Event<'a>) {
    if !event.has_backtrace() {
        return;
    }
    visit_flags(c, &mut event.flags);
    if c.dialect().since_v13() {
        c.backtrace(event.byte, &mut event.frames, |c, frame| c.method("method", frame));
    } else {
        c.backtrace(event.byte, &mut event.frames, |c, frame| c.pointer("method", frame));
    }
}

/// Fields of ALLOC events.
#[inline]
pub(super) fn visit_alloc<'a, C: FieldVisitor<'a>>(c: &mut C, event: &mut Event<'a>) {
    c.time(&mut event.time);
    if let EventBody::Alloc { class: of, object, size } = &mut event.body {
        visit_class(c, of);
        c.object("object", object);
        c.value("size", size);
        // An object has a header at least. A file system stores zeros for what was never written, and five of them
        // would be an allocation.
        if *size == 0 {
            c.reject("size", 0, "the size of an object");
        }
    }
    visit_backtrace(c, event);
}

/// Fields of GC events.
#[inline]
pub(super) fn visit_gc<'a, C: FieldVisitor<'a>>(c: &mut C, event: &mut Event<'a>) {
    c.time(&mut event.time);
    match &mut event.body {
        EventBody::GcEvent { event, generation } => {
            c.code("event", event);
            c.code("generation", generation);
        }
        EventBody::GcResize { size } => c.value("size", size),
        EventBody::GcMove => c.objects("objects", &mut event.addresses),
        EventBody::HandleCreated { kind, handle, object } => {
            c.value("type", kind);
            c.value("handle", handle);
            c.object("object", object);
        }
        EventBody::HandleDestroyed { kind, handle } => {
            c.value("type", kind);
            c.value("handle", handle);
        }
        EventBody::FinalizeObject { object } => c.object("object", object),
        _ => {}
    }
    visit_backtrace(c, event);
}

/// Fields of METADATA events.
#[inline]
pub(super) fn visit_metadata<'a, C: FieldVisitor<'a>>(c: &mut C, event: &mut Event<'a>) {
    c.time(&mut event.time);
    let EventBody::Metadata(it) = &mut event.body else { return };
    let loaded = event.byte == EventByte::METADATA_END_LOAD;
    c.byte("mtype", &mut it.mtype);
    c.pointer("pointer", &mut it.pointer);
    let version = c.dialect().version;
    match it.mtype {
        mtypes::CLASS => {
            c.pointer("image", &mut it.image);
            visit_flags(c, &mut event.flags);
            c.text("name", &mut it.name);
        }
        mtypes::IMAGE => {
            visit_flags(c, &mut event.flags);
            c.text("name", &mut it.name);
            if loaded && c.dialect().is_profiler_3() {
                c.text("mvid", &mut it.mvid);
            }
        }
        mtypes::ASSEMBLY if version >= 11 || c.has_name(it.name) => {
            if version >= 14 {
                c.pointer("image", &mut it.image);
            }
            visit_flags(c, &mut event.flags);
            c.text("name", &mut it.name);
        }
        mtypes::DOMAIN if version >= 11 => {
            visit_flags(c, &mut event.flags);
            if event.byte == EventByte::METADATA_NAME {
                c.text("name", &mut it.name);
            }
        }
        // Until 10 the specification has these, without further fields; the profiler never wrote them.
        mtypes::ASSEMBLY | mtypes::DOMAIN => {}
        mtypes::THREAD if version > 1 || c.dialect().minor > 1 => {
            visit_flags(c, &mut event.flags);
            if event.byte == EventByte::METADATA_NAME {
                c.text("name", &mut it.name);
            }
        }
        mtypes::CONTEXT if version >= 11 => {
            visit_flags(c, &mut event.flags);
            c.pointer("domain", &mut it.domain);
        }
        mtypes::VTABLE if version >= 15 => {
            c.pointer("domain", &mut it.domain);
            c.pointer("class", &mut it.class);
        }
        other => c.reject("mtype", other, "a kind of metadata of this data version"),
    }
}

/// Fields of METHOD events.
#[inline]
pub(super) fn visit_method<'a, C: FieldVisitor<'a>>(c: &mut C, event: &mut Event<'a>) {
    c.time(&mut event.time);
    match &mut event.body {
        EventBody::Call { method } => c.method("method", method),
        EventBody::Jit { method, code, size, name } => {
            c.method("method", method);
            c.pointer("code", code);
            c.value("size", size);
            c.text("name", name);
        }
        _ => {}
    }
}

/// Fields of EXCEPTION events.
#[inline]
pub(super) fn visit_exception<'a, C: FieldVisitor<'a>>(c: &mut C, event: &mut Event<'a>) {
    c.time(&mut event.time);
    match &mut event.body {
        EventBody::Throw { object } => c.object("object", object),
        EventBody::Clause { kind, index, method, object } => {
            c.code("type", kind);
            c.value("index", index);
            c.method("method", method);
            if c.dialect().version >= 14 {
                c.object("object", object);
            }
        }
        _ => {}
    }
    visit_backtrace(c, event);
}

/// Fields of MONITOR events.
#[inline]
pub(super) fn visit_monitor<'a, C: FieldVisitor<'a>>(c: &mut C, event: &mut Event<'a>) {
    c.time(&mut event.time);
    if let EventBody::Monitor { event: what, object } = &mut event.body {
        // Before data version 14 the kind is part of the event byte.
        match event.byte.0 >> 4 & 7 {
            0 => c.byte("event", what),
            kind => *what = kind.into(),
        }
        c.object("object", object);
    }
    visit_backtrace(c, event);
}

/// Fields of HEAP events.
#[inline]
pub(super) fn visit_heap<'a, C: FieldVisitor<'a>>(c: &mut C, event: &mut Event<'a>) {
    let is_untimed = matches!(event.byte, EventByte::HEAP_OBJECT | EventByte::HEAP_ROOT);
    if !is_untimed || c.dialect().since_v13() {
        c.time(&mut event.time);
    }
    let version = c.dialect().version;
    match &mut event.body {
        EventBody::HeapObject(it) => {
            c.object("object", &mut it.object);
            visit_class(c, &mut it.class);
            c.value("size", &mut it.size);
            if c.dialect().is_profiler_3() {
                c.byte("generation", &mut it.generation);
            }
            let mut last = 0;
            c.list("references", &mut event.references, |c, reference: &mut Reference| {
                if version >= 2 {
                    c.increasing("offset", &mut last, &mut reference.offset);
                }
                c.object("object", &mut reference.target);
            });
        }
        EventBody::HeapRoot(it) => {
            if c.dialect().has_vtables() {
                return c.list("roots", &mut event.roots, |c, root: &mut HeapRootEntry| {
                    c.pointer("slot", &mut root.slot);
                    c.object("object", &mut root.object);
                });
            }
            let has_byte_type = version == 13;
            let mut num = event.roots.len() as u64;
            c.value("num_roots", &mut num);
            c.value("collections", &mut it.collections);
            c.entries("roots", num, &mut event.roots, |c, root| {
                c.object("object", &mut root.object);
                if has_byte_type {
                    c.byte("type", &mut root.kind)
                } else {
                    c.value("type", &mut root.kind)
                }
                c.value("extra", &mut root.extra);
            });
        }
        EventBody::RootRegister { start, size, source, key, name } => {
            c.pointer("start", start);
            c.value("size", size);
            c.byte("source", source);
            c.pointer("key", key);
            c.text("name", name);
        }
        EventBody::RootUnregister { start } => c.pointer("start", start),
        _ => {}
    }
}

/// Fields of SAMPLE events.
#[inline]
pub(super) fn visit_sample<'a, C: FieldVisitor<'a>>(c: &mut C, event: &mut Event<'a>) {
    let version = c.dialect().version;
    if c.dialect().since_v13() || event.byte == EventByte::SAMPLE_UBIN {
        c.time(&mut event.time);
    }
    match &mut event.body {
        EventBody::SampleHit { kind, timestamp, thread } => {
            if version < 13 {
                c.value("type", kind);
                c.value("timestamp", timestamp);
            } else if version == 13 || c.dialect().prerelease.sample_type {
                c.byte("type", kind);
            }
            if version >= 11 {
                c.pointer("thread", thread);
            }
            c.list("ips", &mut event.addresses, |c, ip| c.pointer("ip", ip));
            let frame_positions = &mut event.frame_positions;
            match version {
                6..=12 => {
                    let mut at = 0usize;
                    c.list("frames", &mut event.frames, |c, frame| {
                        c.method("method", frame);
                        if frame_positions.get(at).is_none() {
                            frame_positions.push(Default::default());
                        }
                        if let Some(position) = frame_positions.get_mut(at) {
                            c.signed("il_offset", &mut position.il_offset);
                            c.signed("native_offset", &mut position.native_offset);
                        }
                        at = at.saturating_add(1);
                    });
                }
                13.. => c.list("frames", &mut event.frames, |c, frame| c.method("method", frame)),
                _ => {}
            }
        }
        EventBody::SampleUsym { address, size, name } => {
            c.pointer("address", address);
            c.value("size", size);
            c.text("name", name);
        }
        EventBody::SampleUbin { address, offset, size, name } => {
            if version >= 14 {
                c.pointer("address", address)
            } else {
                c.absolute("address", address)
            }
            c.value("offset", offset);
            c.value("size", size);
            c.text("name", name);
        }
        EventBody::CountersDesc => c.list("counters", &mut event.descriptions, visit_counter_description),
        EventBody::Counters { ms } => {
            if version < 13 {
                c.value("ms", ms);
            }
            c.terminated_list("values", &mut event.values, visit_counter_value);
        }
        _ => {}
    }
}

/// Fields of a counter description.
fn visit_counter_description<'a, C: FieldVisitor<'a>>(c: &mut C, it: &mut CounterDescription<'a>) {
    c.value("section", &mut it.section);
    let performance = it.section == PERFCOUNTERS && c.dialect().version >= 7;
    if performance {
        c.text("category", &mut it.category);
    }
    c.text("name", &mut it.name);
    for (field, value) in [("type", &mut it.kind), ("unit", &mut it.unit), ("variance", &mut it.variance)] {
        if performance || c.dialect().has_byte_counter_fields() {
            c.byte(field, value)
        } else {
            c.value(field, value)
        }
    }
    c.value("index", &mut it.index);
}

/// Fields of a counter value.
fn visit_counter_value<'a, C: FieldVisitor<'a>>(c: &mut C, it: &mut CounterEntry<'a>) {
    if c.dialect().has_byte_counter_fields() {
        c.byte("type", &mut it.kind)
    } else {
        c.value("type", &mut it.kind)
    }
    match it.kind {
        counter::INT | counter::WORD | counter::LONG | counter::TIME_INTERVAL => {
            let mut number = if let CounterPayload::Signed(number) = it.value { number } else { 0 };
            c.signed("value", &mut number);
            it.value = CounterPayload::Signed(number);
        }
        counter::UINT | counter::ULONG => {
            let mut number = if let CounterPayload::Unsigned(number) = it.value { number } else { 0 };
            c.value("value", &mut number);
            it.value = CounterPayload::Unsigned(number);
        }
        counter::DOUBLE => {
            let mut bits = if let CounterPayload::Double(bits) = it.value { bits } else { 0 };
            c.double("value", &mut bits);
            it.value = CounterPayload::Double(bits);
        }
        counter::STRING => {
            let mut present = u64::from(it.value != CounterPayload::Null);
            if c.dialect().prerelease.bare_strings {
                present = 1;
            } else {
                c.byte("present", &mut present);
            }
            if present > 1 {
                return c.reject("present", present, "0 or 1");
            }
            if present == 0 {
                it.value = CounterPayload::Null;
                return;
            }
            let mut text = if let CounterPayload::Text(text) = it.value { text } else { b"" };
            c.text("value", &mut text);
            it.value = CounterPayload::Text(text);
        }
        other => c.reject("type", other, "a type of counter"),
    }
}

/// Fields of RUNTIME events.
#[inline]
pub(super) fn visit_runtime<'a, C: FieldVisitor<'a>>(c: &mut C, event: &mut Event<'a>) {
    c.time(&mut event.time);
    if let EventBody::JitHelper { kind, code, size, name } = &mut event.body {
        c.code("type", kind);
        c.pointer("code", code);
        c.value("size", size);
        let specific = if c.dialect().version < 14 { 6 } else { 5 };
        if *kind == specific {
            c.text("name", name);
        }
    }
}

/// Names of the texts and numbers of a coverage event.
fn coverage_fields(byte: EventByte) -> (&'static [&'static str], &'static [&'static str]) {
    match byte {
        EventByte::COVERAGE_ASSEMBLY => {
            (&["assembly", "guid", "file"], &["num_methods", "num_fully_covered", "num_partially_covered"])
        }
        EventByte::COVERAGE_METHOD => {
            (&["assembly", "class", "method", "signature", "file"], &["token", "method_id", "num_entries"])
        }
        EventByte::COVERAGE_STATEMENT => (&[], &["method_id", "il_offset", "count", "line", "column"]),
        _ => (&["assembly", "class"], &["num_methods", "num_fully_covered", "num_partially_covered"]),
    }
}

/// Fields of COVERAGE events.
pub(super) fn visit_coverage<'a, C: FieldVisitor<'a>>(c: &mut C, event: &mut Event<'a>) {
    if c.dialect().since_v13() {
        c.time(&mut event.time);
    }
    let (texts, numbers) = coverage_fields(event.byte);
    if let EventBody::Coverage(it) = &mut event.body {
        for (field, text) in texts.iter().zip(&mut it.texts) {
            c.text(field, text);
        }
        for (field, number) in numbers.iter().zip(&mut it.numbers) {
            c.value(field, number);
        }
    }
}

/// Fields of META events.
pub(super) fn visit_meta<'a, C: FieldVisitor<'a>>(c: &mut C, event: &mut Event<'a>) {
    c.time(&mut event.time);
    match &mut event.body {
        EventBody::SyncPoint { kind } => c.byte("type", kind),
        EventBody::AotId { id } => c.text("id", id),
        _ => {}
    }
}
