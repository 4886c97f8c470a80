//! Writing a perf.data file again with mappings added, so that perf finds JIT code in the files it was written to.
//!
//! The result is what `perf inject --jit` would make, in file mode and unpacked: every record of the kernel's in time order,
//! MMAP2 records at the times code appeared, all feature sections, and build ids of the added files.

mod encode;

use std::io::{self, Seek, SeekFrom, Write};

use linux_perf_data::Feature;
use perfuse_wire::{Endian, Put};

use super::consts::RecordType;
use super::features::bytes_of;
use super::hidden::Hidden;
use super::layout::{EventHeader, FileHeader, Section};
use super::order::TimeOrder;
use super::reader::{File, Releaser};
use super::recording::PerfData;
use encode::{Added, build_id_section, encode_mmaps, shortest};
use perfuse_recording::Position;

/// Code that a process had mapped from a file since a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InjectedMmap {
    /// Process, as the recorder knew it.
    pub pid: i32,
    /// Thread that made the code.
    pub tid: i32,
    /// Since when, on the recording's clock.
    pub ts_ns: u64,
    /// First address.
    pub start_address: u64,
    /// Length in bytes.
    pub size: u64,
    /// Offset in the file of the first address.
    pub file_offset: u64,
    /// The file.
    pub path: String,
    /// Its build id, of at most 20 bytes.
    pub build_id: Option<Vec<u8>>,
}

/// An entry added to the table of build ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InjectedBuildId {
    /// The file.
    pub path: String,
    /// Its build id, of at most 20 bytes.
    pub build_id: Vec<u8>,
}

/// Why a file could not be written.
#[derive(Debug)]
pub enum InjectError {
    /// The output could not be written.
    Io(io::Error),
    /// No attribute can be read, so nothing can tell perf what the records hold.
    NoAttributes,
    /// A path or a build id is longer than a record holds.
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

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Injection {
    /// Records of the recording that were copied.
    pub num_copied: u64,
    /// Mappings that were added.
    pub num_added: u64,
    /// Mappings of the recording that were left out because they would hide the added ones.
    pub num_dropped: u64,
}

/// Records between two FINISHED_ROUND: perf then holds twice as many at most.
const ROUND_RECORDS: u64 = 65_536;
/// Writes the recording to `out` from its current position 0 on, with mappings and build ids added.
///
/// Memory is bounded: records stream, and only the added mappings and two rounds of sort keys are held.
///
/// # Errors
/// [`InjectError`]; the output is then incomplete.
pub fn inject<W: Write + Seek>(
    perf: &PerfData,
    mmaps: &[InjectedMmap],
    build_ids: &[InjectedBuildId],
    out: &mut W,
) -> Result<Injection, InjectError> {
    let file = &**perf.file();
    let first = file.attributes.list().first().ok_or(InjectError::NoAttributes)?;
    let added = encode_mmaps(mmaps, first, file.endian)?;
    let table = build_id_section(file, mmaps, build_ids)?;
    let mut writer = Writer { out, offset: 0, endian: file.endian, tracing_data: None };
    // The header is written last, when the sizes are known.
    writer.put(&vec![0; usize::try_from(FileHeader::SIZE).unwrap_or(0)])?;
    let attrs = writer.attributes(file)?;
    let data_offset = writer.offset;
    let result = writer.records(file, mmaps, &added)?;
    let data_size = writer.offset.saturating_sub(data_offset);
    let bits = writer.features(file, &table)?;
    let header = FileHeader {
        magic: file.header.magic,
        size: FileHeader::SIZE,
        attr_size: attrs.entry_bytes,
        attrs_offset: attrs.section.offset,
        attrs_size: attrs.section.size,
        data_offset,
        data_size,
        event_types_offset: 0,
        event_types_size: 0,
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

struct Writer<'w, W> {
    out: &'w mut W,
    offset: u64,
    endian: Endian,
    /// Tracepoint formats, where a pipe-mode stream has them among its records.
    tracing_data: Option<Section>,
}

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

    /// Ids, then the attributes that point to them.
    fn attributes(&mut self, file: &File) -> io::Result<WrittenAttributes> {
        let list = file.attributes.list();
        let mut places = Vec::new();
        for attribute in list {
            let mut ids = Vec::new();
            attribute.ids.iter().for_each(|&id| ids.put_u64(id, self.endian));
            places.push(Section { offset: self.offset, size: ids.len() as u64 });
            self.put(&ids)?;
        }
        let entries: Vec<_> = list.iter().map(|attribute| shortest(&attribute.bytes, self.endian)).collect();
        let longest = entries.iter().map(Vec::len).max().unwrap_or(0);
        let offset = self.offset;
        for (mut entry, place) in entries.into_iter().zip(places) {
            entry.resize(longest, 0);
            place.write(&mut entry, self.endian);
            self.put(&entry)?;
        }
        Ok(WrittenAttributes {
            entry_bytes: Section::SIZE.saturating_add(longest as u64),
            section: Section { offset, size: self.offset.saturating_sub(offset) },
        })
    }

    fn records(&mut self, file: &File, mmaps: &[InjectedMmap], added: &[Added]) -> io::Result<Injection> {
        let mut result = Injection::default();
        self.untimed(file, &mut result)?;
        let hidden = Hidden::new(mmaps);
        let mut order = TimeOrder::new(file, |_, time| time != 0);
        let mut releaser = Releaser::default();
        let mut added = added.iter().peekable();
        let mut in_round = 0u64;
        while let Some(key) = order.next(file) {
            let Some(record) = file.at(key.location) else { continue };
            // At the same time the mapping comes first: a sample may lie in it.
            while let Some(mmap) = added.next_if(|mmap| mmap.ts_ns <= key.time) {
                self.put(&mmap.bytes)?;
                result.num_added = result.num_added.saturating_add(1);
            }
            if hidden.drops(file, &record, key.time) {
                result.num_dropped = result.num_dropped.saturating_add(1);
                continue;
            }
            self.put(record.bytes)?;
            result.num_copied = result.num_copied.saturating_add(1);
            in_round = in_round.saturating_add(1);
            if in_round >= ROUND_RECORDS {
                in_round = 0;
                self.finished_round()?;
                releaser.done_before(file, order.oldest());
            }
        }
        for mmap in added {
            self.put(&mmap.bytes)?;
            result.num_added = result.num_added.saturating_add(1);
        }
        self.finished_round()?;
        Ok(result)
    }

    /// perf's own records, and the kernel's that have no time or are from before the recording: perf takes them as they
    /// come, so they go first.
    fn untimed(&mut self, file: &File, result: &mut Injection) -> io::Result<()> {
        let mut at = Position::default();
        let mut releaser = Releaser::default();
        while let Ok(record) = file.next(&mut at) {
            let copied = if record.record_type.is_user() {
                is_kept(record.record_type)
            } else {
                file.time(&record).unwrap_or(0) == 0
            };
            if record.record_type == RecordType::HEADER_TRACING_DATA {
                let offset = record.offset.saturating_add(record.bytes.len() as u64);
                self.tracing_data = Some(Section { offset, size: record.payload.len() as u64 });
            }
            if copied {
                self.put(record.bytes)?;
                self.put(record.payload)?;
                result.num_copied = result.num_copied.saturating_add(1);
            }
            releaser.done_before(file, at);
        }
        Ok(())
    }

    fn finished_round(&mut self) -> io::Result<()> {
        let mut bytes = Vec::new();
        let size = u16::try_from(EventHeader::SIZE).unwrap_or(0);
        EventHeader { type_: RecordType::FINISHED_ROUND.0, misc: 0, size }.write(&mut bytes, self.endian);
        self.put(&bytes)
    }

    /// The table of sections, then the sections; gives the bits of the header.
    fn features(&mut self, file: &File, build_ids: &[u8]) -> io::Result<[u64; 4]> {
        let mut sections: Vec<_> = file
            .features
            .iter()
            .filter(|(feature, _)| is_copied(*feature))
            .map(|(feature, section)| (feature, bytes_of(&file.source, section)))
            .collect();
        if let Some(section) = self.tracing_data {
            sections.push((Feature::TRACING_DATA, bytes_of(&file.source, section)));
        }
        if !build_ids.is_empty() {
            sections.push((Feature::BUILD_ID, build_ids));
        }
        sections.sort_by_key(|(feature, _)| *feature);
        let table_bytes = Section::SIZE.saturating_mul(sections.len() as u64);
        let mut place = self.offset.saturating_add(table_bytes);
        let mut bits = [0u64; 4];
        let mut table = Vec::new();
        for (Feature(bit), bytes) in &sections {
            if let Some(word) = bits.get_mut((bit >> 6) as usize) {
                *word |= 1u64.wrapping_shl(bit & 63);
            }
            Section { offset: place, size: bytes.len() as u64 }.write(&mut table, self.endian);
            place = place.saturating_add(bytes.len() as u64);
        }
        self.put(&table)?;
        for (_, bytes) in sections {
            self.put(bytes)?;
        }
        Ok(bits)
    }
}

/// Whether a record of perf's own has a place in an unpacked file: attributes and features of a pipe-mode stream go into
/// the header, rounds are made anew.
fn is_kept(kind: RecordType) -> bool {
    !matches!(
        kind,
        RecordType::HEADER_ATTR
            | RecordType::HEADER_EVENT_TYPE
            | RecordType::HEADER_TRACING_DATA
            | RecordType::HEADER_BUILD_ID
            | RecordType::HEADER_FEATURE
            | RecordType::FINISHED_ROUND
            | RecordType::COMPRESSED
            | RecordType::COMPRESSED2
    )
}

/// Whether a section is copied: nothing is packed any more, build ids are written anew, and an index of AUX data would
/// point to where the records were; without one perf takes the records as they come.
fn is_copied(feature: Feature) -> bool {
    !matches!(feature, Feature::COMPRESSED | Feature::BUILD_ID | Feature::AUXTRACE | Feature::DIR_FORMAT)
}
