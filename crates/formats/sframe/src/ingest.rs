//! Fills the tables `unwind_functions`, `unwind_rows` and `unwind_lookups`, in batches of functions.

mod columns;
mod fast_path;

use std::collections::VecDeque;
use std::ops::Range;

use arrow_array::RecordBatch;
use perfuse_workers::{JobResults, in_call, install};
use rayon::prelude::*;

use perfuse_tables::{PcType, UnwindOrigin, unwind_functions};

use super::SFrame;
use super::reader::UnitView;
use columns::{DecodedRow, LookupColumns, UnwindRowColumns};
use fast_path::FastRows;
use perfuse_recording::{BatchStream, Placement};

/// Number of functions in a batch of `unwind_functions`.
const FUNCTIONS: u32 = 1 << 14;
/// Number of functions in a batch of `unwind_rows`: their rows take about half a megabyte, which fits a processor's
/// own cache.
const FUNCTIONS_WITH_ROWS: u32 = 1 << 11;
/// Number of addresses in a batch of `unwind_lookups`.
const ADDRESSES: usize = 1 << 11;

/// One table of a file, in batches.
pub fn table(file: &SFrame, name: &str, placement: &Placement) -> Option<BatchStream> {
    Some(match name {
        "unwind_functions" => batches(file, placement, FUNCTIONS, unwind_function_batch),
        "unwind_rows" => batches(file, placement, FUNCTIONS_WITH_ROWS, unwind_row_batch),
        _ => return None,
    })
}

/// Batches of `size` functions each, or of their rows.
fn batches(
    file: &SFrame,
    placement: &Placement,
    size: u32,
    make: fn(&SFrame, u32, &[FunctionSpan]) -> RecordBatch,
) -> BatchStream {
    let jobs = function_groups(file, size, placement.first.unwind_function);
    let (file, source_id) = (file.clone(), placement.source_id);
    Box::new(JobResults::new(jobs, move |spans: Vec<FunctionSpan>| make(&file, source_id, &spans)))
}

/// A batch of `unwind_functions`.
fn unwind_function_batch(file: &SFrame, source_id: u32, spans: &[FunctionSpan]) -> RecordBatch {
    let mut table = unwind_functions::Builder::new();
    for span in spans {
        let Some(unit) = file.units().get(span.unit) else { break };
        let member = file.sections().get(unit.section).map(|section| section.member.as_str());
        let member = member.filter(|member| !member.is_empty());
        let view = file.view(unit);
        for (function, id) in view.functions_in(span.indexes.clone()).zip(span.id..) {
            let info = function.info;
            table.push(
                id,
                function.start,
                function.size.into(),
                if info.repeats() { PcType::Mask } else { PcType::Increment },
                info.repeats().then(|| function.repeat_bytes.into()),
                unit.version() >= 3 && info.is_signal(),
                info.pauth_key_b(),
                function.num_rows,
                UnwindOrigin::SFrame,
                member,
                source_id,
                view.offset(function.at),
            );
        }
    }
    table.finish()
}

/// The rows of some functions as a batch.
fn unwind_row_batch(file: &SFrame, source_id: u32, spans: &[FunctionSpan]) -> RecordBatch {
    let expected_rows = spans.iter().map(|span| expected_rows(file, span)).fold(0, usize::saturating_add);
    let mut columns = UnwindRowColumns::with_capacity(source_id, expected_rows.min(1 << 17));
    for span in spans {
        let Some(unit) = file.units().get(span.unit) else { break };
        add_rows(&file.view(unit), span, &mut columns);
    }
    columns.finish()
}

/// Adds the rows of a span: by the fast path, and the rest one by one.
fn add_rows(view: &UnitView<'_>, span: &FunctionSpan, columns: &mut UnwindRowColumns) {
    let mut fast_rows = FastRows::new(view.unit);
    for (index, id) in span.indexes.clone().zip(span.id..) {
        let Some(function) = view.function(index) else { break };
        let mut rows = view.rows(&function);
        fast_rows.add_rows_of(view, &function, id, &mut rows, columns);
        if rows.is_at_end() {
            continue;
        }
        fast_rows.flush(columns);
        let context = view.unit.context(&function);
        for row in rows.map_while(Result::ok) {
            let recovery = columns.shapes.recovery_of(context.interpret(&row).ok());
            let (start, record_offset) = (row.start, view.offset(row.at));
            columns.push(DecodedRow { function: id, start, recovery, record_offset });
        }
    }
    fast_rows.flush(columns);
}

/// Estimated number of rows of a span: the average per function plus an eighth. A section has more bytes than rows.
fn expected_rows(file: &SFrame, span: &FunctionSpan) -> usize {
    let Some(unit) = file.units().get(span.unit) else { return 0 };
    let rows = u64::from(unit.header.sfh_num_fres).min(unit.rows.len() as u64);
    let average = rows.saturating_mul(span.indexes.len() as u64).checked_div(unit.num_functions.into());
    let average = average.unwrap_or(0);
    usize::try_from(average.saturating_add(average / 8)).unwrap_or(usize::MAX)
}

/// Looks up addresses: table `unwind_lookups`, in their order.
#[must_use]
pub fn look_up(file: &SFrame, addresses: &[u64]) -> Vec<RecordBatch> {
    let firsts: Vec<u32> = file
        .units()
        .iter()
        .scan(0u32, |next, unit| Some(std::mem::replace(next, next.saturating_add(unit.num_functions))))
        .collect();
    // Computed once, before several threads need them.
    let _ = (file.address_index(), file.row_survey());
    let batch = |addresses: &[u64]| {
        let mut table = LookupColumns::with_capacity(addresses.len());
        file.find_all(addresses, |address, found| {
            let function = found.as_ref().map(|found| {
                let first = firsts.get(found.unit).copied().unwrap_or(0);
                (first.saturating_add(found.function.index), found.function.start)
            });
            let row = found.and_then(|found| Some((found.row?.start.into(), found.recovery?.ok())));
            table.push(address, function, row);
        });
        table.finish()
    };
    install(|| addresses.par_chunks(ADDRESSES).map(in_call(batch)).collect())
}

/// A range of functions of one unit, and the key of the first.
#[derive(Clone, Debug)]
struct FunctionSpan {
    unit: usize,
    indexes: Range<u32>,
    id: u32,
}

/// All functions in groups of `size`. An empty table still has one group, so that its schema is visible.
fn function_groups(file: &SFrame, size: u32, mut id: u32) -> VecDeque<Vec<FunctionSpan>> {
    let (mut function_groups, mut group, mut room) = (VecDeque::new(), Vec::new(), size);
    for (unit, found) in file.units().iter().enumerate() {
        let mut from = 0u32;
        while from < found.num_functions {
            let to = from.saturating_add(room).min(found.num_functions);
            let num = to.saturating_sub(from);
            group.push(FunctionSpan { unit, indexes: from..to, id });
            (from, id, room) = (to, id.saturating_add(num), room.saturating_sub(num));
            if room == 0 {
                function_groups.push_back(std::mem::take(&mut group));
                room = size;
            }
        }
    }
    if !group.is_empty() || function_groups.is_empty() {
        function_groups.push_back(group);
    }
    function_groups
}
