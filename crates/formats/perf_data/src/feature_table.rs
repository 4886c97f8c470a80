//! The table of feature sections after the records: one entry for each feature bit of the header, in order of the bits.

use linux_perf_data::Feature;
use perfuse_wire::Cursor;

use super::feature_values;
use super::features::section_bytes;
use super::header::{Preamble, add_finding, extend_sections};
use super::layout::Section;
use super::rules;

impl Preamble {
    /// Reads the table, which the header expects at an offset. Where bytes are missing from the records, or were added to them, it
    /// is elsewhere: the records then end there.
    pub(super) fn read_feature_table(&mut self, expected: u64) {
        let file = self;
        let bits = feature_bits(file);
        let table = find(file, expected, bits.len() as u64).unwrap_or(expected);
        if table > file.source.len() as u64 {
            return;
        }
        if table != expected {
            let bytes = table.abs_diff(expected);
            let what = if table < expected { "are missing" } else { "were added" };
            let message =
                format!("the table of feature sections is at {table:#x}: {bytes} bytes before it {what}");
            add_finding(file, &rules::MOVED_SECTIONS, table, "features", message.into());
            file.records.end = table;
        }
        let source = file.source.clone();
        let rest = source.get(usize::try_from(table).unwrap_or(usize::MAX)..).unwrap_or_default();
        let mut cursor = Cursor::new(rest, table, file.endian);
        for bit in bits {
            let Ok(section) = Section::read(&mut cursor) else {
                let message = "the table of feature sections ends early".into();
                return add_finding(file, &rules::SECTION_OUTSIDE, cursor.offset(), "features", message);
            };
            let section = Section { offset: moved(section.offset, expected, table), ..section };
            let content = section_bytes(&source, section);
            if (content.len() as u64) < section.size {
                let message =
                    format!("the section of HEADER_{} is outside the file", feature_values::name(bit));
                add_finding(file, &rules::SECTION_OUTSIDE, section.offset, "features", message.into());
            } else if let Err(error) =
                feature_values::verify(bit, Cursor::new(content, section.offset, file.endian))
            {
                let name = feature_values::name(bit);
                let (rule, message) = match section.size {
                    0 => (&rules::EMPTY_FEATURE, format!("HEADER_{name} has no content")),
                    _ => (&rules::BAD_FEATURE, format!("HEADER_{name}: {error}")),
                };
                add_finding(file, rule, section.offset, "features", message.into());
            }
            extend_sections(file, section.offset.saturating_add(section.size));
            file.features.insert(Feature(bit), section);
        }
        extend_sections(file, cursor.offset());
    }
}

/// The set bits of the header, in order.
fn feature_bits(file: &Preamble) -> Vec<u32> {
    let header = file.header;
    let words = [header.features_0, header.features_1, header.features_2, header.features_3];
    let is_set = |bit: &u32| {
        let word = words.get((bit >> 6) as usize).copied().unwrap_or(0);
        word.wrapping_shr(bit & 63) & 1 != 0
    };
    (0u32..256).filter(is_set).collect()
}

/// An offset that moved with the table.
fn moved(offset: u64, expected: u64, table: u64) -> u64 {
    offset.wrapping_add(table).wrapping_sub(expected)
}

/// Most features that perf leaves out after it has made space for their entries.
const MAX_LEFT_OUT: u64 = 64;

/// Offset of the table. perf writes the sections after it, one after the other: the first entry states where the table ends,
/// with the entries of features that were left out.
fn find(file: &Preamble, expected: u64, num: u64) -> Option<u64> {
    let table_bytes = num.checked_mul(Section::SIZE).filter(|&bytes| bytes > 0)?;
    let entry = |at: u64| {
        let bytes = section_bytes(&file.source, Section { offset: at, size: Section::SIZE });
        Section::read(&mut Cursor::new(bytes, at, file.endian)).ok()
    };
    // Sections that follow each other, up to the end of the file at most.
    let is_table = |at: u64| {
        let mut next = None;
        for number in 0..num {
            let section = entry(at.saturating_add(number.saturating_mul(Section::SIZE)));
            let Some(section) = section.filter(|section| next.is_none_or(|next| section.offset == next))
            else {
                return false;
            };
            next = Some(section.offset.saturating_add(section.size));
        }
        next.is_some_and(|end| moved(end, expected, at) <= file.source.len() as u64)
    };
    if is_table(expected) {
        return Some(expected);
    }
    let first = expected.checked_add(table_bytes)?;
    (file.records.start..file.source.len() as u64).find(|&at| {
        if at.trailing_zeros() >= 16 {
            perfuse_stopping::checkpoint();
        }
        let left_out = entry(at).and_then(|entry| entry.offset.checked_sub(first));
        left_out
            .is_some_and(|bytes| bytes.is_multiple_of(Section::SIZE) && bytes / Section::SIZE <= MAX_LEFT_OUT)
            && is_table(at)
    })
}
