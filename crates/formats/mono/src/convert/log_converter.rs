//! Conversion of one of the logs, buffer by buffer, and the selection of the events to write.

use std::collections::BTreeMap;
use std::ops::Range;

use perfuse_recording::Recording;
use rustc_hash::FxHashSet;

use crate::consts::{EventByte, KindSet};
use crate::convert::adapt::Adapter;
use crate::convert::counter_sums::CounterSums;
use crate::convert::merge_order::{BufferRef, WrittenDefinitions};
use crate::convert::outcome::{ConvertSummary, LogConvertError, UnsupportedItem};
use crate::convert::time_range::{TimeRangeFilter, event_time};
use crate::dialect::LogDialect;
use crate::encode::BufferEncoder;
use crate::recording::MonoLog;
use crate::records::{Event, EventBody};

/// A log and how it is converted.
pub struct LogConverter<'a> {
    log: &'a MonoLog,
    to: LogDialect,
    selection: &'a LogSelection,
    threads: Option<FxHashSet<u32>>,
    time_range: Option<TimeRangeFilter>,
    /// `None` if the encoding does not change.
    adapter: Option<Adapter>,
}

impl<'a> LogConverter<'a> {
    /// Prepares the conversion of a log.
    pub fn new(log: &'a MonoLog, to: LogDialect, selection: &'a LogSelection) -> Self {
        Self {
            log,
            to,
            selection,
            threads: selection.thread_indices(log),
            time_range: selection.time.clone().map(|range| TimeRangeFilter::new(log, range)),
            adapter: (log.survey().dialect != to).then(|| Adapter::new(log, to)),
        }
    }

    /// Appends the converted buffer to `out`.
    ///
    /// # Errors
    /// When a buffer would exceed the maximum length.
    pub fn convert_buffer(
        &mut self,
        buffer_ref: &BufferRef,
        definitions: &mut WrittenDefinitions,
        mut sums: Option<&mut CounterSums<'a>>,
        summary: &mut ConvertSummary,
        out: &mut Vec<u8>,
    ) -> Result<(), LogConvertError> {
        let (log, survey) = (self.log, self.log.survey());
        let Some(buffer) = survey.buffers.list.get(buffer_ref.buffer) else { return Ok(()) };
        let thread = buffer.header.thread_id & survey.dialect.pointer_mask();
        let mut encoder = match self.adapter {
            None => BufferEncoder::like(self.to, &buffer.header),
            Some(_) => BufferEncoder::new(self.to, buffer.header.thread_id, buffer.header.time_base),
        };
        let mut extra_buffers = ExtraBuffers::default();
        let mut decoder = buffer.decoder(log.source(), survey.dialect);
        let mut event = Event::default();
        let mut time = buffer.header.time_base;
        while let Some(read) = decoder.read(&mut event) {
            if read.is_err() {
                summary.count_item(UnsupportedItem::Damaged, 1);
                break;
            }
            time = event.time.unwrap_or(time);
            let is_counters = matches!(event.body, EventBody::Counters { .. } | EventBody::CountersDesc);
            if is_counters && sums.is_none() {
                summary.count_item(UnsupportedItem::Counters, 1);
                continue;
            }
            let defines = is_definition(event.byte);
            let is_selected = defines || self.selects(buffer_ref.buffer, thread, &event, time);
            if let Some(sums) = sums.as_mut().filter(|_| event.byte == EventByte::COUNTERS) {
                sums.convert_values(buffer_ref.log, &mut event, is_selected);
            }
            if !is_selected {
                continue;
            }
            if defines && definitions.is_repeated(buffer_ref.log, thread, &event) {
                summary.count_item(UnsupportedItem::Repeated, 1);
                continue;
            }
            let Some(adapter) = &mut self.adapter else {
                write_event(&mut encoder, &mut event, summary);
                continue;
            };
            let byte = event.byte;
            if !adapter.adapt(&mut event, thread, time, summary) {
                summary.omit_event(byte);
                continue;
            }
            // Until data version 10 a sample is in a buffer of the sampled thread.
            match event.body {
                EventBody::SampleHit { thread: own, .. } if self.to.version < 11 && own != thread => {
                    write_event(extra_buffers.encoder(own, self.to, time), &mut event, summary);
                }
                _ => write_event(&mut encoder, &mut event, summary),
            }
            if let Some(mut vtable) = adapter.vtable_of(&event, summary) {
                write_event(&mut encoder, &mut vtable, summary);
            }
        }
        let keeps_empty = self.selection.is_all() && self.adapter.is_none();
        for encoder in std::iter::once(encoder).chain(extra_buffers.0.into_values()) {
            if keeps_empty || !encoder.is_empty() {
                encoder.finish(out).map_err(LogConvertError::Buffer)?;
                summary.count_buffer();
            }
        }
        Ok(())
    }

    /// Whether the selection contains an event.
    fn selects(&self, buffer: usize, thread: u64, event: &Event<'_>, before: u64) -> bool {
        let time = event_time(event, before);
        if let Some(kinds) = &self.selection.kinds
            && !kinds.contains(&event.byte)
        {
            return false;
        }
        if let Some(time_range) = &self.time_range
            && !time_range.retains(event, thread, time)
        {
            return false;
        }
        let Some(threads) = &self.threads else { return true };
        let data = self.log.data();
        let all = &data.names().threads;
        let sampled = match event.body {
            EventBody::SampleHit { thread, .. } if self.log.survey().dialect.version >= 11 => {
                all.at(thread, time)
            }
            // It orders the events of all threads, so every part needs it.
            EventBody::SyncPoint { .. } => return true,
            _ => None,
        };
        threads.contains(&sampled.unwrap_or_else(|| all.of_buffer(buffer)))
    }
}

/// Additional buffers for other threads, written after the current one.
#[derive(Default)]
struct ExtraBuffers(BTreeMap<u64, BufferEncoder>);

impl ExtraBuffers {
    /// The buffer of a thread, which is created at `time` if new.
    fn encoder(&mut self, thread: u64, to: LogDialect, time: u64) -> &mut BufferEncoder {
        self.0.entry(thread).or_insert_with(|| BufferEncoder::new(to, thread, time))
    }
}

/// Writes an event, or counts it as omitted if the target cannot represent it.
fn write_event(encoder: &mut BufferEncoder, event: &mut Event<'_>, summary: &mut ConvertSummary) {
    match encoder.write(event) {
        Ok(()) => summary.count_event(),
        Err(_) => summary.omit_event(event.byte),
    }
}

/// The part of a log to write; the default is all of it. Events that define names are always written: methods and
/// their code, classes, threads, registered roots, counters.
#[derive(Clone, Debug, Default)]
pub struct LogSelection {
    /// A range of time, in nanoseconds on the clock of the events.
    pub time: Option<Range<u64>>,
    /// Selected threads.
    pub threads: Option<Vec<ThreadChoice>>,
    /// Selected kinds of events.
    pub kinds: Option<FxHashSet<EventByte>>,
}

/// How a thread is selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadChoice {
    /// By id: every thread that had it.
    Id(u64),
    /// By one of its names.
    Name(String),
}

impl LogSelection {
    /// Whether everything is selected.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.time.is_none() && self.threads.is_none() && self.kinds.is_none()
    }

    /// Indices of the selected threads of a log; `None` for all.
    pub(super) fn thread_indices(&self, log: &MonoLog) -> Option<FxHashSet<u32>> {
        let choices = self.threads.as_ref()?;
        let data = log.data();
        let all = data.names().threads.list.iter().zip(0u32..);
        let selected = all.filter(|(thread, _)| {
            choices.iter().any(|choice| match choice {
                ThreadChoice::Id(id) => *id == thread.id,
                ThreadChoice::Name(name) => thread.names.iter().any(|own| **own == **name),
            })
        });
        Some(selected.map(|(_, number)| number).collect())
    }
}

const DEFINITIONS: KindSet = KindSet::of(&[
    EventByte::METADATA_NAME,
    EventByte::METADATA_END_LOAD,
    EventByte::METADATA_END_UNLOAD,
    EventByte::METADATA_LOAD_ERR,
    EventByte::METHOD_JIT,
    EventByte::JITHELPER,
    EventByte::SAMPLE_USYM,
    EventByte::SAMPLE_UBIN,
    EventByte::COUNTERS_DESC,
    EventByte::HEAP_ROOT_REGISTER,
    EventByte::HEAP_ROOT_UNREGISTER,
    EventByte::AOT_ID,
]);

/// Whether an event defines a name that other events refer to.
pub fn is_definition(byte: EventByte) -> bool {
    DEFINITIONS.meets(KindSet::of(&[byte]))
}
