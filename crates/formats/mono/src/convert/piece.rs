//! Conversion of one of the logs, buffer by buffer.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use super::ConvertError;
use super::adapt::Adapter;
use super::counters::CounterSums;
use super::cut::{Cut, time_of};
use super::misfits::{Misfit, Written};
use super::order::{Place, Told};
use super::selection::{Selection, names};
use crate::MonoLog;
use crate::consts::EventByte;
use crate::dialect::Dialect;
use crate::encode::Encoder;
use crate::records::{Body, Event};
use perfuse_recording::Recording;

/// A log and how it is converted.
pub struct Piece<'a> {
    log: &'a MonoLog,
    to: Dialect,
    selection: &'a Selection,
    threads: Option<FxHashSet<u32>>,
    cut: Option<Cut>,
    /// `None` if the encoding does not change.
    adapter: Option<Adapter>,
}

impl<'a> Piece<'a> {
    pub fn new(log: &'a MonoLog, to: Dialect, selection: &'a Selection) -> Self {
        Self {
            log,
            to,
            selection,
            threads: selection.threads_of(log),
            cut: selection.time.clone().map(|range| Cut::new(log, range)),
            adapter: (log.survey().dialect != to).then(|| Adapter::new(log, to)),
        }
    }

    /// Appends the converted buffer to `out`.
    ///
    /// # Errors
    /// When a buffer would exceed the maximum length.
    pub fn buffer(
        &mut self,
        place: &Place,
        told: &mut Told,
        mut sums: Option<&mut CounterSums<'a>>,
        written: &mut Written,
        out: &mut Vec<u8>,
    ) -> Result<(), ConvertError> {
        let (log, survey) = (self.log, self.log.survey());
        let Some(buffer) = survey.buffers.list.get(place.buffer) else { return Ok(()) };
        let thread = buffer.header.thread_id & survey.dialect.pointer_mask();
        let mut encoder = match self.adapter {
            None => Encoder::like(self.to, &buffer.header),
            Some(_) => Encoder::new(self.to, buffer.header.thread_id, buffer.header.time_base),
        };
        let mut aside = Aside::default();
        let mut decoder = buffer.decoder(log.source(), survey.dialect);
        let mut event = Event::default();
        let mut time = buffer.header.time_base;
        while let Some(read) = decoder.read(&mut event) {
            if read.is_err() {
                written.add(Misfit::Damaged, 1);
                break;
            }
            time = event.time.unwrap_or(time);
            let is_counters = matches!(event.body, Body::Counters { .. } | Body::CountersDesc);
            if is_counters && sums.is_none() {
                written.add(Misfit::Counters, 1);
                continue;
            }
            let naming = names(event.byte);
            let is_chosen = naming || self.has(place.buffer, thread, &event, time);
            if let Some(sums) = sums.as_mut().filter(|_| event.byte == EventByte::COUNTERS) {
                sums.event(place.log, &mut event, is_chosen);
            }
            if !is_chosen {
                continue;
            }
            if naming && told.is_known(place.log, thread, &event) {
                written.add(Misfit::Repeated, 1);
                continue;
            }
            let Some(adapter) = &mut self.adapter else {
                put(&mut encoder, &mut event, written);
                continue;
            };
            let byte = event.byte;
            if !adapter.adapt(&mut event, thread, time, written) {
                written.leave_out(byte);
                continue;
            }
            // Until data version 10 a sample is in a buffer of the sampled thread.
            match event.body {
                Body::SampleHit { thread: own, .. } if self.to.version < 11 && own != thread => {
                    put(aside.of(own, self.to, time), &mut event, written);
                }
                _ => put(&mut encoder, &mut event, written),
            }
            if let Some(mut vtable) = adapter.vtable_of(&event, written) {
                put(&mut encoder, &mut vtable, written);
            }
        }
        let keeps_empty = self.selection.is_all() && self.adapter.is_none();
        for encoder in std::iter::once(encoder).chain(aside.0.into_values()) {
            if keeps_empty || !encoder.is_empty() {
                encoder.finish(out).map_err(ConvertError::Buffer)?;
                written.wrote_buffer();
            }
        }
        Ok(())
    }

    /// Whether the selection contains an event.
    fn has(&self, buffer: usize, thread: u64, event: &Event<'_>, before: u64) -> bool {
        let time = time_of(event, before);
        if let Some(kinds) = &self.selection.kinds
            && !kinds.contains(&event.byte)
        {
            return false;
        }
        if let Some(cut) = &self.cut
            && !cut.has(event, thread, time)
        {
            return false;
        }
        let Some(threads) = &self.threads else { return true };
        let shared = self.log.share();
        let all = &shared.names().threads;
        let sampled = match event.body {
            Body::SampleHit { thread, .. } if self.log.survey().dialect.version >= 11 => all.at(thread, time),
            // It orders the events of all threads, so every part needs it.
            Body::SyncPoint { .. } => return true,
            _ => None,
        };
        threads.contains(&sampled.unwrap_or_else(|| all.of_buffer(buffer)))
    }
}

/// Additional buffers for other threads, written after the current one.
#[derive(Default)]
struct Aside(BTreeMap<u64, Encoder>);

impl Aside {
    fn of(&mut self, thread: u64, to: Dialect, time: u64) -> &mut Encoder {
        self.0.entry(thread).or_insert_with(|| Encoder::new(to, thread, time))
    }
}

/// Writes an event, or counts it as omitted if the target cannot represent it.
fn put(encoder: &mut Encoder, event: &mut Event<'_>, written: &mut Written) {
    match encoder.write(event) {
        Ok(()) => written.wrote_event(),
        Err(_) => written.leave_out(event.byte),
    }
}
