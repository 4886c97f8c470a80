//! Attributes and features: found by the header of a file, or among the first records of a pipe-mode stream.

use std::borrow::Cow;

use linux_perf_data::Feature;
use perfuse_wire::{Cursor, Rule};

use super::attribute::Attribute;
use super::check;
use super::consts::RecordType;
use super::features::{bytes_of, header_string, text};
use super::layout::{EventHeader, EventUpdate, FileHeader, HeaderFeature, Section};
use super::reader::File;

/// Size of the first published `perf_event_attr`; what a size of 0 means.
const ATTR_SIZE_VER0: u64 = 64;
/// Offset of `perf_event_attr.size`.
const ATTR_SIZE_OFFSET: usize = 4;
/// `perf_record_event_update.type` of a name.
const EVENT_UPDATE_NAME: u64 = 2;

/// A header of nothing.
pub const EMPTY: FileHeader = FileHeader {
    magic: 0,
    size: 0,
    attr_size: 0,
    attrs_offset: 0,
    attrs_size: 0,
    data_offset: 0,
    data_size: 0,
    event_types_offset: 0,
    event_types_size: 0,
    features_0: 0,
    features_1: 0,
    features_2: 0,
    features_3: 0,
};

/// A departure seen while opening, kept until somebody checks.
#[derive(Debug)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// Where.
    pub offset: u64,
    /// Which field.
    pub field: &'static str,
    /// What was found.
    pub message: Cow<'static, str>,
}

/// Fills in where the records are, the attributes and the features.
pub fn locate(file: &mut File) {
    let len = file.source.len() as u64;
    if file.pipe {
        file.records = file.header.size..len;
        read_stream_start(file);
    } else {
        let start = file.header.data_offset;
        let end = match file.header.data_size {
            0 => len,
            size => start.saturating_add(size),
        };
        file.records = start..end.min(len);
        read_attributes(file);
        if file.header.data_size != 0 && end <= len {
            read_feature_table(file, end);
        }
    }
    read_event_desc(file);
    if file.attributes.list().is_empty() {
        let message = "no event attribute can be read, so samples cannot be decoded";
        find(file, &check::NO_ATTRIBUTES, file.header.attrs_offset, "attrs", message.into());
    }
}

fn find(file: &mut File, rule: &'static Rule, offset: u64, field: &'static str, message: Cow<'static, str>) {
    // What points past the file is told at its end, so that every offset is one of the file's.
    let offset = offset.min(file.source.len() as u64);
    file.findings.push(Finding { rule, offset, field, message });
}

/// Size of an attribute as it states it; 0 stands for the first published size.
fn stated_size(attr: &[u8], file: &File) -> u64 {
    let field = attr.get(ATTR_SIZE_OFFSET..).unwrap_or_default();
    match Cursor::new(field, 0, file.endian).u32("size") {
        Ok(0) | Err(_) => ATTR_SIZE_VER0,
        Ok(size) => u64::from(size),
    }
}

fn read_attributes(file: &mut File) {
    let FileHeader { attr_size, attrs_offset, attrs_size, .. } = file.header;
    let section = Section { offset: attrs_offset, size: attrs_size };
    let source = file.source.clone();
    let bytes = bytes_of(&source, section);
    if (bytes.len() as u64) < attrs_size {
        let message = format!("the attribute section ends {attrs_size} bytes on, past the file");
        find(file, &check::SECTION_OUTSIDE, attrs_offset, "attrs", message.into());
    }
    let Some(ids_at) = attr_size.checked_sub(Section::SIZE).filter(|&size| size >= ATTR_SIZE_VER0) else {
        return;
    };
    // All id lists together are no longer than the file, however many attributes point at them.
    let mut budget = source.len();
    for entry in bytes.chunks_exact(usize::try_from(attr_size).unwrap_or(usize::MAX)) {
        let Some((attr, place)) = entry.split_at_checked(usize::try_from(ids_at).unwrap_or(usize::MAX))
        else {
            return;
        };
        let Ok(place) = Section::read(&mut Cursor::new(place, 0, file.endian)) else { return };
        let ids = bytes_of(&source, place);
        let within = (ids.len() as u64) >= place.size && ids.len() <= budget;
        if !within {
            let message = "the ids of an event lie outside the file";
            find(file, &check::SECTION_OUTSIDE, place.offset, "ids", message.into());
        }
        let ids = if within { ids } else { &[] };
        budget = budget.saturating_sub(ids.len());
        let ids = words(ids, file);
        let known = usize::try_from(stated_size(attr, file).min(ids_at)).unwrap_or(0);
        if let Some(attribute) = Attribute::new(attr.get(..known).unwrap_or(attr), ids, file.endian) {
            file.attributes.push(attribute);
        }
    }
}

fn words(bytes: &[u8], file: &File) -> Vec<u64> {
    let mut cursor = Cursor::new(bytes, 0, file.endian);
    std::iter::from_fn(|| cursor.u64("id").ok()).collect()
}

/// One section a feature bit, in the order of the bits, where the records end.
fn read_feature_table(file: &mut File, table: u64) {
    let header = file.header;
    let bits = [header.features_0, header.features_1, header.features_2, header.features_3];
    let source = file.source.clone();
    let rest = source.get(usize::try_from(table).unwrap_or(usize::MAX)..).unwrap_or_default();
    let mut cursor = Cursor::new(rest, table, file.endian);
    let set = (0u32..256).filter(|bit| {
        let word = bits.get((bit >> 6) as usize).copied().unwrap_or(0);
        word.wrapping_shr(bit & 63) & 1 != 0
    });
    for bit in set {
        let Ok(section) = Section::read(&mut cursor) else {
            let message = "the table of feature sections ends early".into();
            return find(file, &check::SECTION_OUTSIDE, cursor.offset(), "features", message);
        };
        if (bytes_of(&source, section).len() as u64) < section.size {
            let message = format!("the section of HEADER_{} lies outside the file", Feature(bit));
            find(file, &check::SECTION_OUTSIDE, section.offset, "features", message.into());
        }
        file.features.insert(Feature(bit), section);
    }
}

/// Attributes, features and names that a pipe-mode stream begins with, up to the kernel's first record.
fn read_stream_start(file: &mut File) {
    let mut offset = file.records.start;
    let source = file.source.clone();
    let endian = file.endian;
    while let Ok(record) = super::reader::cut(&source, offset, endian, true) {
        if !record.record_type.is_user() {
            return;
        }
        let mut cursor = record.cursor(endian);
        match record.record_type {
            RecordType::HEADER_ATTR => {
                let size = stated_size(record.body, file);
                let Ok(attr) = cursor.bytes(size, "attr") else { return };
                let ids = words(cursor.rest(), file);
                if let Some(attribute) = Attribute::new(attr, ids, endian) {
                    file.attributes.push(attribute);
                }
            }
            RecordType::HEADER_FEATURE => {
                let feature =
                    HeaderFeature::read(&mut cursor).ok().and_then(|it| u8::try_from(it.feat_id).ok());
                // perf ends the features with one of no data.
                if let Some(bit) = feature.filter(|_| cursor.remaining() != 0) {
                    let section = Section { offset: cursor.offset(), size: cursor.remaining() as u64 };
                    file.features.insert(Feature(u32::from(bit)), section);
                }
            }
            RecordType::EVENT_UPDATE => {
                if let Ok(EventUpdate { type_: EVENT_UPDATE_NAME, id }) = EventUpdate::read(&mut cursor) {
                    file.attributes.rename(id, &text(cursor.rest()));
                }
            }
            _ => {}
        }
        offset = offset.saturating_add(record.size.max(EventHeader::SIZE));
    }
}

/// Names, and the attributes themselves where their own section cannot be read.
fn read_event_desc(file: &mut File) {
    let source = file.source.clone();
    let Some(mut cursor) = file.features.cursor(Feature::EVENT_DESC, &source, file.endian) else { return };
    let (Ok(count), Ok(attr_size)) = (cursor.u32("nr"), cursor.u32("attr_size")) else { return };
    let missing = file.attributes.list().is_empty();
    for index in 0..count as usize {
        let Ok(attr) = cursor.bytes(u64::from(attr_size), "attr") else { return };
        let (Ok(num_ids), Ok(name)) = (cursor.u32("nr_ids"), header_string(&mut cursor)) else { return };
        let Ok(ids) = cursor.bytes(u64::from(num_ids).saturating_mul(8), "ids") else { return };
        let ids = words(ids, file);
        if missing && let Some(attribute) = Attribute::new(attr, ids.clone(), file.endian) {
            file.attributes.push(attribute);
        }
        match ids.first() {
            Some(&id) => file.attributes.rename(id, &name),
            None => file.attributes.rename_at(index, &name),
        }
    }
}
