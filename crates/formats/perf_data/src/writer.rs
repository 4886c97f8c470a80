//! Writes a recording with additional mappings, so that perf finds JIT code in the ELF files that contain it.
//!
//! The result corresponds to that of `perf inject --jit`, in file mode and without compression: all records of the kernel in
//! time order, MMAP2 records at the times of the code, all feature sections, and build ids of the added files.

use std::io::{self, Seek, SeekFrom, Write};

use linux_perf_data::Feature;
use linux_perf_event_reader::constants as abi;
use perfuse_wire::{Cursor, Endian, ErrorKind, Put};
use rustc_hash::FxHashMap;

use super::attribute::EventAttribute;
use super::consts::{MAGIC_NUMBER, RecordType, misc};
use super::feature_values;
use super::features::section_bytes;
use super::layout::{BuildIdEvent, EventHeader, FileHeader, Mmap, Mmap2Protection, Section};
use super::order::TimeOrder;
use super::perf_data::PerfData;
use super::perf_file::PerfFile;
use super::reader::RecordPages;
use super::record::RawEvent;
use super::records::MappingRecord;
use super::view_bodies::unknown_id;
use perfuse_recording::Position;

/// A mapping of a file with code into a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InjectedMmap {
    /// Process id in the pid namespace of the recorder.
    pub pid: i32,
    /// Thread that compiled the code.
    pub tid: i32,
    /// Time of the mapping on the recording's clock, in nanoseconds.
    pub ts_ns: u64,
    /// First address.
    pub start_address: u64,
    /// Size in bytes.
    pub size: u64,
    /// Offset in the file of the first address.
    pub file_offset: u64,
    /// Path of the file.
    pub path: String,
    /// Build id of the file, of at most 20 bytes.
    pub build_id: Option<Vec<u8>>,
}

/// An additional entry of the table of build ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InjectedBuildId {
    /// Path of the file.
    pub path: String,
    /// Build id of the file, of at most 20 bytes.
    pub build_id: Vec<u8>,
}

/// Reason why a recording could not be written.
#[derive(Debug)]
pub enum InjectError {
    /// The output could not be written.
    Io(io::Error),
    /// No event attribute can be read, without which perf cannot decode the records.
    NoAttributes,
    /// A path or a build id is too long for a record.
    TooLong(String),
}

impl std::fmt::Display for InjectError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(error) => write!(f, "cannot write perf.data: {error}"),
            Self::NoAttributes => f.write_str("the recording has no event attribute that can be read"),
            Self::TooLong(what) => write!(f, "too long for a perf.data record: {what}"),
        }
    }
}

impl std::error::Error for InjectError {}

impl From<io::Error> for InjectError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Numbers of written records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Injection {
    /// Number of records that were copied from the recording.
    pub num_copied: u64,
    /// Number of mappings that were added.
    pub num_added: u64,
    /// Number of mappings of the recording that were left out because they would hide added ones.
    pub num_dropped: u64,
}

/// Number of records between two FINISHED_ROUND. perf keeps at most twice as many in memory.
const ROUND_RECORDS: u64 = 65_536;

/// Writes a recording with additional mappings and build ids to `out`, from offset 0.
///
/// Memory is bounded: records are streamed, and only the added mappings and the times of two rounds are in memory.
///
/// # Errors
/// [`InjectError`]; the output is then incomplete.
pub fn inject<W: Write + Seek>(
    perf: &PerfData,
    mmaps: &[InjectedMmap],
    build_ids: &[InjectedBuildId],
    out: &mut W,
) -> Result<Injection, InjectError> {
    write(perf, mmaps, build_ids, |_, _| true, out)
}

/// Writes a recording without the records whose fields cannot be read, or that perf refuses.
///
/// # Errors
/// As [`inject`].
pub fn write_readable<W: Write + Seek>(perf: &PerfData, out: &mut W) -> Result<Injection, InjectError> {
    write(perf, &[], &[], is_readable, out)
}

/// Whether all fields of a record can be read, and it has no ids of other events.
fn is_readable(file: &PerfFile, record: &RawEvent<'_>) -> bool {
    let can_be_read = record.record_type.known_name().is_none()
        || file.body_error(record).is_none_or(|error| error.kind == ErrorKind::NoTerminator);
    let is_of_event = || match record.record_type {
        RecordType::SAMPLE => !file.attributes.is_id_unknown(record.record_type, record.body, file.endian),
        _ => unknown_id(file, record).is_none(),
    };
    can_be_read && is_of_event()
}

/// Which records of a recording are written.
type Condition = fn(&PerfFile, &RawEvent<'_>) -> bool;

fn write<W: Write + Seek>(
    perf: &PerfData,
    mmaps: &[InjectedMmap],
    build_ids: &[InjectedBuildId],
    is_written: Condition,
    out: &mut W,
) -> Result<Injection, InjectError> {
    let file = &**perf.file();
    let first = file.attributes.list().first().ok_or(InjectError::NoAttributes)?;
    let added = encode_mmaps(mmaps, first, file.endian)?;
    let table = build_id_section(file, mmaps, build_ids)?;
    let mut writer = Writer { out, offset: 0, endian: file.endian, is_written, tracing_data: None };
    // The header is written last, when all sizes are known.
    writer.put(&vec![0; usize::try_from(FileHeader::SIZE).unwrap_or(0)])?;
    let attrs = writer.write_attributes(file)?;
    let FileHeader { event_types_offset: offset, event_types_size: size, .. } = file.header;
    let section = section_bytes(&file.source, Section { offset, size });
    let event_types = if section.is_empty() { &file.event_types } else { section };
    let event_types_offset = if event_types.is_empty() { 0 } else { writer.offset };
    writer.put(event_types)?;
    let data_offset = writer.offset;
    let result = writer.write_records(file, mmaps, &added)?;
    let data_size = writer.offset.saturating_sub(data_offset);
    let bits = writer.write_features(file, &table)?;
    let header = FileHeader {
        magic: MAGIC_NUMBER,
        size: FileHeader::SIZE,
        attr_size: attrs.entry_bytes,
        attrs_offset: attrs.section.offset,
        attrs_size: attrs.section.size,
        data_offset,
        data_size,
        event_types_offset,
        event_types_size: event_types.len() as u64,
        features_0: bits[0],
        features_1: bits[1],
        features_2: bits[2],
        features_3: bits[3],
    };
    let mut bytes = Vec::new();
    header.write(&mut bytes, file.endian);
    writer.out.seek(SeekFrom::Start(0))?;
    writer.out.write_all(&bytes)?;
    writer.out.flush()?;
    Ok(result)
}

/// Writes the parts of a file in sequence.
struct Writer<'w, W> {
    out: &'w mut W,
    /// Number of bytes written.
    offset: u64,
    endian: Endian,
    is_written: Condition,
    /// Tracepoint formats among the records of a pipe-mode stream.
    tracing_data: Option<Section>,
}

/// Size of an entry and location of the attribute section.
struct WrittenAttributes {
    entry_bytes: u64,
    section: Section,
}

impl<W: Write + Seek> Writer<'_, W> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.offset = self.offset.saturating_add(bytes.len() as u64);
        Ok(())
    }

    /// Writes the ids, then the attributes that refer to them.
    fn write_attributes(&mut self, file: &PerfFile) -> io::Result<WrittenAttributes> {
        let list = file.attributes.list();
        let mut id_sections = Vec::new();
        for attribute in list {
            let mut ids = Vec::new();
            attribute.ids.iter().for_each(|&id| ids.put_u64(id, self.endian));
            id_sections.push(Section { offset: self.offset, size: ids.len() as u64 });
            self.put(&ids)?;
        }
        let entries: Vec<_> =
            list.iter().map(|attribute| shorten_attribute(&attribute.bytes, self.endian)).collect();
        let longest = entries.iter().map(Vec::len).max().unwrap_or(0);
        let offset = self.offset;
        for (mut entry, ids) in entries.into_iter().zip(id_sections) {
            entry.resize(longest, 0);
            ids.write(&mut entry, self.endian);
            self.put(&entry)?;
        }
        Ok(WrittenAttributes {
            entry_bytes: Section::SIZE.saturating_add(longest as u64),
            section: Section { offset, size: self.offset.saturating_sub(offset) },
        })
    }

    /// Writes all records and the added mappings.
    fn write_records(
        &mut self,
        file: &PerfFile,
        mmaps: &[InjectedMmap],
        added: &[EncodedMmap],
    ) -> io::Result<Injection> {
        let mut result = Injection::default();
        self.write_untimed(file, &mut result)?;
        let added_code = AddedCode::new(mmaps);
        let mut order = TimeOrder::new(file, |_, time| time != 0);
        let mut pages = RecordPages::default();
        let mut added = added.iter().peekable();
        let mut in_round = 0u64;
        while let Some(timed) = order.next(file) {
            let Some(record) = file.at(timed.location) else { continue };
            // A mapping precedes records of the same time: a sample may be in it.
            while let Some(mmap) = added.next_if(|mmap| mmap.ts_ns <= timed.time) {
                self.put(&mmap.bytes)?;
                result.num_added = result.num_added.saturating_add(1);
            }
            if added_code.is_hidden_by(file, &record, timed.time) {
                result.num_dropped = result.num_dropped.saturating_add(1);
                continue;
            }
            if !(self.is_written)(file, &record) {
                continue;
            }
            self.put(record.bytes)?;
            result.num_copied = result.num_copied.saturating_add(1);
            in_round = in_round.saturating_add(1);
            if in_round >= ROUND_RECORDS {
                in_round = 0;
                self.write_finished_round()?;
                pages.release_before(file, order.oldest());
            }
        }
        for mmap in added {
            self.put(&mmap.bytes)?;
            result.num_added = result.num_added.saturating_add(1);
        }
        self.write_finished_round()?;
        Ok(result)
    }

    /// Writes the records of perf, and records of the kernel without a time or from before the recording. perf processes them in
    /// file order, so they precede all others.
    fn write_untimed(&mut self, file: &PerfFile, result: &mut Injection) -> io::Result<()> {
        let mut at = Position::default();
        let mut pages = RecordPages::default();
        while let Ok(record) = file.next(&mut at) {
            let is_copied = if record.record_type.is_user() {
                not_copied_because(record.record_type).is_none()
            } else {
                file.time(&record).unwrap_or(0) == 0
            };
            if record.record_type == RecordType::HEADER_TRACING_DATA {
                let offset = record.offset.saturating_add(record.bytes.len() as u64);
                self.tracing_data = Some(Section { offset, size: record.payload.len() as u64 });
            }
            if is_copied && (self.is_written)(file, &record) {
                self.put(record.bytes)?;
                self.put(record.payload)?;
                result.num_copied = result.num_copied.saturating_add(1);
            }
            pages.release_before(file, at);
        }
        Ok(())
    }

    fn write_finished_round(&mut self) -> io::Result<()> {
        let mut bytes = Vec::new();
        let size = u16::try_from(EventHeader::SIZE).unwrap_or(0);
        EventHeader { type_: RecordType::FINISHED_ROUND.0, misc: 0, size }.write(&mut bytes, self.endian);
        self.put(&bytes)
    }

    /// Writes the table of sections, then the sections. Returns the feature bits of the header.
    fn write_features(&mut self, file: &PerfFile, build_ids: &[u8]) -> io::Result<[u64; 4]> {
        let mut sections: Vec<_> = file
            .features
            .iter()
            .filter(|(feature, _)| is_copied_feature(*feature))
            .filter_map(|(feature, section)| Some((feature, readable_section(file, feature, section)?)))
            .collect();
        if let Some(section) = self.tracing_data {
            sections.push((Feature::TRACING_DATA, section_bytes(&file.source, section)));
        }
        if !build_ids.is_empty() {
            sections.push((Feature::BUILD_ID, build_ids));
        }
        sections.sort_by_key(|(feature, _)| *feature);
        let table_bytes = Section::SIZE.saturating_mul(sections.len() as u64);
        let mut offset = self.offset.saturating_add(table_bytes);
        let mut bits = [0u64; 4];
        let mut table = Vec::new();
        for (Feature(bit), bytes) in &sections {
            if let Some(word) = bits.get_mut((bit >> 6) as usize) {
                *word |= 1u64.wrapping_shl(bit & 63);
            }
            Section { offset, size: bytes.len() as u64 }.write(&mut table, self.endian);
            offset = offset.saturating_add(bytes.len() as u64);
        }
        self.put(&table)?;
        for (_, bytes) in sections {
            self.put(bytes)?;
        }
        Ok(bits)
    }
}

/// Why records of a kind are not copied; `None` for those that are.
pub fn not_copied_because(kind: RecordType) -> Option<&'static str> {
    match kind {
        RecordType::HEADER_ATTR
        | RecordType::HEADER_EVENT_TYPE
        | RecordType::HEADER_TRACING_DATA
        | RecordType::HEADER_BUILD_ID
        | RecordType::HEADER_FEATURE => Some("in the header of the written file"),
        RecordType::FINISHED_ROUND => Some("written anew, since records are sorted by time"),
        RecordType::COMPRESSED | RecordType::COMPRESSED2 => Some("unpacked: the records in them are written"),
        _ => None,
    }
}

/// The content of a feature section; `None` where it is not in the file or cannot be decoded: perf refuses files with such.
fn readable_section(file: &PerfFile, feature: Feature, section: Section) -> Option<&[u8]> {
    let bytes = section_bytes(&file.source, section);
    let cursor = Cursor::new(bytes, section.offset, file.endian);
    let is_whole = bytes.len() as u64 == section.size;
    (is_whole && feature_values::verify(feature.0, cursor).is_ok()).then_some(bytes)
}

/// Whether a feature section is copied. The result is not compressed, build ids are written anew, and an index of AUX data
/// would contain the old offsets of records; without it, perf reads the records in file order.
fn is_copied_feature(feature: Feature) -> bool {
    !matches!(feature, Feature::COMPRESSED | Feature::BUILD_ID | Feature::AUXTRACE | Feature::DIR_FORMAT)
}

/// The address ranges of added code in each process, with their times.
struct AddedCode {
    ranges: FxHashMap<i32, Vec<AddedRange>>,
}

#[derive(Clone, Copy, Debug)]
struct AddedRange {
    start: u64,
    end: u64,
    /// Time of the first mapping in the range.
    ts_ns: u64,
}

impl AddedCode {
    /// Merges adjacent added mappings of each process.
    fn new(mmaps: &[InjectedMmap]) -> Self {
        let mut ranges: FxHashMap<i32, Vec<AddedRange>> = FxHashMap::default();
        for mmap in mmaps {
            let end = mmap.start_address.saturating_add(mmap.size);
            ranges.entry(mmap.pid).or_default().push(AddedRange {
                start: mmap.start_address,
                end,
                ts_ns: mmap.ts_ns,
            });
        }
        for list in ranges.values_mut() {
            list.sort_unstable_by_key(|range| range.start);
            list.dedup_by(|next, range| {
                let is_adjacent = next.start <= range.end;
                if is_adjacent {
                    range.end = range.end.max(next.end);
                    range.ts_ns = range.ts_ns.min(next.ts_ns);
                }
                is_adjacent
            });
        }
        Self { ranges }
    }

    /// Whether a record is a mapping that hides added code, so that it is left out.
    ///
    /// For perf, the latest mapping of an address is valid. When a runtime changes the protection of its code area or maps more
    /// of it, the kernel records a mapping of anonymous memory over code that was added earlier. perf inject removes all such
    /// mappings of a process with a dump; this removes only those that overlap added code. Mappings of files remain, because
    /// they replace the code. The marker mapping of the dump is removed too: perf inject would otherwise process the result
    /// again.
    fn is_hidden_by(&self, file: &PerfFile, record: &RawEvent<'_>, time: u64) -> bool {
        let Some(mapping) = MappingRecord::read(record, file.endian) else { return false };
        let Some(ranges) = self.ranges.get(&mapping.pid) else { return false };
        if mapping.is_jit_marker() {
            return true;
        }
        let end = mapping.start_address.saturating_add(mapping.size);
        let after = ranges.partition_point(|range| range.end <= mapping.start_address);
        mapping.is_anonymous()
            && ranges
                .iter()
                .skip(after)
                .take_while(|range| range.start < end)
                .any(|range| range.ts_ns <= time)
    }
}

/// Largest size of a path in a record, in bytes: `PATH_MAX`.
const MAX_PATH_BYTES: usize = 4096;
/// Largest size of a build id in bytes.
const MAX_BUILD_ID_BYTES: usize = 20;
/// Alignment of names in build-id entries, in bytes.
const BUILD_ID_NAME_ALIGN: usize = 64;
/// `PROT_READ | PROT_EXEC`.
const PROT: u32 = 5;
/// `MAP_PRIVATE`.
const MAP_FLAGS: u32 = 2;

/// Sizes of `struct perf_event_attr` in bytes, in the versions of the kernel's interface.
const ATTR_SIZES: [usize; 10] = [64, 72, 80, 96, 104, 112, 120, 128, 136, 144];
/// Offset of its `size` field.
const ATTR_SIZE_OFFSET: usize = 4;

/// An attribute in the smallest published size that contains all its nonzero bytes. perf rejects attributes that are larger
/// than its own, even if the rest is zero.
fn shorten_attribute(attribute: &[u8], endian: Endian) -> Vec<u8> {
    let used = attribute.iter().rposition(|&byte| byte != 0).map_or(0, |last| last.saturating_add(1));
    let size = ATTR_SIZES.into_iter().find(|&size| size >= used).unwrap_or(attribute.len());
    let mut shortened = attribute.to_vec();
    shortened.resize(size, 0);
    let (mut size_bytes, len) = (Vec::new(), u32::try_from(shortened.len()).unwrap_or(0));
    size_bytes.put_u32(len, endian);
    if let Some(field) =
        shortened.get_mut(ATTR_SIZE_OFFSET..).and_then(|rest| rest.get_mut(..size_bytes.len()))
    {
        field.copy_from_slice(&size_bytes);
    }
    shortened
}

/// An added mapping as an MMAP2 record.
struct EncodedMmap {
    /// Time of the mapping.
    ts_ns: u64,
    /// Bytes of the record.
    bytes: Vec<u8>,
}

/// Encodes mappings as MMAP2 records of an event, in time order.
fn encode_mmaps(
    mmaps: &[InjectedMmap],
    event: &EventAttribute,
    endian: Endian,
) -> Result<Vec<EncodedMmap>, InjectError> {
    let mut added = mmaps
        .iter()
        .map(|mmap| Ok(EncodedMmap { ts_ns: mmap.ts_ns, bytes: encode_mmap(mmap, event, endian)? }))
        .collect::<Result<Vec<_>, InjectError>>()?;
    added.sort_by_key(|mmap| mmap.ts_ns);
    Ok(added)
}

/// Encodes a mapping as an MMAP2 record.
fn encode_mmap(mmap: &InjectedMmap, event: &EventAttribute, endian: Endian) -> Result<Vec<u8>, InjectError> {
    let mut body = Vec::new();
    let &InjectedMmap { pid, tid, start_address: addr, size: len, file_offset: pgoff, .. } = mmap;
    Mmap { pid, tid, addr, len, pgoff }.write(&mut body, endian);
    let mut flags = misc::USER;
    match &mmap.build_id {
        Some(id) => {
            flags |= misc::MMAP_BUILD_ID;
            body.extend_from_slice(&[id_len(id)?, 0, 0, 0]);
            put_build_id(&mut body, id);
        }
        None => body.extend_from_slice(&[0; 24]),
    }
    Mmap2Protection { prot: PROT, flags: MAP_FLAGS }.write(&mut body, endian);
    put_name(&mut body, &mmap.path, 8)?;
    put_sample_id(&mut body, mmap, event, endian);
    encode_record(RecordType::MMAP2.0, flags, &body, endian)
}

/// Appends the sample id, with which every record of an event with `sample_id_all` ends. perf sorts records by its time.
fn put_sample_id(body: &mut Vec<u8>, mmap: &InjectedMmap, event: &EventAttribute, endian: Endian) {
    if event.layout.sample_id_bytes == 0 {
        return;
    }
    let id = event.ids.first().copied().unwrap_or(0);
    if event.layout.has(abi::PERF_SAMPLE_TID) {
        body.put_i32(mmap.pid, endian);
        body.put_i32(mmap.tid, endian);
    }
    for (bit, word) in [
        (abi::PERF_SAMPLE_TIME, mmap.ts_ns),
        (abi::PERF_SAMPLE_ID, id),
        (abi::PERF_SAMPLE_STREAM_ID, id),
        (abi::PERF_SAMPLE_CPU, 0),
        (abi::PERF_SAMPLE_IDENTIFIER, id),
    ] {
        if event.layout.has(bit) {
            body.put_u64(word, endian);
        }
    }
}

/// Encodes the table of build ids: the entries of the recording, then the added files.
fn build_id_section(
    file: &PerfFile,
    mmaps: &[InjectedMmap],
    added: &[InjectedBuildId],
) -> Result<Vec<u8>, InjectError> {
    let mut section = Vec::new();
    let table = file.features.iter().find(|(feature, _)| *feature == Feature::BUILD_ID);
    if let Some(table) = table.and_then(|(feature, section)| readable_section(file, feature, section)) {
        section.extend_from_slice(table);
    }
    let mut put = |flags: u16, path: &str, id: &[u8]| -> Result<(), InjectError> {
        let mut body = Vec::new();
        BuildIdEvent { pid: -1 }.write(&mut body, file.endian);
        put_build_id(&mut body, id);
        body.extend_from_slice(&[id_len(id)?, 0, 0, 0]);
        put_name(&mut body, path, BUILD_ID_NAME_ALIGN)?;
        section.extend(encode_record(0, flags | misc::BUILD_ID_SIZE, &body, file.endian)?);
        Ok(())
    };
    for entry in &file.survey().build_ids {
        put(entry.misc, &String::from_utf8_lossy(&entry.path), &entry.id)?;
    }
    let from_mmaps = mmaps.iter().filter_map(|mmap| Some((mmap.path.as_str(), mmap.build_id.as_deref()?)));
    let from_entries = added.iter().map(|entry| (entry.path.as_str(), entry.build_id.as_slice()));
    let mut files: Vec<_> = from_mmaps.chain(from_entries).collect();
    files.sort_unstable();
    files.dedup();
    for (path, id) in files {
        put(misc::USER, path, id)?;
    }
    Ok(section)
}

/// Encodes a record.
fn encode_record(type_: u32, misc: u16, body: &[u8], endian: Endian) -> Result<Vec<u8>, InjectError> {
    let size = (EventHeader::SIZE as usize).saturating_add(body.len());
    let size = u16::try_from(size).map_err(|_| InjectError::TooLong(format!("a record of {size} bytes")))?;
    let mut bytes = Vec::with_capacity(usize::from(size));
    EventHeader { type_, misc, size }.write(&mut bytes, endian);
    bytes.extend_from_slice(body);
    Ok(bytes)
}

/// Size of a build id.
fn id_len(id: &[u8]) -> Result<u8, InjectError> {
    let len = u8::try_from(id.len()).ok().filter(|&len| usize::from(len) <= MAX_BUILD_ID_BYTES);
    len.ok_or_else(|| InjectError::TooLong(format!("a build id of {} bytes", id.len())))
}

/// Appends a build id, padded to its largest size.
fn put_build_id(body: &mut Vec<u8>, id: &[u8]) {
    let end = body.len().saturating_add(MAX_BUILD_ID_BYTES);
    body.extend_from_slice(id);
    body.resize(end, 0);
}

/// Appends a name with at least one NUL, padded to a multiple of `align` bytes.
fn put_name(body: &mut Vec<u8>, name: &str, align: usize) -> Result<(), InjectError> {
    if name.len() >= MAX_PATH_BYTES {
        return Err(InjectError::TooLong(format!("a path of {} bytes", name.len())));
    }
    let padded = name.len().saturating_add(1).next_multiple_of(align);
    let end = body.len().saturating_add(padded);
    body.extend_from_slice(name.as_bytes());
    body.resize(end, 0);
    Ok(())
}
