//! Profiles, block by block.

use std::io::{self, Write};

use super::super::consts::PROFILE_VERSION;
use super::super::layout::{ProfileBlock, ProfileHeader};
use super::super::log::XRay;
use super::super::profile::{Survey, read_path};
use perfuse_recording::Recording;

/// Writes a profile; how many records, headers of blocks counted.
///
/// # Errors
/// What the output says.
pub fn write(log: &XRay, survey: &Survey, out: &mut dyn Write) -> io::Result<u64> {
    let header = log.header();
    let endian = header.endian;
    let mut bytes = Vec::new();
    if let Some(profile) = header.profile {
        ProfileHeader { version: PROFILE_VERSION, ..profile }.write(&mut bytes, endian);
    }
    let mut records = 0u64;
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
        records = records.saturating_add(block.num_paths).saturating_add(1);
    }
    out.write_all(&bytes)?;
    Ok(records)
}
