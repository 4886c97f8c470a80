//! The header, attributes and features of a file. In a pipe-mode stream, attributes and features are among the first records.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use linux_perf_data::Feature;
use perfuse_recording::Source;
use perfuse_wire::{Cursor, Endian, ErrorKind, ParseError, Rule};

use super::attribute::{Attributes, EventAttribute};
use super::consts::{PIPE_HEADER_BYTES, RecordType, byte_order};
use super::feature_values;
use super::features::{Features, header_string, section_bytes, text};
use super::layout::{EventHeader, EventType, EventUpdate, FileHeader, HeaderFeature, Section};
use super::record::read_record;
use super::rules;
use super::tracing_data::read_formats;

/// Size of the first published `perf_event_attr`, which a size of 0 stands for.
pub(super) const ATTR_SIZE_VER0: u64 = 64;
/// Offset of `perf_event_attr.size`.
const ATTR_SIZE_OFFSET: usize = 4;
/// Size of an entry of the table of event types: an id and 64 bytes of name.
const EVENT_TYPE_BYTES: usize = 72;
/// Value of `perf_record_event_update.type` for a name.
const EVENT_UPDATE_NAME: u64 = 2;

/// A departure in header, attributes or features, for the checker.
#[derive(Debug)]
pub struct PreambleFinding {
    /// The rule.
    pub rule: &'static Rule,
    /// Absolute offset.
    pub offset: u64,
    /// Name of the field.
    pub field: &'static str,
    /// Description.
    pub message: Cow<'static, str>,
}

/// The header of a file, its attributes and its features.
#[derive(Debug)]
pub struct Preamble {
    /// The bytes of the file.
    pub source: Arc<Source>,
    /// Byte order.
    pub endian: Endian,
    /// The header; in pipe mode only its first two fields are set.
    pub header: FileHeader,
    /// Whether the file was written to a pipe, with attributes and features among the records.
    pub pipe: bool,
    /// Offsets of the records.
    pub records: Range<u64>,
    /// Recorded events.
    pub attributes: Attributes,
    /// Feature sections.
    pub features: Features,
    /// Names of events of a stream, as entries of the table of event types that a file has.
    pub event_types: Vec<u8>,
    /// Departures in header, attributes and features.
    pub findings: Vec<PreambleFinding>,
    /// End of the last section, of those that are in the file; in pipe mode everything is records.
    pub sections_end: u64,
}

impl Preamble {
    /// Reads header, attributes and features.
    ///
    /// # Errors
    /// When the bytes are not a perf.data file, or end inside its header.
    pub fn read(source: Arc<Source>) -> Result<Self, ParseError> {
        let Some(endian) = byte_order(&source) else {
            let found = source.first_chunk::<4>().copied().unwrap_or_default();
            let kind = ErrorKind::BadMagic { found: u32::from_be_bytes(found) };
            return Err(ParseError::new(kind, 0, "magic"));
        };
        let mut cursor = Cursor::new(&source, 0, endian);
        let magic = cursor.u64("magic")?;
        let size = cursor.u64("size")?;
        let pipe = size == PIPE_HEADER_BYTES;
        let header = if pipe {
            // Fields after `size` are 0.
            let zeros = [0; FileHeader::SIZE as usize];
            FileHeader { magic, size, ..FileHeader::read(&mut Cursor::new(&zeros, 0, endian))? }
        } else {
            FileHeader::read(&mut Cursor::new(&source, 0, endian))?
        };
        let mut preamble = Self {
            endian,
            header,
            pipe,
            records: 0..0,
            attributes: Attributes::default(),
            features: Features::default(),
            findings: Vec::new(),
            event_types: Vec::new(),
            sections_end: size,
            source,
        };
        read_sections(&mut preamble);
        Ok(preamble)
    }
}

/// Reads attributes and features and determines the offsets of the records.
fn read_sections(file: &mut Preamble) {
    let len = file.source.len() as u64;
    if file.pipe {
        file.records = file.header.size..len;
        extend_sections(file, len);
        read_stream_start(file);
    } else {
        let start = file.header.data_offset;
        let end = match file.header.data_size {
            0 => len,
            size => start.saturating_add(size),
        };
        file.records = start..end.min(len);
        read_attributes(file);
        if file.header.data_size != 0 {
            file.read_feature_table(end);
        }
        extend_sections(file, file.records.end);
        if !file.features.has(Feature::EVENT_DESC) {
            read_tracepoint_names(file);
            read_simpleperf_names(file);
        }
    }
    read_event_desc(file);
    if file.attributes.list().is_empty() {
        let message = "no event attribute can be read, so samples cannot be decoded";
        add_finding(file, &rules::NO_ATTRIBUTES, file.header.attrs_offset, "attrs", message.into());
    }
}

/// Notes that a section ends at `end`.
pub(super) fn extend_sections(file: &mut Preamble, end: u64) {
    file.sections_end = file.sections_end.max(end.min(file.source.len() as u64));
}

/// Adds a departure.
pub(super) fn add_finding(
    file: &mut Preamble,
    rule: &'static Rule,
    offset: u64,
    field: &'static str,
    message: Cow<'static, str>,
) {
    // An offset past the end of the file is reported as the end, so that every reported offset is in the file.
    let offset = offset.min(file.source.len() as u64);
    file.findings.push(PreambleFinding { rule, offset, field, message });
}

/// Size of an attribute in its own `size` field; 0 stands for the first published size.
fn attribute_size(attr: &[u8], file: &Preamble) -> u64 {
    let field = attr.get(ATTR_SIZE_OFFSET..).unwrap_or_default();
    match Cursor::new(field, 0, file.endian).u32("size") {
        Ok(0) | Err(_) => ATTR_SIZE_VER0,
        Ok(size) => u64::from(size),
    }
}

/// Reads the attribute section and the ids of each attribute.
fn read_attributes(file: &mut Preamble) {
    let FileHeader { attr_size, attrs_offset, attrs_size, .. } = file.header;
    let section = Section { offset: attrs_offset, size: attrs_size };
    let source = file.source.clone();
    let bytes = section_bytes(&source, section);
    extend_sections(file, section.offset.saturating_add(section.size));
    if (bytes.len() as u64) < attrs_size {
        let message = format!("the attribute section of {attrs_size} bytes ends past the file");
        add_finding(file, &rules::SECTION_OUTSIDE, attrs_offset, "attrs", message.into());
    }
    let Some(ids_offset) = attr_size.checked_sub(Section::SIZE).filter(|&size| size >= ATTR_SIZE_VER0) else {
        return;
    };
    // Together, all id lists must not be longer than the file, although several attributes may share one.
    let mut budget = source.len();
    for entry in bytes.chunks_exact(usize::try_from(attr_size).unwrap_or(usize::MAX)) {
        let Some((attr, section)) = entry.split_at_checked(usize::try_from(ids_offset).unwrap_or(usize::MAX))
        else {
            return;
        };
        let Ok(section) = Section::read(&mut Cursor::new(section, 0, file.endian)) else { return };
        let ids = section_bytes(&source, section);
        extend_sections(file, section.offset.saturating_add(section.size));
        let is_inside = (ids.len() as u64) >= section.size && ids.len() <= budget;
        if !is_inside {
            let message = "the ids of an event are outside the file";
            add_finding(file, &rules::SECTION_OUTSIDE, section.offset, "ids", message.into());
        }
        let ids = if is_inside { ids } else { &[] };
        budget = budget.saturating_sub(ids.len());
        let ids = read_words(ids, file);
        let len = usize::try_from(attribute_size(attr, file).min(ids_offset)).unwrap_or(0);
        if let Some(attribute) = EventAttribute::new(attr.get(..len).unwrap_or(attr), ids, file.endian) {
            file.attributes.push(attribute);
        }
    }
}

/// Reads 64-bit words.
fn read_words(bytes: &[u8], file: &Preamble) -> Vec<u64> {
    let mut cursor = Cursor::new(bytes, 0, file.endian);
    std::iter::from_fn(|| cursor.u64("id").ok()).collect()
}

/// Reads attributes, features and names of events from the start of a pipe-mode stream, up to the first record of the kernel.
fn read_stream_start(file: &mut Preamble) {
    let mut offset = file.records.start;
    let source = file.source.clone();
    let endian = file.endian;
    while let Ok(record) = read_record(&source, offset, endian, true) {
        if !record.record_type.is_user() {
            return;
        }
        let mut cursor = record.cursor(endian);
        match record.record_type {
            RecordType::HEADER_ATTR => {
                let size = attribute_size(record.body, file);
                let Ok(attr) = cursor.bytes(size, "attr") else { return };
                let ids = read_words(cursor.rest(), file);
                if let Some(attribute) = EventAttribute::new(attr, ids, endian) {
                    file.attributes.push(attribute);
                }
            }
            RecordType::HEADER_FEATURE => {
                let feature = HeaderFeature::read(&mut cursor)
                    .ok()
                    .and_then(|header| u8::try_from(header.feat_id).ok());
                // The last feature record of perf contains no data.
                if let Some(bit) = feature.filter(|_| cursor.remaining() != 0) {
                    let section = Section { offset: cursor.offset(), size: cursor.remaining() as u64 };
                    file.features.insert(Feature(u32::from(bit)), section);
                }
            }
            RecordType::HEADER_EVENT_TYPE => {
                let bytes = record.body.iter().copied().take(EVENT_TYPE_BYTES - 1);
                if let Ok(EventType { event_id }) = EventType::read(&mut cursor) {
                    file.attributes.name_tracepoint(event_id, &text(cursor.rest()));
                    let end = file.event_types.len().saturating_add(EVENT_TYPE_BYTES);
                    file.event_types.extend(bytes);
                    file.event_types.resize(end, 0);
                }
            }
            RecordType::HEADER_TRACING_DATA => name_tracepoints(&mut file.attributes, record.payload),
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

/// Names tracepoints by the table of event types of perf before Linux 3.11, and by their formats.
fn read_tracepoint_names(file: &mut Preamble) {
    let source = file.source.clone();
    let FileHeader { event_types_offset, event_types_size, .. } = file.header;
    let section = Section { offset: event_types_offset, size: event_types_size };
    extend_sections(file, section.offset.saturating_add(section.size));
    for entry in section_bytes(&source, section).chunks_exact(EVENT_TYPE_BYTES) {
        let mut cursor = Cursor::new(entry, event_types_offset, file.endian);
        let Ok(EventType { event_id }) = EventType::read(&mut cursor) else { return };
        file.attributes.name_tracepoint(event_id, &text(cursor.rest()));
    }
    if let Some(cursor) = file.features.cursor(Feature::TRACING_DATA, &source, file.endian) {
        name_tracepoints(&mut file.attributes, cursor.rest());
    }
}

/// Names events as simpleperf notes them: a line `sched:sched_switch,2,91` for each, with its type and configuration.
fn read_simpleperf_names(file: &mut Preamble) {
    let source = file.source.clone();
    let section = file.features.cursor(Feature::SIMPLEPERF_META_INFO, &source, file.endian);
    let facts = section.map(|cursor| cursor.rest()).unwrap_or_default();
    for (_, value) in feature_values::meta_info(facts).filter(|(name, _)| name == "event_type_info") {
        for line in value.lines() {
            let mut fields = line.rsplitn(3, ',');
            let (config, type_, name) = (fields.next(), fields.next(), fields.next());
            let (Some(Ok(config)), Some(Ok(type_)), Some(name)) =
                (config.map(str::parse), type_.map(str::parse), name)
            else {
                continue;
            };
            file.attributes.name_kind(type_, config, name);
        }
    }
}

/// Names tracepoints by their formats.
fn name_tracepoints(attributes: &mut Attributes, tracing_data: &[u8]) {
    for format in read_formats(tracing_data).unwrap_or_default() {
        attributes.name_tracepoint(format.id, &format!("{}:{}", format.system, format.name));
    }
}

/// Reads the names of events from HEADER_EVENT_DESC, and the attributes where their own section cannot be read.
fn read_event_desc(file: &mut Preamble) {
    let source = file.source.clone();
    let Some(mut cursor) = file.features.cursor(Feature::EVENT_DESC, &source, file.endian) else { return };
    let (Ok(count), Ok(attr_size)) = (cursor.u32("nr"), cursor.u32("attr_size")) else { return };
    let missing = file.attributes.list().is_empty();
    for index in 0..count as usize {
        let Ok(attr) = cursor.bytes(u64::from(attr_size), "attr") else { return };
        let (Ok(num_ids), Ok(name)) = (cursor.u32("nr_ids"), header_string(&mut cursor)) else { return };
        let Ok(ids) = cursor.bytes(u64::from(num_ids).saturating_mul(8), "ids") else { return };
        let ids = read_words(ids, file);
        if missing && let Some(attribute) = EventAttribute::new(attr, ids.clone(), file.endian) {
            file.attributes.push(attribute);
        }
        match ids.first() {
            Some(&id) => file.attributes.rename(id, &name),
            None => file.attributes.rename_at(index, &name),
        }
    }
}
