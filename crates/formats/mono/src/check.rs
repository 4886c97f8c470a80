//! Compares a log with the specification of its data version, event by event.

mod calls;
mod values;

use std::borrow::Cow;

use perfuse_wire::{Diagnostics, Rule};
use rustc_hash::{FxHashMap, FxHashSet};

use self::calls::CallStacks;
use super::MonoLog;
use super::consts::{EventByte, metadata as mtypes};
use super::reader::{Buffer, Loss};
use super::records::{Body, Event};
use super::rules::*;
use perfuse_recording::Recording;

pub use super::rules::RULES;

/// Reports every violation of the specification.
pub fn check(log: &MonoLog, sink: &mut Diagnostics) {
    findings(log, sink);
    let survey = log.survey();
    let mut check = Check::new(log, sink);
    let mut event = Event::default();
    for buffer in &survey.buffers.list {
        check.buffer(buffer);
        let mut decoder = buffer.decoder(log.source(), survey.dialect);
        while let Some(Ok(())) = decoder.read(&mut event) {
            check.event(&event, buffer);
            check.index = check.index.saturating_add(1);
        }
        log.source().release(buffer.offset as usize..buffer.end() as usize);
    }
    check.end();
}

/// Reports the violations that the survey of the log has already found.
pub fn findings(log: &MonoLog, sink: &mut Diagnostics) {
    header(log, sink);
    let survey = log.survey();
    for loss in &survey.buffers.losses {
        let (rule, offset, message): (&'static Rule, _, _) = match *loss {
            Loss::Cut { offset, missing } => {
                (&CUT, offset, format!("{missing} bytes of the buffer are missing"))
            }
            Loss::HeaderCut { offset } => (&HEADER_CUT, offset, "the file ends here".to_owned()),
            Loss::Length { offset, said } => {
                (&BUFFER_LENGTH, offset, format!("length {said} ends after the start of the next buffer"))
            }
            Loss::NoBuffer { offset, len } => (&NO_BUFFER, offset, format!("{len} bytes were skipped")),
        };
        sink.push(rule, offset, None, "", || message.into());
    }
    for (buffer, error) in &survey.faults {
        let end = survey.buffers.list.get(*buffer).map_or(error.offset, Buffer::end);
        let lost = end.saturating_sub(error.offset);
        sink.push(&EVENT, error.offset, None, error.field, || {
            format!("{error}; the last {lost} bytes of the buffer are lost").into()
        });
    }
    if survey.buffers.list.is_empty() {
        let message = || "nothing was recorded".into();
        sink.push(&NO_EVENTS, log.header().size.min(log.source().len() as u64), None, "", message);
    }
}

/// Reports violations in the file header.
fn header(log: &MonoLog, sink: &mut Diagnostics) {
    let header = log.header();
    let fixed = header.fixed;
    let mut tell =
        |rule, offset, field, message: String| sink.push(rule, offset, None, field, || message.into());
    let flags = if fixed.major >= 3 { 28 } else { 20 };
    if header.flags != 0 {
        tell(&HEADER_FLAGS, flags, "flags", format!("flags are {:#x}", header.flags));
    }
    if fixed.startup_time == 0 {
        tell(&NO_START, 8, "startup_time", "startup_time is 0".to_owned());
    }
    if fixed.format == 0 {
        tell(&FOREIGN, 6, "format", format!("profiler {}.{}", fixed.major, fixed.minor));
    }
    let mut offset = flags.saturating_add(10);
    for (text, field) in header.texts.iter().flatten().zip(["args", "arch", "os"]) {
        if text.last() != Some(&0) {
            tell(&HEADER_TEXT, offset, field, format!("{field} has {} bytes and no NUL", text.len()));
        }
        offset = offset.saturating_add(4).saturating_add(text.len() as u64);
    }
    let dialect = log.survey().dialect;
    if dialect != header.dialect() {
        tell(&EARLY_LAYOUT, 6, "format", format!("read as data version {}", dialect.name()));
    }
}

/// The state of a check: what earlier events have established.
struct Check<'a> {
    /// Receives the violations.
    sink: &'a mut Diagnostics,
    /// Index of the current event.
    index: u64,
    version: u8,
    third: bool,
    /// Offset of the first description of each class or vtable.
    types: FxHashMap<u64, u64>,
    /// Offset of the first description of each method.
    methods: FxHashMap<u64, u64>,
    /// Counters that are described.
    counters: FxHashSet<u64>,
    /// Offsets of METHOD_JIT events whose method has no code.
    no_code: FxHashSet<u64>,
    calls: CallStacks,
    /// Latest event time of each thread.
    last_times: FxHashMap<u64, u64>,
    /// Time of the previous event of the buffer, or the buffer's base time.
    last_time: u64,
    /// Offset of the HEAP_START of the heapshot in progress.
    shot: Option<u64>,
}

impl<'a> Check<'a> {
    fn new(log: &'a MonoLog, sink: &'a mut Diagnostics) -> Self {
        let survey = log.survey();
        let mut types = FxHashMap::default();
        for thing in &survey.facts.things {
            if [mtypes::CLASS, mtypes::VTABLE].contains(&thing.mtype) {
                types.entry(thing.pointer).or_insert(thing.offset);
            }
        }
        let mut methods = FxHashMap::default();
        for method in &survey.facts.methods {
            methods.entry(method.method).or_insert(method.offset);
        }
        let mut starts = FxHashMap::<u64, u64>::default();
        for thread in survey.facts.threads.iter().filter(|it| it.what == EventByte::METADATA_END_LOAD) {
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
            third: survey.dialect.third(),
            types,
            methods,
            counters: survey.facts.counters.iter().map(|counter| counter.index).collect(),
            no_code: survey.facts.methods.iter().filter(|it| it.size == 0).map(|it| it.offset).collect(),
            calls: CallStacks::default(),
            last_times: FxHashMap::default(),
            last_time: 0,
            shot: None,
        }
    }

    /// Reports a violation at the current event.
    fn tell(
        &mut self,
        rule: &'static Rule,
        offset: u64,
        field: &'static str,
        message: impl FnOnce() -> String,
    ) {
        self.sink.push(rule, offset, Some(self.index), field, || Cow::Owned(message()));
    }

    /// Checks a buffer header.
    fn buffer(&mut self, buffer: &Buffer) {
        let (thread, time) = (buffer.header.thread_id, buffer.header.time_base);
        if buffer.header.len == 0 {
            self.tell(&EMPTY_BUFFER, buffer.offset, "len", || "a buffer without events".to_owned());
        }
        if self.last_times.get(&thread).is_some_and(|&last| time < last) {
            let message = || format!("thread {thread:#x} has a later event in an earlier buffer");
            self.tell(&BUFFER_ORDER, buffer.offset, "time_base", message);
        }
        self.last_time = time;
    }

    /// Checks one event.
    fn event(&mut self, event: &Event<'_>, buffer: &Buffer) {
        let (thread, offset) = (buffer.header.thread_id, event.offset);
        if let Some(time) = event.time {
            if time < self.last_time {
                let back = self.last_time.wrapping_sub(time);
                self.tell(&NEGATIVE_TIME, offset, "time", || format!("{back} ns before the previous event"));
            }
            self.last_time = time;
            let last = self.last_times.entry(thread).or_insert(time);
            *last = time.max(*last);
        }
        if event.flags != 0 {
            let flags = event.flags;
            self.tell(&EVENT_FLAGS, offset, "flags", || format!("flags are {flags:#x}"));
        }
        self.values(event);
        if event.has_backtrace() || event.byte == EventByte::SAMPLE_HIT {
            for &method in &event.frames {
                self.method(method, offset);
            }
        }
        match event.byte {
            EventByte::METHOD_ENTER => self.calls.enter(thread, &event.body, offset),
            EventByte::METHOD_LEAVE | EventByte::METHOD_EXC_LEAVE => {
                if let Body::Call { method } = event.body
                    && !self.calls.leave(thread, method)
                {
                    let message = || format!("method {method:#x} of thread {thread:#x}");
                    self.tell(&LEAVE_WITHOUT_ENTER, offset, "method", message);
                }
            }
            EventByte::HEAP_START => self.shot = Some(offset),
            EventByte::HEAP_END if self.shot.is_none() => {
                self.tell(&OUTSIDE_SHOT, offset, "event", || "HEAP_END without HEAP_START".to_owned());
            }
            EventByte::HEAP_END => self.shot = None,
            EventByte::HEAP_OBJECT if self.shot.is_none() => {
                self.tell(&OUTSIDE_SHOT, offset, "event", || "HEAP_OBJECT without HEAP_START".to_owned());
            }
            _ => {}
        }
    }

    /// Reports a class or vtable that is never described, or described only later.
    fn class(&mut self, class: u64, offset: u64) {
        match self.types.get(&class) {
            Some(&told) if told <= offset => {}
            Some(_) => self.tell(&LATE_NAMES, offset, "class", || format!("{class:#x} is described later")),
            None => self.tell(&UNKNOWN_CLASS, offset, "class", || format!("{class:#x} is never described")),
        }
    }

    /// Reports a method that is never described, or described only later.
    fn method(&mut self, method: u64, offset: u64) {
        match self.methods.get(&method) {
            Some(&told) if told <= offset => {}
            Some(_) => self.tell(&LATE_NAMES, offset, "method", || format!("{method:#x} is described later")),
            None => {
                self.tell(&UNKNOWN_METHOD, offset, "method", || format!("{method:#x} is never described"))
            }
        }
    }

    /// Reports calls and a heapshot that are still open at the end of the log.
    fn end(mut self) {
        for (thread, open, offset) in std::mem::take(&mut self.calls).open() {
            let message = || format!("{open} calls of thread {thread:#x}");
            self.sink.push(&OPEN_CALLS, offset, None, "method", || Cow::Owned(message()));
        }
        if let Some(offset) = self.shot {
            self.sink.push(&OPEN_SHOT, offset, None, "", || "no HEAP_END follows".into());
        }
    }
}
