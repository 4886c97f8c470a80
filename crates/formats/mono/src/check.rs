//! Compares a log with the specification of its data version, event by event.

use std::borrow::Cow;

use perfuse_wire::{Diagnostics, Rule};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::consts::{EventByte, metadata as mtypes};
use crate::log::LogData;
use crate::open_calls;
use crate::reader::{BufferDamage, EventBuffer};
use crate::records::{Event, EventBody};
use crate::rules::*;
use crate::survey::LogSurvey;

pub use crate::rules::RULES;

/// Reports every violation of the specification.
pub fn check(log: &LogData, sink: &mut Diagnostics) {
    findings(log, sink);
    let survey = log.survey();
    report_derived_stacks(survey, sink);
    let mut state = LogCheck::new(log, sink);
    let mut event = Event::default();
    for buffer in &survey.buffers.list {
        state.check_buffer(buffer);
        let mut decoder = buffer.decoder(&log.source, survey.dialect);
        while let Some(Ok(())) = decoder.read(&mut event) {
            state.check_event(&event, buffer);
            state.index = state.index.saturating_add(1);
        }
        log.source.release(buffer.offset as usize..buffer.end() as usize);
    }
    state.finish();
}

/// Reports the violations that the survey of the log has already found.
pub fn findings(log: &LogData, sink: &mut Diagnostics) {
    check_header(log, sink);
    let survey = log.survey();
    for loss in &survey.buffers.damage {
        let (rule, offset, message): (&'static Rule, _, _) = match *loss {
            BufferDamage::Truncated { offset, missing } => {
                (&CUT, offset, format!("{missing} bytes of the buffer are missing"))
            }
            BufferDamage::TruncatedHeader { offset } => {
                (&HEADER_CUT, offset, "the file ends here".to_owned())
            }
            BufferDamage::WrongLength { offset, stated } => {
                (&BUFFER_LENGTH, offset, format!("length {stated} ends after the start of the next buffer"))
            }
            BufferDamage::NotABuffer { offset, len } => {
                (&NO_BUFFER, offset, format!("{len} bytes were skipped"))
            }
        };
        sink.push(rule, offset, None, "", || message.into());
    }
    for (buffer, error) in &survey.events.faults {
        let end = survey.buffers.list.get(*buffer).map_or(error.offset, EventBuffer::end);
        let num_lost = end.saturating_sub(error.offset);
        sink.push(&EVENT, error.offset, None, error.field, || {
            format!("{error}; the last {num_lost} bytes of the buffer are lost").into()
        });
    }
    if survey.buffers.list.is_empty() {
        let message = || "nothing was recorded".into();
        sink.push(&NO_EVENTS, log.header.size.min(log.source.len() as u64), None, "", message);
    }
    check_end(log, sink);
}

/// Reports events whose stacks are those of the calls that are open, by kind.
fn report_derived_stacks(survey: &LogSurvey, sink: &mut Diagnostics) {
    let kinds = open_calls::kinds(survey);
    let counts = EventByte::ALL.iter().filter(|byte| kinds.has(**byte));
    let counts: Vec<_> = counts.map(|byte| format!("{} {byte}", survey.count(*byte))).collect();
    if !counts.is_empty() {
        sink.push(&STACKS_OF_CALLS, 0, None, "", || counts.join(", ").into());
    }
}

/// Names of threads in a message.
const MAX_NAMES: usize = 4;

/// Reports a log that ends at the end of a buffer, but before the end of the program. There is no footer; since data version
/// 13 the profiler writes the end of every thread when the program ends. Logs without the profiler's options are converted
/// from other versions.
fn check_end(log: &LogData, sink: &mut Diagnostics) {
    let survey = log.survey();
    let is_cut = survey
        .buffers
        .damage
        .iter()
        .any(|it| matches!(it, BufferDamage::Truncated { .. } | BufferDamage::TruncatedHeader { .. }));
    let args = log.header.texts.as_ref().map(|[args, ..]| String::from_utf8_lossy(args)).unwrap_or_default();
    if is_cut || !survey.dialect.since_v13() || args.trim_end_matches('\0').is_empty() {
        return;
    }
    let started = || log.names().threads.list.iter().filter(|thread| thread.start.is_some());
    let open: Vec<_> = started().filter(|thread| thread.end.is_none()).collect();
    if open.is_empty() {
        return;
    }
    sink.push(&UNFINISHED, log.source.len() as u64, None, "", || {
        let named = open.iter().filter_map(|thread| thread.names.last()).take(MAX_NAMES);
        let mut names = named.map(|name| &**name).collect::<Vec<_>>().join(", ");
        if !names.is_empty() {
            names = format!(" ({names}{})", if open.len() > MAX_NAMES { ", ..." } else { "" });
        }
        let has_last_shot = args.contains("heapshot-on-shutdown");
        let shot = if has_last_shot { ", and the heap shot on shutdown" } else { "" };
        let is_damaged = !survey.buffers.damage.is_empty();
        let or_damaged = if is_damaged { " or which are in damaged bytes" } else { "" };
        format!(
            "{} of {} threads have no end{names}: their last events are missing, which the profiler had not written yet{or_damaged}{shot}",
            open.len(),
            started().count(),
        )
        .into()
    });
}

/// Reports violations in the file header.
fn check_header(log: &LogData, sink: &mut Diagnostics) {
    let header = &log.header;
    let fixed = header.fixed;
    let mut report =
        |rule, offset, field, message: String| sink.push(rule, offset, None, field, || message.into());
    let flags = if fixed.major >= 3 { 28 } else { 20 };
    if header.flags != 0 {
        report(&HEADER_FLAGS, flags, "flags", format!("flags are {:#x}", header.flags));
    }
    if fixed.startup_time == 0 {
        report(&NO_START, 8, "startup_time", "startup_time is 0".to_owned());
    }
    if fixed.format == 0 {
        report(&FOREIGN, 6, "format", format!("profiler {}.{}", fixed.major, fixed.minor));
    }
    let mut offset = flags.saturating_add(10);
    for (text, field) in header.texts.iter().flatten().zip(["args", "arch", "os"]) {
        if text.last() != Some(&0) {
            report(&HEADER_TEXT, offset, field, format!("{field} has {} bytes and no NUL", text.len()));
        }
        offset = offset.saturating_add(4).saturating_add(text.len() as u64);
    }
    let dialect = log.survey().dialect;
    if dialect != header.dialect() {
        report(&EARLY_LAYOUT, 6, "format", format!("read as data version {}", dialect.name()));
    }
}

/// The state of a check: what earlier events have established.
struct LogCheck<'a> {
    /// Receives the violations.
    sink: &'a mut Diagnostics,
    /// Index of the current event.
    index: u64,
    version: u8,
    is_profiler_3: bool,
    /// Offset of the first description of each class or vtable.
    types: FxHashMap<u64, u64>,
    /// Offset of the first description of each method.
    methods: FxHashMap<u64, u64>,
    /// Counters that are described.
    counters: FxHashSet<u64>,
    /// Offsets of METHOD_JIT events whose method has no code.
    no_code: FxHashSet<u64>,
    calls: OpenCalls,
    /// Latest event time of each thread.
    last_times: FxHashMap<u64, u64>,
    /// Time of the previous event of the buffer, or the buffer's base time.
    last_time: u64,
    /// Offset of the HEAP_START of the heapshot in progress.
    open_heapshot: Option<u64>,
}

impl<'a> LogCheck<'a> {
    /// Creates the state and reports reused thread ids.
    fn new(log: &'a LogData, sink: &'a mut Diagnostics) -> Self {
        let survey = log.survey();
        let mut types = FxHashMap::default();
        for record in &survey.events.definitions.metadata {
            if [mtypes::CLASS, mtypes::VTABLE].contains(&record.mtype) {
                types.entry(record.pointer).or_insert(record.offset);
            }
        }
        let mut methods = FxHashMap::default();
        for method in &survey.events.definitions.methods {
            methods.entry(method.method).or_insert(method.offset);
        }
        let mut starts = FxHashMap::<u64, u64>::default();
        for thread in
            survey.events.definitions.threads.iter().filter(|it| it.what == EventByte::METADATA_END_LOAD)
        {
            let count = starts.entry(thread.thread).or_insert(0);
            *count = count.saturating_add(1);
        }
        let mut reused: Vec<_> = starts.into_iter().filter(|(_, count)| *count > 1).collect();
        reused.sort_unstable();
        for (thread, count) in reused {
            sink.push(&THREAD_REUSED, 0, None, "thread", || {
                format!("{count} threads were {thread:#x}").into()
            });
        }
        Self {
            sink,
            index: 0,
            version: survey.dialect.version,
            is_profiler_3: survey.dialect.is_profiler_3(),
            types,
            methods,
            counters: survey.events.definitions.counters.iter().map(|counter| counter.index).collect(),
            no_code: survey
                .events
                .definitions
                .methods
                .iter()
                .filter(|it| it.size == 0)
                .map(|it| it.offset)
                .collect(),
            calls: OpenCalls::default(),
            last_times: FxHashMap::default(),
            last_time: 0,
            open_heapshot: None,
        }
    }

    /// Reports a violation at the current event.
    fn report(
        &mut self,
        rule: &'static Rule,
        offset: u64,
        field: &'static str,
        message: impl FnOnce() -> String,
    ) {
        self.sink.push(rule, offset, Some(self.index), field, || Cow::Owned(message()));
    }

    /// Checks a buffer header.
    fn check_buffer(&mut self, buffer: &EventBuffer) {
        let (thread, time) = (buffer.header.thread_id, buffer.header.time_base);
        if buffer.header.len == 0 {
            self.report(&EMPTY_BUFFER, buffer.offset, "len", || "a buffer without events".to_owned());
        }
        if self.last_times.get(&thread).is_some_and(|&last| time < last) {
            let message = || format!("thread {thread:#x} has a later event in an earlier buffer");
            self.report(&BUFFER_ORDER, buffer.offset, "time_base", message);
        }
        self.last_time = time;
    }

    /// Checks one event.
    fn check_event(&mut self, event: &Event<'_>, buffer: &EventBuffer) {
        let (thread, offset) = (buffer.header.thread_id, event.offset);
        if let Some(time) = event.time {
            if time < self.last_time {
                let back = self.last_time.wrapping_sub(time);
                self.report(&NEGATIVE_TIME, offset, "time", || {
                    format!("{back} ns before the previous event")
                });
            }
            self.last_time = time;
            let last = self.last_times.entry(thread).or_insert(time);
            *last = time.max(*last);
        }
        if event.flags != 0 {
            let flags = event.flags;
            self.report(&EVENT_FLAGS, offset, "flags", || format!("flags are {flags:#x}"));
        }
        self.check_values(event);
        if event.has_backtrace() || event.byte == EventByte::SAMPLE_HIT {
            for &method in &event.frames {
                self.check_method(method, offset);
            }
        }
        match event.byte {
            EventByte::METHOD_ENTER => self.calls.enter(thread, &event.body, offset),
            EventByte::METHOD_LEAVE | EventByte::METHOD_EXC_LEAVE => {
                if let EventBody::Call { method } = event.body
                    && !self.calls.leave(thread, method)
                {
                    let message = || format!("method {method:#x} of thread {thread:#x}");
                    self.report(&LEAVE_WITHOUT_ENTER, offset, "method", message);
                }
            }
            EventByte::HEAP_START => self.open_heapshot = Some(offset),
            EventByte::HEAP_END if self.open_heapshot.is_none() => {
                self.report(&OUTSIDE_SHOT, offset, "event", || "HEAP_END without HEAP_START".to_owned());
            }
            EventByte::HEAP_END => self.open_heapshot = None,
            EventByte::HEAP_OBJECT if self.open_heapshot.is_none() => {
                self.report(&OUTSIDE_SHOT, offset, "event", || "HEAP_OBJECT without HEAP_START".to_owned());
            }
            _ => {}
        }
    }

    /// Reports a class or vtable that is never described, or described only later.
    fn check_class(&mut self, class: u64, offset: u64) {
        match self.types.get(&class) {
            Some(&described) if described <= offset => {}
            Some(_) => self.report(&LATE_NAMES, offset, "class", || format!("{class:#x} is described later")),
            None => self.report(&UNKNOWN_CLASS, offset, "class", || format!("{class:#x} is never described")),
        }
    }

    /// Reports a method that is never described, or described only later.
    fn check_method(&mut self, method: u64, offset: u64) {
        match self.methods.get(&method) {
            Some(&described) if described <= offset => {}
            Some(_) => {
                self.report(&LATE_NAMES, offset, "method", || format!("{method:#x} is described later"))
            }
            None => {
                self.report(&UNKNOWN_METHOD, offset, "method", || format!("{method:#x} is never described"))
            }
        }
    }

    /// Reports calls and a heapshot that are still open at the end of the log.
    fn finish(mut self) {
        for (thread, open, offset) in std::mem::take(&mut self.calls).into_open() {
            let message = || format!("{open} calls of thread {thread:#x}");
            self.sink.push(&OPEN_CALLS, offset, None, "method", || Cow::Owned(message()));
        }
        if let Some(offset) = self.open_heapshot {
            self.sink.push(&OPEN_SHOT, offset, None, "", || "no HEAP_END follows".into());
        }
    }
}

impl LogCheck<'_> {
    /// Checks the values of an event.
    pub(super) fn check_values(&mut self, event: &Event<'_>) {
        let offset = event.offset;
        match &event.body {
            EventBody::Alloc { class, .. } => self.check_class(*class, offset),
            EventBody::HeapObject(it) => self.check_class(it.class, offset),
            EventBody::Call { method } => self.check_method(*method, offset),
            EventBody::Clause { kind, method, .. } => {
                if ![0, 1, 2, 4].contains(kind) {
                    self.report(&CLAUSE_TYPE, offset, "type", || format!("type {kind}"));
                }
                self.check_method(*method, offset);
            }
            EventBody::GcEvent { event, generation } => {
                if *generation > 1 {
                    self.report(&GENERATION, offset, "generation", || format!("generation {generation}"));
                }
                let is_defined = if self.version < 14 { *event <= 11 } else { matches!(event, 0 | 5..=11) };
                if !is_defined {
                    self.report(&GC_PHASE, offset, "event", || format!("event {event}"));
                }
            }
            EventBody::GcMove => {
                let num = event.addresses.len();
                if !num.is_multiple_of(2) {
                    self.report(&ODD_MOVES, offset, "objects", || format!("{num} addresses"));
                }
            }
            EventBody::HandleCreated { kind, .. } | EventBody::HandleDestroyed { kind, .. } if *kind > 3 => {
                self.report(&HANDLE_TYPE, offset, "type", || format!("type {kind}"));
            }
            EventBody::Jit { code, size, .. } if self.no_code.contains(&offset) => {
                self.report(&NO_CODE, offset, "size", || format!("code {code:#x}, size {:#x}", size));
            }
            EventBody::Metadata(it) if it.mtype == mtypes::IMAGE => {
                let unload = event.byte == EventByte::METADATA_END_UNLOAD;
                if unload && self.is_profiler_3 {
                    self.report(&IMAGE_UNLOAD, offset, "mvid", || "an image is unloaded".to_owned());
                }
            }
            EventBody::Coverage(_) => self.report(&COVERAGE, offset, "", || event.byte.to_string()),
            EventBody::Counters { .. } => {
                for value in &event.values {
                    if !self.counters.contains(&value.index) {
                        self.report(&UNKNOWN_COUNTER, offset, "index", || format!("counter {}", value.index));
                    }
                }
            }
            _ => {}
        }
    }
}

/// Maximum depth at which a left method is searched: deeper than exceptions unwind.
const MAX_DEPTH: usize = 4096;

/// The open calls of each thread.
#[derive(Debug, Default)]
pub struct OpenCalls {
    /// Method and offset of the enter event of each open call, outermost first.
    open: FxHashMap<u64, Vec<(u64, u64)>>,
}

impl OpenCalls {
    /// Opens a call.
    pub fn enter(&mut self, thread: u64, body: &EventBody<'_>, offset: u64) {
        if let EventBody::Call { method } = body {
            self.open.entry(thread).or_default().push((*method, offset));
        }
    }

    /// Closes a call and every call nested in it; returns `false` if the method is not open.
    pub fn leave(&mut self, thread: u64, method: u64) -> bool {
        let Some(stack) = self.open.get_mut(&thread) else { return false };
        let position = stack.iter().rev().take(MAX_DEPTH).position(|(entered, _)| *entered == method);
        let Some(num_inner) = position else { return false };
        stack.truncate(stack.len().saturating_sub(num_inner).saturating_sub(1));
        true
    }

    /// Threads with open calls: the number of calls, and the offset of the outermost one's enter event.
    pub fn into_open(self) -> Vec<(u64, usize, u64)> {
        let open = self.open.into_iter().filter_map(|(thread, stack)| {
            let (_, offset) = stack.first()?;
            Some((thread, stack.len(), *offset))
        });
        let mut open: Vec<_> = open.collect();
        open.sort_unstable_by_key(|(_, _, offset)| *offset);
        open
    }
}
