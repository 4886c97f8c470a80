//! Rows of the common tables: functions and how to unwind through them, in batches of functions.

mod columns;
mod plain;
mod rows;
mod rules;
mod spans;

use arrow_array::RecordBatch;
use rayon::prelude::*;

use perfuse_tables::{PcType, UnwindOrigin, records, unwind_functions};
use perfuse_wire::RecordView;

use super::SFrame;
use super::ahead::Ahead;
use columns::Lookups;
use perfuse_recording::{BatchStream, Placement, Position, Recording};
use spans::{Span, groups};

/// Functions of a batch of functions.
const FUNCTIONS: u32 = 1 << 14;
/// Functions of a batch of rows: as many as have rows for half a megabyte, which stays in a processor's own cache.
const FUNCTIONS_WITH_ROWS: u32 = 1 << 11;
/// Addresses of a batch.
const ADDRESSES: usize = 1 << 11;

/// One table of a file, in batches.
pub fn table(file: &SFrame, name: &str, placement: &Placement) -> Option<BatchStream> {
    Some(match name {
        "unwind_functions" => batches(file, placement, FUNCTIONS, functions),
        "unwind_rows" => batches(file, placement, FUNCTIONS_WITH_ROWS, rows::batch),
        "records" => Box::new(RecordBatches {
            file: file.clone(),
            source_id: placement.source_id,
            at: Some(Position::default()),
        }),
        _ => return None,
    })
}

/// Batches of so many functions, or of their rows.
fn batches(
    file: &SFrame,
    placement: &Placement,
    size: u32,
    make: fn(&SFrame, u32, &[Span]) -> RecordBatch,
) -> BatchStream {
    let todo = groups(file, size, placement.first.unwind_function);
    let (file, source_id) = (file.clone(), placement.source_id);
    Box::new(Ahead::new(todo, move |spans: Vec<Span>| make(&file, source_id, &spans)))
}

fn functions(file: &SFrame, source_id: u32, spans: &[Span]) -> RecordBatch {
    let mut table = unwind_functions::Builder::new();
    for span in spans {
        let Some(piece) = file.pieces().get(span.piece) else { break };
        let member = file.sections().get(piece.section).map(|section| section.member.as_str());
        let member = member.filter(|member| !member.is_empty());
        let view = file.view(piece);
        for (function, id) in view.functions_in(span.indexes.clone()).zip(span.id..) {
            let info = function.info;
            table.push(
                id,
                function.start,
                function.size.into(),
                if info.repeats() { PcType::Mask } else { PcType::Increment },
                info.repeats().then(|| function.repeat_bytes.into()),
                piece.version() >= 3 && info.is_signal(),
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

/// Looks addresses up: table `unwind_lookups`, in their order.
#[must_use]
pub fn look_up(file: &SFrame, addresses: &[u64]) -> Vec<RecordBatch> {
    let firsts: Vec<u32> = file
        .pieces()
        .iter()
        .scan(0u32, |next, piece| Some(std::mem::replace(next, next.saturating_add(piece.num_functions))))
        .collect();
    // Made once, before threads ask for them.
    let _ = (file.lookup(), file.survey());
    let batch = |addresses: &[u64]| {
        let mut table = Lookups::with_capacity(addresses.len());
        file.find_all(addresses, |address, found| {
            let function = found.as_ref().map(|found| {
                let first = firsts.get(found.piece).copied().unwrap_or(0);
                (first.saturating_add(found.function.index), found.function.start)
            });
            let row = found.and_then(|found| Some((found.row?.start.into(), found.recovery?.ok())));
            table.push(address, function, row);
        });
        table.finish()
    };
    addresses.par_chunks(ADDRESSES).map(batch).collect()
}

struct RecordBatches {
    file: SFrame,
    source_id: u32,
    at: Option<Position>,
}

impl Iterator for RecordBatches {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        let mut at = self.at?;
        let mut table = records::Builder::new();
        while table.len() < 1 << 16 {
            let Some(RecordView { index, offset, size, name, .. }) = self.file.next_record(&mut at) else {
                self.at = None;
                return Some(table.finish());
            };
            table.push(self.source_id, index, offset, size, &name, None);
        }
        self.at = Some(at);
        Some(table.finish())
    }
}
