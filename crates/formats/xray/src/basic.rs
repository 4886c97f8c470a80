//! Reads logs of Basic mode: records of 32 bytes, in the order in which threads flushed their buffers.

use perfuse_wire::{Cursor, Endian};
use rustc_hash::{FxHashMap, FxHashSet};

use super::block::joined;
use super::consts::{BASIC_BYTES, HEADER_BYTES};
use super::header::Header;
use super::ids::FunctionIds;
use super::layout::{BasicArgument, BasicRecord};
use perfuse_recording::Source;

/// Number of bytes after which the pages already read are released.
const RELEASE_BYTES: usize = 8 << 20;

/// A record of a Basic mode log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BasicItem {
    /// Function entry or exit (record type 0).
    Function(BasicRecord),
    /// Argument of a function (record type 1).
    Argument(BasicArgument),
    /// A record of an unknown type.
    Unknown(u16),
    /// Zeros, which a file system stores for what was never written: functions have numbers from 1 on.
    Unwritten,
}

/// Whether a record is zeros, but for what a repair makes zero: reserved bytes, and the process of versions before 3.
#[inline]
fn is_unwritten(record: &BasicRecord) -> bool {
    matches!(record, BasicRecord { record_type: 0, cpu: 0, kind: 0, function_id: 0, tsc: 0, tid: 0, .. })
}

impl BasicItem {
    /// Reads a record.
    #[must_use]
    #[inline]
    pub fn read(bytes: &[u8], offset: u64, endian: Endian) -> Option<Self> {
        let mut cursor = Cursor::new(bytes, offset, endian);
        let record_type = Cursor::new(bytes, offset, endian).u16("record_type").ok()?;
        Some(match record_type {
            0 => {
                let record = BasicRecord::read(&mut cursor).ok()?;
                if is_unwritten(&record) { Self::Unwritten } else { Self::Function(record) }
            }
            1 => Self::Argument(BasicArgument::read(&mut cursor).ok()?),
            other => Self::Unknown(other),
        })
    }

    /// Process and thread ids; before version 3 the process is 0. `None` for zeros and a record of an unknown type.
    #[must_use]
    #[inline]
    pub fn thread_ids(&self, version: u16) -> Option<(i32, i32)> {
        let (pid, tid) = match self {
            Self::Function(record) => (record.pid, record.tid),
            Self::Argument(argument) => (argument.pid, argument.tid),
            Self::Unknown(_) | Self::Unwritten => return None,
        };
        Some((if version >= 3 { pid.cast_signed() } else { 0 }, tid.cast_signed()))
    }
}

/// The result of one pass over a Basic mode log.
#[derive(Debug, Default)]
pub struct BasicSurvey {
    /// Number of complete records.
    pub num_records: usize,
    /// Number of records of type 0 by kind; unknown kinds are counted together in the last element.
    pub kinds: [u64; 5],
    /// Number of argument records.
    pub arguments: u64,
    /// Number of arguments that do not follow an entry of their function, which the runtime dropped for its depth
    /// limit.
    pub orphan_arguments: u64,
    /// Offset of the first orphan argument.
    pub first_orphan: Option<u64>,
    /// Number of records of unknown types, and the offset of the first.
    pub unknown: (u64, Option<u64>),
    /// Number of records that are zeros, and the offset of the first.
    pub unwritten: (u64, Option<u64>),
    /// Offset of the first record of an unknown kind.
    pub first_unknown_kind: Option<u64>,
    /// Offset of the first record whose time is before that of its thread's previous record.
    pub first_backward: Option<u64>,
    /// Indexes of the records in order of time; `None` where the file order is already that of each thread.
    pub order: Option<Vec<u32>>,
    /// Number of duplicate records, and the offset of the first: `fork` copies what a thread has not flushed yet.
    pub copies: (u64, Option<u64>),
    /// Number of bytes after the last complete record.
    pub tail: usize,
    /// The numbers of all processors, combined by `or`: 0 where each is 0.
    pub cpus: u8,
    /// All function ids, ascending, as unsigned numbers.
    pub function_ids: Vec<u32>,
    /// Process and thread ids, in order of appearance.
    pub owners: Vec<(i32, i32)>,
    /// Smallest and largest counter.
    pub span: Option<(u64, u64)>,
}

/// Offset of the record with this index.
#[must_use]
pub fn record_offset(index: usize) -> usize {
    index.saturating_mul(BASIC_BYTES).saturating_add(HEADER_BYTES)
}

/// Reads the record with this index.
#[must_use]
#[inline]
pub fn read_item(data: &[u8], index: usize, endian: Endian) -> Option<BasicItem> {
    let at = record_offset(index);
    BasicItem::read(data.get(at..at.checked_add(BASIC_BYTES)?)?, at as u64, endian)
}

impl BasicArgument {
    /// Whether the argument belongs to the call entered directly before it.
    #[must_use]
    #[inline]
    pub fn is_of(&self, entered: Option<BasicRecord>) -> bool {
        entered.is_some_and(|entered| {
            entered.kind == 3 && (entered.function_id, entered.tid) == (self.function_id, self.tid)
        })
    }
}

impl BasicSurvey {
    /// Indexes of the records in order of time.
    pub fn indexes(&self) -> impl Iterator<Item = usize> {
        let sorted = self.order.iter().flatten().map(|&index| index as usize);
        let as_they_are = if self.order.is_none() { 0..self.num_records } else { 0..0 };
        sorted.chain(as_they_are)
    }

    /// Reads every record.
    #[must_use]
    pub fn new(source: &Source, header: &Header) -> Self {
        let version = header.dialect().version;
        let body = source.get(HEADER_BYTES..).unwrap_or_default();
        let (chunks, tail) = body.as_chunks::<BASIC_BYTES>();
        let mut survey = Self { num_records: chunks.len(), tail: tail.len(), ..Self::default() };
        let mut ids = FunctionIds::default();
        let mut last: FxHashMap<(i32, i32), u64> = FxHashMap::default();
        let mut entered = None;
        let mut released = 0;
        for (index, chunk) in chunks.iter().enumerate() {
            let offset = record_offset(index);
            let Some(entry) = BasicItem::read(chunk, offset as u64, header.endian) else { continue };
            match entry {
                BasicItem::Function(record) => {
                    survey.count_function_record(&record, offset as u64);
                    ids.insert(record.function_id.cast_unsigned());
                    entered = Some(record);
                    let thread_ids = entry.thread_ids(version).unwrap_or_default();
                    let before = last.entry(thread_ids).or_insert_with(|| {
                        survey.owners.push(thread_ids);
                        record.tsc
                    });
                    if record.tsc < *before && survey.first_backward.is_none() {
                        survey.first_backward = Some(offset as u64);
                    }
                    *before = record.tsc;
                }
                BasicItem::Argument(argument) => {
                    survey.arguments = survey.arguments.saturating_add(1);
                    if !argument.is_of(entered) {
                        survey.orphan_arguments = survey.orphan_arguments.saturating_add(1);
                        let _ = survey.first_orphan.get_or_insert(offset as u64);
                    }
                }
                BasicItem::Unknown(_) => {
                    survey.unknown.0 = survey.unknown.0.saturating_add(1);
                    let _ = survey.unknown.1.get_or_insert(offset as u64);
                }
                BasicItem::Unwritten => {
                    survey.unwritten.0 = survey.unwritten.0.saturating_add(1);
                    let _ = survey.unwritten.1.get_or_insert(offset as u64);
                }
            }
            if offset.saturating_sub(released) > RELEASE_BYTES {
                source.release(released..offset);
                released = offset;
            }
        }
        survey.function_ids = ids.sorted();
        if survey.first_backward.is_some() {
            survey.sort_by_time(source, header);
        }
        survey
    }

    /// Adds a function record to counts and span.
    fn count_function_record(&mut self, record: &BasicRecord, offset: u64) {
        let kind_index = usize::from(record.kind).min(4);
        if let Some(count) = self.kinds.get_mut(kind_index) {
            *count = count.saturating_add(1);
        }
        if kind_index == 4 {
            let _ = self.first_unknown_kind.get_or_insert(offset);
        }
        self.cpus |= record.cpu;
        self.span = Some(joined(self.span, (record.tsc, record.tsc)));
    }

    /// Computes the order of the records in time, without duplicates.
    fn sort_by_time(&mut self, source: &Source, header: &Header) {
        let Ok(num) = u32::try_from(self.num_records) else { return };
        let mut tsc = 0;
        let mut keyed: Vec<(u64, u32)> = (0..num)
            .map(|index| {
                // An argument has no time and stays after its entry.
                if let Some(BasicItem::Function(record)) = read_item(source, index as usize, header.endian) {
                    tsc = record.tsc;
                }
                (tsc, index)
            })
            .collect();
        keyed.sort_unstable();
        let mut order = Vec::with_capacity(keyed.len());
        let mut same_time: FxHashSet<&[u8]> = FxHashSet::default();
        let mut now = None;
        for (tsc, index) in keyed {
            if now != Some(tsc) {
                same_time.clear();
                now = Some(tsc);
            }
            let at = record_offset(index as usize);
            let bytes = source.get(at..at.saturating_add(BASIC_BYTES)).unwrap_or_default();
            if same_time.insert(bytes) {
                order.push(index);
            } else {
                self.copies.0 = self.copies.0.saturating_add(1);
                self.copies.1 = Some(self.copies.1.map_or(at as u64, |first| first.min(at as u64)));
            }
        }
        self.order = Some(order);
    }
}
