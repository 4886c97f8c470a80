//! The longest valid log or profile that can be saved: of the same mode and byte order, as its version should be written.
//!
//! What every rule of [`rules`](super::rules) says of `perfuse repair` is done here, and told by that rule's code. Function records
//! are copied byte for byte; metadata records are written anew, without what is in their reserved bytes.

mod basic;
mod body;
mod changes;
mod fdr;
mod output;
mod plan;
mod profile;

use std::fs::File;
use std::io::{self, BufWriter, Write};

use perfuse_wire::Diagnostics;

use super::encode;
use super::log::{Content, XRay};
use perfuse_recording::{Recording, Repaired};

/// Size of the writes.
const WRITE_BYTES: usize = 1 << 20;

/// Writes it.
///
/// # Errors
/// What the output says.
pub fn repair(log: &XRay, out: &mut File) -> io::Result<Repaired> {
    let mut out = BufWriter::with_capacity(WRITE_BYTES, out);
    let mut found = Diagnostics::default();
    log.check(&mut found);
    let records_in = log.summary().counts.iter().map(|(_, count)| *count).sum();
    let records_out = match log.content() {
        Content::Fdr(survey) => fdr::write(log, survey, &mut out)?,
        Content::Basic(survey) => basic::write(log, survey, &mut out)?,
        Content::Profile(survey) => profile::write(log, survey, &mut out)?,
    };
    out.flush()?;
    let found = found.into_rows();
    let changes = found.iter().filter_map(|found| changes::of(log, found)).collect();
    let lost = found.into_iter().filter(changes::is_lost).collect();
    Ok(Repaired { changes, lost, records_in, records_out })
}

/// The header of a log, with the rate that the log shows where its own is wrong.
fn header(log: &XRay, buffer_size: u64) -> Vec<u8> {
    let header = log.header();
    let hz =
        super::check::true_rate(log).map_or(header.file.cycle_frequency, |found| found.hz.round() as u64);
    let version = header.dialect().version;
    encode::header(header.mode, version, header.tsc_flags(), hz, buffer_size, header.endian)
}
