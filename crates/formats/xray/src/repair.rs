//! Repairs a log or profile: the same mode and byte order, in the form its version should have.
//!
//! Does what the rules in [`rules`](super::rules) promise for `perfuse repair`, and reports each change by the rule's
//! code. Function records are copied byte for byte; metadata records are encoded again, without what is in their
//! reserved bytes.

mod changes;
mod fdr;
mod output;
mod plan;

use std::fs::File;
use std::io::{self, BufWriter, Write};

use perfuse_wire::Diagnostics;

use super::consts::PROFILE_VERSION;
use super::layout::{ProfileBlock, ProfileHeader};
use super::log::{LogContent, XRay};
use super::profile::read_path;
use super::{basic, profile};
use output::log_header;
use perfuse_recording::{Recording, Repaired};

/// Size of a write, in bytes.
const WRITE_BYTES: usize = 1 << 20;

/// Writes the repaired file.
///
/// # Errors
/// When writing fails.
pub fn repair(log: &XRay, out: &mut File) -> io::Result<Repaired> {
    let mut out = BufWriter::with_capacity(WRITE_BYTES, out);
    let mut found = Diagnostics::default();
    log.check(&mut found);
    let mut more = Vec::new();
    match log.content() {
        LogContent::Fdr(survey) => more = fdr::write_fdr_log(log, survey, &mut out)?,
        LogContent::Basic(survey) => write_basic_log(log, survey, &mut out)?,
        LogContent::Profile(survey) => write_profile(log, survey, &mut out)?,
    }
    out.flush()?;
    let found = found.into_rows();
    let changes = found.iter().filter_map(changes::change_for).chain(more).collect();
    let lost = found.into_iter().filter(changes::is_lost).collect();
    Ok(Repaired { changes, lost, ..Repaired::default() })
}

/// Writes a Basic mode log.
///
/// # Errors
/// When writing fails.
fn write_basic_log(log: &XRay, survey: &basic::BasicSurvey, out: &mut dyn Write) -> io::Result<()> {
    let header = log.header();
    out.write_all(&log_header(log, header.file.cycle_frequency, 0))?;
    let mut last_entry = None;
    let mut bytes = Vec::new();
    for index in survey.indexes() {
        let Some(mut entry) = basic::read_item(log.source(), index, header.endian) else { continue };
        match &mut entry {
            basic::BasicItem::Function(record) if record.kind <= 3 => {
                record.reserved = 0;
                if header.dialect().version < 3 {
                    record.pid = 0;
                }
                last_entry = Some(*record);
            }
            basic::BasicItem::Argument(argument) if argument.is_of(last_entry) => {
                (argument.padding, argument.reserved) = (0, 0);
                if header.dialect().version < 3 {
                    argument.pid = 0;
                }
            }
            basic::BasicItem::Function(_)
            | basic::BasicItem::Argument(_)
            | basic::BasicItem::Unknown(_)
            | basic::BasicItem::Unwritten => continue,
        }
        entry.encode(header.endian, &mut bytes);
        out.write_all(&bytes)?;
        bytes.clear();
    }
    Ok(())
}

/// Writes a profile.
///
/// # Errors
/// When writing fails.
fn write_profile(log: &XRay, survey: &profile::ProfileSurvey, out: &mut dyn Write) -> io::Result<()> {
    let header = log.header();
    let endian = header.endian;
    let mut bytes = Vec::new();
    if let Some(profile) = header.profile {
        ProfileHeader { version: PROFILE_VERSION, ..profile }.write(&mut bytes, endian);
    }
    for block in survey.blocks.iter().filter(|block| block.num_paths > 0) {
        let mut cursor = block.cursor(log.source(), endian);
        let begin = block.records.start;
        let mut end = begin;
        while cursor.remaining() > 0 && read_path(&mut cursor).is_ok() {
            end = usize::try_from(cursor.offset()).unwrap_or(end);
        }
        let paths = log.source().get(begin..end).unwrap_or_default();
        let size = ProfileBlock::SIZE.saturating_add(paths.len() as u64);
        let size = u32::try_from(size).map_err(|_| io::Error::other("a block of more than 4 GiB"))?;
        ProfileBlock { size, ..block.header }.write(&mut bytes, endian);
        out.write_all(&bytes)?;
        out.write_all(paths)?;
        bytes.clear();
    }
    out.write_all(&bytes)
}
