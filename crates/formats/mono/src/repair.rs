//! Repair: copies every readable event to a valid log, byte for byte. Objects and ends of heap snapshots without a start are
//! left out, since mprof-report crashes at them.

use std::fs::File;
use std::io;
use std::io::{BufWriter, Write};
use std::ops::Range;

use perfuse_recording::{Change, Repaired};
use perfuse_wire::{Diagnostics, Endian, Rule, Severity};
use rustc_hash::FxHashMap;

use crate::check;
use crate::consts::EventByte;
use crate::layout::BufferHeader;
use crate::log::LogData;
use crate::reader::{BufferDamage, EventBuffer};
use crate::records::Event;
use crate::rules::*;

/// Writes the repaired log.
///
/// # Errors
/// When the output fails.
pub fn repair(log: &LogData, out: &mut File) -> io::Result<Repaired> {
    let mut out = BufWriter::new(out);
    let survey = log.survey();
    let mut done = Repaired::default();
    out.write_all(&repair_header(log, &mut done))?;
    let ends: FxHashMap<usize, u64> =
        survey.events.faults.iter().map(|(buffer, error)| (*buffer, error.offset)).collect();
    let has_snapshots =
        [EventByte::HEAP_OBJECT, EventByte::HEAP_END].iter().any(|&byte| survey.count(byte) > 0);
    let mut snapshots = HeapSnapshots::default();
    let mut header_bytes = Vec::new();
    for (number, buffer) in survey.buffers.list.iter().enumerate() {
        let has_fault = ends.contains_key(&number);
        let pieces = match has_fault || has_snapshots {
            true => snapshots.pieces(log, buffer, &mut done),
            false => vec![BufferPiece { header: buffer.header, events: buffer.start()..buffer.end() }],
        };
        let mut len = 0usize;
        for piece in pieces {
            let events = piece.events.start as usize..piece.events.end as usize;
            let events = log.source.get(events).unwrap_or_default();
            len = len.saturating_add(events.len());
            header_bytes.clear();
            let piece_len = u32::try_from(events.len()).unwrap_or(u32::MAX);
            BufferHeader { len: piece_len, ..piece.header }.write(&mut header_bytes, Endian::Little);
            out.write_all(&header_bytes)?;
            out.write_all(events)?;
        }
        if let Some(offset) = ends.get(&number) {
            let message = format!("the buffer ends before the event, with {len} bytes");
            done.changes.push(Change { rule: &EVENT, offset: *offset, message });
        }
    }
    for loss in &survey.buffers.damage {
        let (rule, offset, message): (&'static Rule, _, _) = match *loss {
            BufferDamage::Truncated { offset, .. } => {
                (&CUT, offset, "the buffer ends at the end of the file")
            }
            BufferDamage::TruncatedHeader { offset } => (&HEADER_CUT, offset, "left out"),
            BufferDamage::WrongLength { offset, .. } => {
                (&BUFFER_LENGTH, offset, "the buffer ends at the start of the next one")
            }
            BufferDamage::NotABuffer { offset, .. } => (&NO_BUFFER, offset, "left out"),
        };
        done.changes.push(Change { rule, offset, message: message.to_owned() });
    }
    out.flush()?;
    let mut sink = Diagnostics::default();
    check::findings(log, &mut sink);
    done.lost = sink.into_rows().into_iter().filter(|row| row.rule.severity == Severity::DataLoss).collect();
    Ok(done)
}

/// The repaired file header.
fn repair_header(log: &LogData, done: &mut Repaired) -> Vec<u8> {
    let mut header = log.header.clone();
    let mut change = |rule, offset, message: &str| {
        done.changes.push(Change { rule, offset, message: message.to_owned() });
    };
    if header.flags != 0 {
        change(&HEADER_FLAGS, if header.fixed.major >= 3 { 28 } else { 20 }, "set the flags to 0");
        header.flags = 0;
    }
    for text in header.texts.iter_mut().flatten().filter(|text| text.last() != Some(&0)) {
        change(&HEADER_TEXT, 8, "terminated the text with a NUL");
        text.push(0);
    }
    let mut out = Vec::new();
    header.write(&mut out);
    out
}

/// Events of a buffer that are written as a buffer of their own.
struct BufferPiece {
    /// The header; its length is that of the whole buffer.
    header: BufferHeader,
    /// Range in the file.
    events: Range<u64>,
}

/// Whether a heap snapshot is in progress, from buffer to buffer.
#[derive(Default)]
struct HeapSnapshots {
    is_open: bool,
}

impl HeapSnapshots {
    /// The readable events of a buffer without those of a heap snapshot whose start is missing. What follows them becomes a
    /// buffer, whose header has the time and method that its first event is relative to.
    fn pieces(&mut self, log: &LogData, buffer: &EventBuffer, done: &mut Repaired) -> Vec<BufferPiece> {
        let mut decoder = buffer.decoder(&log.source, log.survey().dialect);
        let mut event = Event::default();
        let mut pieces = Vec::new();
        let mut piece = BufferPiece { header: buffer.header, events: buffer.start()..buffer.start() };
        let mut left_out: Option<(u64, u64)> = None;
        while let Some(Ok(())) = decoder.read(&mut event) {
            if self.contains(event.byte) {
                piece.events.end = decoder.offset();
                continue;
            }
            let (_, count) = left_out.get_or_insert((event.offset, 0));
            *count = count.saturating_add(1);
            let state = decoder.state();
            let header =
                BufferHeader { time_base: state.time(), method_base: state.method(), ..buffer.header };
            let next = BufferPiece { header, events: decoder.offset()..decoder.offset() };
            let before = std::mem::replace(&mut piece, next);
            if !before.events.is_empty() {
                pieces.push(before);
            }
        }
        if !piece.events.is_empty() || pieces.is_empty() && left_out.is_none() {
            pieces.push(piece);
        }
        if let Some((offset, count)) = left_out {
            let message = format!("{count} events without HEAP_START left out of the buffer");
            done.changes.push(Change { rule: &OUTSIDE_SHOT, offset, message });
        }
        pieces
    }

    /// Whether an event is written; notes starts and ends of snapshots.
    fn contains(&mut self, byte: EventByte) -> bool {
        match byte {
            EventByte::HEAP_START => self.is_open = true,
            EventByte::HEAP_END => return std::mem::take(&mut self.is_open),
            EventByte::HEAP_OBJECT => return self.is_open,
            _ => {}
        }
        true
    }
}
