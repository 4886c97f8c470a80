//! Reads profiles (Profiling mode): call paths with sums that the runtime computed.

use std::ops::Range;

use perfuse_wire::{Cursor, Endian, ParseError};

use super::consts::HEADER_BYTES;
use super::ids::FunctionIds;
use super::layout::ProfileBlock;
use perfuse_recording::Source;

/// The block of a thread in a profile.
#[derive(Clone, Debug)]
pub struct ThreadBlock {
    /// Offset of its header.
    pub offset: u64,
    /// The block header.
    pub header: ProfileBlock,
    /// Range of its records, clipped to the file.
    pub records: Range<usize>,
    /// Number of call paths that can be read.
    pub num_paths: u64,
    /// Number of call paths with a negative time: the runtime's arithmetic underflows after `longjmp`.
    pub num_negative: u64,
    /// Why the rest cannot be read.
    pub broken: Option<ParseError>,
}

/// A call path with its sums.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfiledPath {
    /// Offset of the record.
    pub offset: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Function ids, innermost first.
    pub functions: Vec<i32>,
    /// Number of calls.
    pub calls: u64,
    /// Ticks in the innermost function.
    pub ticks: i64,
}

/// The result of one pass over a profile.
#[derive(Debug, Default)]
pub struct ProfileSurvey {
    /// All blocks.
    pub blocks: Vec<ThreadBlock>,
    /// Why reading ended before the end of the file.
    pub broken: Option<ParseError>,
    /// All function ids, ascending, as unsigned numbers.
    pub function_ids: Vec<u32>,
    /// Number of call paths.
    pub num_paths: u64,
}

/// Reads the call path at the cursor.
///
/// # Errors
/// When the bytes end inside it.
pub fn read_path(cursor: &mut Cursor<'_>) -> Result<ProfiledPath, ParseError> {
    let offset = cursor.offset();
    let mut functions = Vec::new();
    loop {
        match cursor.i32("function_id")? {
            0 => break,
            id => functions.push(id),
        }
    }
    let calls = cursor.u64("call_count")?;
    let ticks = cursor.i64("cumulative_local_time")?;
    Ok(ProfiledPath { offset, size: cursor.offset().saturating_sub(offset), functions, calls, ticks })
}

impl ThreadBlock {
    /// A cursor over its records.
    #[must_use]
    pub fn cursor<'a>(&self, data: &'a [u8], endian: Endian) -> Cursor<'a> {
        let bytes = data.get(self.records.clone()).unwrap_or_default();
        Cursor::new(bytes, self.records.start as u64, endian)
    }
}

impl ProfileSurvey {
    /// Reads all blocks and call paths.
    #[must_use]
    pub fn new(source: &Source, endian: Endian) -> Self {
        let mut survey = Self::default();
        let mut ids = FunctionIds::default();
        let mut at = HEADER_BYTES;
        while let Some(bytes) = source.get(at..).filter(|bytes| !bytes.is_empty()) {
            let mut cursor = Cursor::new(bytes, at as u64, endian);
            let header = match ProfileBlock::read(&mut cursor) {
                Ok(header) => header,
                Err(error) => {
                    survey.broken = Some(error);
                    break;
                }
            };
            let begin = at.saturating_add(ProfileBlock::SIZE as usize);
            let end = at.saturating_add(header.size as usize).max(begin);
            let records = begin..end.min(source.len());
            let mut block = ThreadBlock {
                offset: at as u64,
                header,
                records,
                num_paths: 0,
                num_negative: 0,
                broken: None,
            };
            let mut cursor = block.cursor(source, endian);
            while cursor.remaining() > 0 {
                match read_path(&mut cursor) {
                    Ok(path) => {
                        block.num_paths = block.num_paths.saturating_add(1);
                        block.num_negative = block.num_negative.saturating_add(u64::from(path.ticks < 0));
                        path.functions.iter().for_each(|id| ids.insert(id.cast_unsigned()));
                    }
                    Err(error) => {
                        block.broken = Some(error);
                        break;
                    }
                }
            }
            survey.num_paths = survey.num_paths.saturating_add(block.num_paths);
            survey.blocks.push(block);
            at = end;
        }
        survey.function_ids = ids.sorted();
        survey
    }
}
