//! Logs of Basic mode, record by record.

use std::io::{self, Write};

use super::super::basic::{Entry, Survey, entry_at};
use super::super::log::XRay;
use perfuse_recording::Recording;

/// Writes a log; how many records.
///
/// # Errors
/// What the output says.
pub fn write(log: &XRay, survey: &Survey, out: &mut dyn Write) -> io::Result<u64> {
    let header = log.header();
    out.write_all(&super::header(log, 0))?;
    let (mut records, mut entered) = (0u64, None);
    let mut bytes = Vec::new();
    for index in survey.indexes() {
        let Some(mut entry) = entry_at(log.source(), index, header.endian) else { continue };
        match &mut entry {
            Entry::Normal(record) if record.kind <= 3 => {
                record.reserved = 0;
                if header.dialect().version < 3 {
                    record.pid = 0;
                }
                entered = Some(*record);
            }
            Entry::Argument(argument) if argument.is_of(entered) => {
                (argument.padding, argument.reserved) = (0, 0);
                if header.dialect().version < 3 {
                    argument.pid = 0;
                }
            }
            Entry::Normal(_) | Entry::Argument(_) | Entry::Unknown(_) => continue,
        }
        entry.encode(header.endian, &mut bytes);
        out.write_all(&bytes)?;
        bytes.clear();
        records = records.saturating_add(1);
    }
    Ok(records)
}
