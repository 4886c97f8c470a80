//! Rows of a saved `call_events` that calls of a range of time need: whole row groups, and `border_events` of the others.

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch, UInt64Array};
use perfuse_formats::saved::SavedProfile;
use perfuse_formats::saved::parquet_file::{ParquetTable, TableError};
use perfuse_tables::BATCH_ROWS;
use perfuse_tables::access::{nullable, numbers};
use perfuse_tables::border_events;
use rustc_hash::FxHashMap;

use crate::saved_tables::KeyLimits;

const TABLE: &str = "call_events";
const BORDERS: &str = "border_events";
const CALLS_BEFORE: &str = "calls_before";
/// Row groups of a segment, which one thread reads.
const SEGMENT_GROUPS: usize = 4;

/// The rows, in parts in the order of the table.
pub(crate) struct CallsNear {
    events: ParquetTable,
    parts: Vec<RowPart>,
    limits: KeyLimits,
}

/// Rows that follow each other in the table.
enum RowPart {
    /// Border events of row groups that are left out.
    Borders(RecordBatch),
    /// A row group.
    Group(NearGroup),
}

struct NearGroup {
    number: usize,
    rows: Range<u64>,
    /// Its border events, which its rows are compared with; `None` where the table is one row group.
    borders: Option<Vec<RecordBatch>>,
}

type Rows = Box<dyn Iterator<Item = Result<RecordBatch, TableError>> + Send>;

/// Rows, with the number of calls that begin before them, where rows were left out there.
pub(crate) type NumberedRows =
    Box<dyn Iterator<Item = Result<(Option<u64>, RecordBatch), TableError>> + Send>;

fn contradiction(what: &str) -> TableError {
    TableError::Table(BORDERS, format!("{what}: it contradicts table {TABLE}"))
}

fn wrong_column() -> TableError {
    TableError::Table(TABLE, "a column is missing".to_owned())
}

impl CallsNear {
    /// Those of calls in a time; `None` where the table has several row groups and no border events.
    ///
    /// # Errors
    /// Where one of the tables is damaged, or they contradict each other.
    pub(crate) fn open(
        file: &SavedProfile,
        events: ParquetTable,
        times: &RangeInclusive<i64>,
    ) -> Result<Option<Self>, TableError> {
        let limits = KeyLimits::of(file)?;
        let ends = events.group_ends();
        if let [end] = *ends {
            let whole = NearGroup { number: 0, rows: 0..end, borders: None };
            return Ok(Some(Self { events, parts: vec![RowPart::Group(whole)], limits }));
        }
        let Some(borders) = file.resolved_table(&border_events::SPEC)? else { return Ok(None) };
        let mut near = vec![false; ends.len()];
        for number in events.groups_near("ts_ns", times) {
            if let Some(is_near) = near.get_mut(number) {
                *is_near = true;
            }
        }
        let borders = borders.rows(None, BATCH_ROWS)?.collect::<Result<Vec<_>, _>>()?;
        check_borders(&borders, events.num_rows, limits)?;
        let parts = parts(&borders, &ends, &near)?;
        Ok(Some(Self { events, parts, limits }))
    }

    /// The rows of a recording.
    pub(crate) fn rows(self: &Arc<Self>, source_id: u32) -> Rows {
        self.rows_of_parts(0..self.parts.len(), source_id)
    }

    /// The rows of a recording in segments that follow each other.
    pub(crate) fn segments(self: &Arc<Self>, source_id: u32) -> Vec<Rows> {
        let (mut segments, mut start, mut num_groups) = (Vec::new(), 0, 0usize);
        for (at, part) in (1usize..).zip(&self.parts) {
            num_groups = num_groups.saturating_add(usize::from(matches!(part, RowPart::Group(_))));
            if num_groups >= SEGMENT_GROUPS || at == self.parts.len() {
                segments.push(self.rows_of_parts(start..at, source_id));
                (start, num_groups) = (at, 0);
            }
        }
        segments
    }

    /// Whether border events have numbers of calls, which [`Self::numbered_rows`] needs.
    pub(crate) fn are_numbered(&self) -> bool {
        self.borders()
            .all(|borders| column(borders, CALLS_BEFORE).is_ok_and(|before| before.null_count() == 0))
    }

    /// The rows of all recordings, each batch with the number of calls that begin before it, where rows were left out there.
    pub(crate) fn numbered_rows(self: &Arc<Self>) -> NumberedRows {
        let near = Arc::clone(self);
        Box::new((0..self.parts.len()).flat_map(move |number| -> NumberedRows {
            let limits = near.limits;
            match near.parts.get(number) {
                Some(RowPart::Borders(borders)) => numbered(borders.clone()),
                Some(RowPart::Group(group)) => {
                    // Its first row is a border event.
                    let borders = group.borders.iter().flatten().next();
                    let value = |borders| Ok::<_, TableError>(column(borders, CALLS_BEFORE)?.value(0));
                    let mut before = borders.map(value);
                    Box::new(near.group_rows(group, number).map(move |batch| {
                        let batch = batch?;
                        check_keys(&batch, limits)?;
                        Ok((before.take().transpose()?, batch))
                    }))
                }
                None => Box::new(std::iter::empty()),
            }
        }))
    }

    /// Time of calls themselves that end in another row group than they begin in, by their number.
    ///
    /// # Errors
    /// Where a column is missing.
    pub(crate) fn self_ns(&self) -> Result<FxHashMap<u64, i64>, TableError> {
        let mut all = FxHashMap::default();
        for borders in self.borders() {
            let before = column(borders, CALLS_BEFORE)?;
            let own = numbers::<Int64Type>(borders, "self_ns").map_err(|_| wrong_column())?;
            let calls = before.values().iter().enumerate();
            all.extend(calls.filter_map(|(row, number)| Some((*number, nullable(own, row)?))));
        }
        Ok(all)
    }

    /// All border events.
    fn borders(&self) -> impl Iterator<Item = &RecordBatch> {
        self.parts.iter().flat_map(|part| match part {
            RowPart::Borders(borders) => std::slice::from_ref(borders),
            RowPart::Group(group) => group.borders.as_deref().unwrap_or_default(),
        })
    }

    fn rows_of_parts(self: &Arc<Self>, parts: Range<usize>, source_id: u32) -> Rows {
        let (near, limits) = (Arc::clone(self), self.limits);
        let rows = parts.flat_map(move |number| -> Rows {
            match near.parts.get(number) {
                Some(RowPart::Borders(batch)) => Box::new(std::iter::once(without_numbers(batch))),
                Some(RowPart::Group(group)) => near.group_rows(group, number),
                None => Box::new(std::iter::empty()),
            }
        });
        Box::new(rows.map(move |batch| {
            let batch = batch?;
            check_keys(&batch, limits)?;
            of_source(&batch, source_id)
        }))
    }

    /// The rows of a row group, compared with its border events.
    fn group_rows(self: &Arc<Self>, group: &NearGroup, part: usize) -> Rows {
        let opened = self.events.rows_of_groups(vec![group.number], BATCH_ROWS);
        let rows = match opened {
            Ok(rows) => rows,
            Err(error) => return Box::new(std::iter::once(Err(error))),
        };
        let (near, mut next) = (Arc::clone(self), group.rows.start);
        Box::new(rows.map(move |batch| {
            let batch = batch?;
            let first = next;
            next = next.saturating_add(batch.num_rows() as u64);
            match near.parts.get(part) {
                Some(RowPart::Group(group)) if !group.agrees(&batch, first)? => {
                    Err(contradiction("rows differ"))
                }
                _ => Ok(batch),
            }
        }))
    }
}

impl NearGroup {
    /// Whether the border events among some rows of the group are the same rows.
    fn agrees(&self, batch: &RecordBatch, first: u64) -> Result<bool, TableError> {
        let Some(all_borders) = &self.borders else { return are_sorted(batch) };
        let end = first.saturating_add(batch.num_rows() as u64);
        let mut seen = [false; 2];
        let ends = [self.rows.start, self.rows.end.saturating_sub(1)];
        for borders in all_borders {
            let rows = row_numbers(borders)?;
            let events = without_numbers(borders)?;
            for (at, row) in rows.iter().enumerate().filter(|(_, row)| (first..end).contains(*row)) {
                perfuse_stopping::checkpoint();
                let here = usize::try_from(row.saturating_sub(first)).unwrap_or(usize::MAX);
                let mut columns = events.columns().iter().zip(batch.columns());
                if !columns.all(|(one, other)| one.slice(at, 1) == other.slice(here, 1)) {
                    return Ok(false);
                }
                seen.iter_mut().zip(ends).for_each(|(seen, end)| *seen |= *row == end);
            }
        }
        // First and last row of a row group are those of a thread.
        let mut needed = seen.into_iter().zip(ends).filter(|(_, row)| (first..end).contains(row));
        Ok(needed.all(|(seen, _)| seen) && are_sorted(batch)?)
    }
}

fn column<'a>(borders: &'a RecordBatch, name: &'static str) -> Result<&'a UInt64Array, TableError> {
    numbers::<UInt64Type>(borders, name).map_err(|_| wrong_column())
}

fn row_numbers(borders: &RecordBatch) -> Result<&[u64], TableError> {
    Ok(column(borders, "row")?.values())
}

/// Border events as rows of `call_events`, one by one: others may be left out between them.
fn numbered(borders: RecordBatch) -> NumberedRows {
    Box::new((0..borders.num_rows()).map(move |row| {
        let before = column(&borders, CALLS_BEFORE)?.value(row);
        Ok((Some(before), without_numbers(&borders.slice(row, 1))?))
    }))
}

/// Border events as rows of `call_events`.
fn without_numbers(borders: &RecordBatch) -> Result<RecordBatch, TableError> {
    let schema = perfuse_tables::call_events::SPEC.schema();
    let num_columns = schema.fields().len();
    let columns = borders.columns().iter().skip(1).take(num_columns).map(Arc::clone).collect();
    Ok(RecordBatch::try_new(schema, columns)?)
}

/// Whether the rows are of one recording after the other.
fn are_sorted(batch: &RecordBatch) -> Result<bool, TableError> {
    Ok(numbers::<UInt32Type>(batch, "source_id").map_err(|_| wrong_column())?.values().is_sorted())
}

/// Compares border events with what is known of the table.
fn check_borders(borders: &[RecordBatch], num_rows: u64, limits: KeyLimits) -> Result<(), TableError> {
    let (mut last, mut last_source, mut last_before) = (None, 0, 0);
    for batch in borders {
        let before = column(batch, CALLS_BEFORE)?;
        for (row, before) in row_numbers(batch)?.iter().zip(before.iter()) {
            // A row is the begin of one call at most.
            let before = before.unwrap_or(last_before);
            if before < last_before || before > *row {
                return Err(contradiction("numbers of calls are not in order"));
            }
            last_before = before;
        }
        for &row in row_numbers(batch)? {
            if row >= num_rows || last.is_some_and(|last| row <= last) {
                return Err(contradiction("numbers of rows are not in order"));
            }
            last = Some(row);
        }
        check_keys(batch, limits)?;
        let sources = numbers::<UInt32Type>(batch, "source_id").map_err(|_| wrong_column())?.values();
        if !sources.is_sorted() || sources.first().is_some_and(|first| *first < last_source) {
            return Err(contradiction("recordings are not in order"));
        }
        last_source = sources.last().copied().unwrap_or(last_source);
    }
    Ok(())
}

/// Checks that keys refer to rows that exist.
fn check_keys(batch: &RecordBatch, limits: KeyLimits) -> Result<(), TableError> {
    for (column, limit) in [("thread_id", limits.threads), ("function_id", limits.functions)] {
        let keys = numbers::<UInt32Type>(batch, column).map_err(|_| wrong_column())?;
        if keys.values().iter().any(|key| *key >= limit) {
            let message = format!("column {column} refers to rows that do not exist");
            return Err(TableError::Table(TABLE, message));
        }
    }
    Ok(())
}

/// The rows of a recording among rows of one after the other.
fn of_source(batch: &RecordBatch, source_id: u32) -> Result<RecordBatch, TableError> {
    let sources = numbers::<UInt32Type>(batch, "source_id").map_err(|_| wrong_column())?.values();
    let start = sources.partition_point(|one| *one < source_id);
    let end = sources.partition_point(|one| *one <= source_id);
    Ok(batch.slice(start, end.saturating_sub(start)))
}

/// Border events by row group: those of each that is read, and all between these.
fn parts(borders: &[RecordBatch], ends: &[u64], near: &[bool]) -> Result<Vec<RowPart>, TableError> {
    let mut parts = Vec::new();
    let (mut left, mut start) = (borders.iter(), 0u64);
    // A batch and the number of its rows that were taken.
    let mut current = left.next().map(|batch| (batch, 0usize));
    let mut until = |end: u64| -> Result<Vec<RecordBatch>, TableError> {
        let mut taken = Vec::new();
        while let Some((batch, at)) = current {
            let rows = row_numbers(batch)?;
            let to = rows.partition_point(|row| *row < end);
            if to > at {
                taken.push(batch.slice(at, to.saturating_sub(at)));
            }
            current = if to < rows.len() { Some((batch, to)) } else { left.next().map(|next| (next, 0)) };
            if to < rows.len() {
                break;
            }
        }
        Ok(taken)
    };
    for (number, (&end, &is_near)) in ends.iter().zip(near).enumerate() {
        if is_near {
            parts.extend(until(start)?.into_iter().map(RowPart::Borders));
            parts.push(RowPart::Group(NearGroup { number, rows: start..end, borders: Some(until(end)?) }));
        }
        start = end;
    }
    parts.extend(until(u64::MAX)?.into_iter().map(RowPart::Borders));
    Ok(parts)
}
