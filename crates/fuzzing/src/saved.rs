//! Saved profiles: as files, and tables that are written and read.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt64Type};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array, ListArray,
    RecordBatch, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_schema::{DataType, Field};
use perfuse_engine::calls::{Options, Selection};
use perfuse_formats::registry;
use perfuse_formats::saved::parquet_file::{self, ParquetTable, ROW_GROUP_ROWS};
use perfuse_formats::saved::{SavedProfile, crc};
use perfuse_formats::{Clock, Rate, Recording, Source};
use perfuse_profile::saved::{JOINED_TABLES, JoinedRows, SavedFacts};
use perfuse_profile::saved_events::RecordingFacts;
use perfuse_profile::{AllocationQuery, Profile, ProfileInput};
use perfuse_tables::BATCH_ROWS;
use perfuse_tables::TABLES;
use perfuse_writers::TraceSurvey;

use crate::profiles::everything;

/// Opens a saved profile with all its tables and recordings. Ten bytes before the file state which rows the join made: first
/// and number, of each of five tables; without them, all rows. Checksums are made right, so that changes reach more than them.
pub(crate) fn opened(bytes: &[u8]) {
    let (rows, file) = match bytes.split_first_chunk::<10>() {
        Some((rows, file)) if !bytes.starts_with(b"PK") => (Some(*rows), file),
        _ => (None, bytes),
    };
    let mut file = file.to_vec();
    correct_checksums(&mut file);
    let Ok(source) = Source::from_bytes("fuzz", file) else { return };
    let Ok(saved) = registry::open(Arc::new(source)) else { return };
    let Some(profile) = saved.as_any().downcast_ref::<SavedProfile>() else { return };
    let mut inputs = Vec::new();
    for member in profile.members().iter().filter(|member| member.name.starts_with("inputs/")) {
        let Some(packed) = profile.bytes(&member.name) else { continue };
        let Ok(source) = Source::from_bytes(&member.name, packed.to_vec()) else { continue };
        let Ok(recording) = registry::open(Arc::new(source)) else { continue };
        if !recording.as_any().is::<SavedProfile>() {
            inputs.push(ProfileInput {
                clock: recording.clock(Rate::Auto),
                recording,
                pid: None,
                nth_of_pid: Arc::default(),
                definitions: None,
            });
        }
    }
    let mut joined = JoinedRows::default();
    for (number, (table, range)) in JOINED_TABLES.iter().zip(&mut joined.rows).enumerate() {
        let num_rows = profile.parquet(table).ok().flatten().map_or(0, |table| table.num_rows);
        *range = rows.map_or(0..num_rows, |rows| {
            let start = u64::from(rows[2 * number]);
            start..start + u64::from(rows[2 * number + 1])
        });
    }
    let facts = SavedFacts { joined: Some(joined), ..SavedFacts::default() };
    range(&saved, &facts, usize::from(rows.map_or(0, |rows| rows[0])));
    if let Ok(profile) = Profile::of_saved(inputs, &saved, &facts) {
        everything(&profile);
        let _ = profile.saved_facts();
    }
}

/// Events of all times, and of a range: from the time of a call on, for a time that other bytes state; of tables alone.
fn range(saved: &Arc<dyn Recording>, facts: &SavedFacts, event: usize) {
    let profile = saved.as_any().downcast_ref::<SavedProfile>();
    let Some(Ok(Some(events))) = profile.map(|profile| profile.parquet("call_events")) else { return };
    let Ok(mut batches) = events.rows(None, BATCH_ROWS) else { return };
    let Some(Ok(batch)) = batches.next() else { return };
    let times = batch.column(0).as_primitive::<Int64Type>().values();
    let start = times[event % times.len()];
    let time_ns = start..start.saturating_add(event as i64);
    let selection = Selection { threads: None, time_ns: Some(time_ns.clone()) };
    events_of(saved, facts, &time_ns, &selection);
    events_of(saved, facts, &(i64::MIN..i64::MAX), &Selection::default());
}

/// Events of a range of time, of which a part is selected.
fn events_of(saved: &Arc<dyn Recording>, facts: &SavedFacts, time_ns: &Range<i64>, selection: &Selection) {
    for format in registry::FORMATS.iter().filter(|format| format.role.logs_events()) {
        let known = RecordingFacts {
            format: format.name.to_owned(),
            tables: format.tables.iter().map(|table| (*table).to_owned()).collect(),
            keys: ["function", "stack", "frame", "sample"].map(|kind| (kind.to_owned(), 1)).into(),
            span: None,
            clock: Clock::nanoseconds("monotonic"),
            pid: Some(1),
        };
        let opened = Profile::of_saved_range(saved, time_ns.clone(), vec![known], facts);
        let Ok(Some((profile, _))) = opened else { continue };
        let _ = profile.call_costs(&Options { selection: selection.clone(), ..Options::default() }, true);
        let _ = profile.selected_samples(selection);
        let allocations =
            AllocationQuery { selection: selection.clone(), with_stacks: true, ..AllocationQuery::default() };
        let _ = profile.allocation_sums(&allocations);
        let _ = profile.handle_sums(selection, true);
        let _ = profile.object_origins(&[(1, time_ns.start)]);
        let _ = profile.with_trace_tables(&[], None, selection, |tables| {
            TraceSurvey::of(tables, selection, &mut |_| true)
        });
        if let Ok(Some(slices)) = profile.table("slices", false) {
            slices.for_each(drop);
        }
    }
}

/// Corrects the checksums of the members of a zip file: <https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT>.
fn correct_checksums(file: &mut [u8]) {
    let number = |file: &[u8], at: usize, size: usize| -> Option<usize> {
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(file.get(at..at.checked_add(size)?)?);
        usize::try_from(u64::from_le_bytes(bytes)).ok()
    };
    let entries: Vec<usize> =
        file.windows(4).enumerate().filter(|(_, four)| four == b"PK\x01\x02").map(|(at, _)| at).collect();
    for entry in entries {
        let corrected = || -> Option<(usize, u32)> {
            let (size, header) = (number(file, entry + 20, 4)?, number(file, entry + 42, 4)?);
            let data = header + 30 + number(file, header + 26, 2)? + number(file, header + 28, 2)?;
            Some((header, crc(file.get(data..data.checked_add(size)?)?)))
        };
        let Some((header, checksum)) = corrected() else { continue };
        for at in [entry + 16, header + 14] {
            if let Some(field) = file.get_mut(at..at + 4) {
                field.copy_from_slice(&checksum.to_le_bytes());
            }
        }
    }
}

/// A table that the bytes state, written as in a saved profile and read: all rows, a part of them, and the row groups with some
/// times. The first byte is the number of the table, the second that of rows, the third how many of these a batch has; then
/// come the columns.
///
/// # Panics
/// When the table cannot be written or read, or has other rows.
pub(crate) fn tables(bytes: &[u8]) {
    let mut stated = Stated(bytes);
    let spec = TABLES[usize::from(stated.byte()) % TABLES.len()];
    let (num_rows, batch_rows) = (usize::from(stated.byte() % 32) + 1, usize::from(stated.byte() % 32) + 1);
    let (name, schema) = (spec.name, spec.schema());
    let columns = schema.fields().iter().map(|field| stated.column(field, num_rows)).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).expect("columns are as declared");

    let mut file = Vec::new();
    let batches = (0..num_rows).step_by(batch_rows).map(|first| {
        let rows = batch_rows.min(num_rows - first);
        Ok(batch.slice(first, rows))
    });
    let written = parquet_file::write(spec, Arc::clone(&schema), ROW_GROUP_ROWS, batches, &mut file);
    assert_eq!(written.expect("the table can be written"), num_rows as u64, "written rows of {name}");

    let (range, sum) = (0..file.len(), crc(&file));
    let source = Arc::new(Source::from_bytes("written", file).expect("bytes are a source"));
    let table = ParquetTable::open(spec, &source, range, sum).expect("the table can be opened");
    assert_eq!(table.num_rows, num_rows as u64, "rows of {name}");
    let read = |rows: Option<Range<u64>>| {
        let read: Result<Vec<_>, _> = table.rows(rows, BATCH_ROWS).expect("rows can be read").collect();
        let mut read = read.expect("batches can be read");
        assert!(read.len() <= 1, "a batch has all rows of {name}");
        read.pop().unwrap_or_else(|| RecordBatch::new_empty(Arc::clone(&schema)))
    };
    assert_eq!(read(None), batch, "rows of {name}");
    let first = usize::from(stated.byte()) % num_rows;
    let some = usize::from(stated.byte()) % (num_rows - first + 1);
    assert_eq!(read(Some(first as u64..(first + some) as u64)), batch.slice(first, some), "a part of {name}");

    if let Some(time) = schema.fields().iter().position(|field| *field.data_type() == DataType::Int64) {
        let least = stated.number(0).cast_signed();
        let values = least..=least.saturating_add(stated.number(0).cast_signed().max(0));
        let selected = |rows: &RecordBatch| -> Vec<RecordBatch> {
            let times = rows.column(time).as_primitive::<Int64Type>().iter().enumerate();
            let in_range = times.filter(|(_, time)| time.is_some_and(|time| values.contains(&time)));
            in_range.map(|(row, _)| rows.slice(row, 1)).collect()
        };
        let near = table.rows_near(schema.field(time).name(), &values, BATCH_ROWS).expect("rows can be read");
        let near: Vec<_> = near.flat_map(|rows| selected(&rows.expect("a batch can be read"))).collect();
        assert_eq!(near, selected(&batch), "rows of {name} by time");
    }
}

/// Bytes that state values, from the first on; zeros after the last.
struct Stated<'a>(&'a [u8]);

impl Stated<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// A number: a small one, one that is a little greater than the one before, or one of up to eight bytes.
    fn number(&mut self, before: u64) -> u64 {
        match self.byte() {
            small @ 0..=127 => small.into(),
            more @ 128..=191 => before.wrapping_add(u64::from(more - 128)),
            long => (0..=long % 8).fold(0, |number, _| number << 8 | u64::from(self.byte())),
        }
    }

    fn bytes(&mut self) -> Vec<u8> {
        (0..self.byte() % 16).map(|_| self.byte()).collect()
    }

    /// The rows of a column as numbers. Where null is possible, the least bit states it.
    fn numbers(&mut self, is_nullable: bool, num_rows: usize) -> Vec<Option<u64>> {
        let mut before = 0;
        let next = |_| {
            before = self.number(before);
            if is_nullable { (before & 1 == 0).then_some(before >> 1) } else { Some(before) }
        };
        (0..num_rows).map(next).collect()
    }

    /// A column with the type of a field. Rows with bytes, lists and texts are one of eight values.
    fn column(&mut self, field: &Field, num_rows: usize) -> ArrayRef {
        let rows = self.numbers(field.is_nullable(), num_rows).into_iter();
        let values: Vec<Vec<u8>> = match field.data_type() {
            kind if kind.is_primitive() || *kind == DataType::Boolean => Vec::new(),
            _ => (0..8).map(|_| self.bytes()).collect(),
        };
        let value = |number: u64| &values[number as usize % values.len()];
        match field.data_type() {
            DataType::UInt8 => Arc::new(UInt8Array::from_iter(rows.map(|row| row.map(|n| n as u8)))),
            DataType::UInt16 => Arc::new(UInt16Array::from_iter(rows.map(|row| row.map(|n| n as u16)))),
            DataType::UInt32 => Arc::new(UInt32Array::from_iter(rows.map(|row| row.map(|n| n as u32)))),
            DataType::UInt64 => Arc::new(UInt64Array::from_iter(rows)),
            DataType::Int32 => Arc::new(Int32Array::from_iter(rows.map(|row| row.map(|n| n as i32)))),
            DataType::Int64 => Arc::new(Int64Array::from_iter(rows.map(|row| row.map(u64::cast_signed)))),
            DataType::Float64 => Arc::new(Float64Array::from_iter(rows.map(|row| row.map(f64::from_bits)))),
            DataType::Boolean => Arc::new(BooleanArray::from_iter(rows.map(|row| row.map(|n| n != 0)))),
            DataType::Binary => Arc::new(BinaryArray::from_iter(rows.map(|row| row.map(value)))),
            DataType::List(_) => {
                let lists = rows.map(|row| row.map(|n| value(n).iter().map(|byte| Some(u64::from(*byte)))));
                Arc::new(ListArray::from_iter_primitive::<UInt64Type, _, _>(lists))
            }
            DataType::Dictionary(..) => {
                let texts: Vec<_> = values.iter().map(|bytes| String::from_utf8_lossy(bytes)).collect();
                let rows = rows.map(|row| row.map(|n| &*texts[n as usize % texts.len()]));
                Arc::new(rows.collect::<DictionaryArray<Int32Type>>())
            }
            other => unreachable!("no column of a common table has type {other}"),
        }
    }
}
