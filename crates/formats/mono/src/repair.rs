//! Repair: copies every readable event to a valid log, byte for byte.

use std::fs::File;
use std::io;
use std::io::{BufWriter, Write};

use perfuse_recording::{Change, Repaired};
use perfuse_wire::{Diagnostics, Endian, Rule, Severity};
use rustc_hash::FxHashMap;

use crate::check;
use crate::layout::BufferHeader;
use crate::log::LogData;
use crate::reader::BufferDamage;
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
        survey.faults.iter().map(|(buffer, error)| (*buffer, error.offset)).collect();
    let mut header_bytes = Vec::new();
    for (number, buffer) in survey.buffers.list.iter().enumerate() {
        // `error.offset` is that of the invalid field; the buffer must end before the event that contains it.
        let end = if ends.contains_key(&number) { readable_end(log, number) } else { buffer.end() };
        let events = log.source.get(buffer.start() as usize..end as usize).unwrap_or_default();
        let len = u32::try_from(events.len()).unwrap_or(u32::MAX);
        header_bytes.clear();
        BufferHeader { len, ..buffer.header }.write(&mut header_bytes, Endian::Little);
        out.write_all(&header_bytes)?;
        out.write_all(events)?;
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

/// File offset after the last readable event of a buffer.
fn readable_end(log: &LogData, number: usize) -> u64 {
    let survey = log.survey();
    let Some(buffer) = survey.buffers.list.get(number) else { return 0 };
    let mut decoder = buffer.decoder(&log.source, survey.dialect);
    let mut event = crate::records::Event::default();
    let mut end = buffer.start();
    while let Some(Ok(())) = decoder.read(&mut event) {
        end = decoder.offset();
    }
    end
}
