//! Rows of the common tables: functions and how to unwind through them, in batches of functions.

mod columns;
mod plain;
mod rules;

use std::collections::VecDeque;

use arrow_array::RecordBatch;
use rayon::prelude::*;

use perfuse_tables::{PcType, UnwindOrigin, records, unwind_functions};
use perfuse_wire::RecordView;

use super::SFrame;
use crate::{BatchStream, Placement, Position, Recording, one_batch};
use columns::{Columns, Lookups, UnwindRow};
use plain::Plain;

/// Functions of a batch: as many as have rows for half a megabyte, which stays in a processor's own cache.
const BATCH: u32 = 1 << 11;

/// One table of a file, in batches.
pub fn table(file: &SFrame, name: &str, placement: &Placement) -> Option<BatchStream> {
    Some(match name {
        "unwind_functions" => one_batch(functions(file, placement)),
        "unwind_rows" => Box::new(RowBatches::new(file.clone(), placement)),
        "records" => Box::new(RecordBatches {
            file: file.clone(),
            source_id: placement.source_id,
            at: Some(Position::default()),
        }),
        _ => return None,
    })
}

fn functions(file: &SFrame, placement: &Placement) -> RecordBatch {
    let mut table = unwind_functions::Builder::new();
    let mut id = placement.first.unwind_function;
    for view in file.views() {
        let member = file.sections().get(view.piece.section).map(|section| section.member.as_str());
        for function in view.functions() {
            let info = function.info;
            table.push(
                id,
                function.start,
                function.size.into(),
                if info.repeats() { PcType::Mask } else { PcType::Increment },
                info.repeats().then(|| function.repeat_bytes.into()),
                view.piece.version() >= 3 && info.is_signal(),
                info.pauth_key_b(),
                function.num_rows,
                UnwindOrigin::SFrame,
                member.filter(|member| !member.is_empty()),
                placement.source_id,
                view.offset(function.at),
            );
            id = id.saturating_add(1);
        }
    }
    table.finish()
}

/// Functions of one piece: from one index up to another, and the key of the first.
#[derive(Clone, Copy, Debug)]
struct Group {
    piece: usize,
    from: u32,
    to: u32,
    id: u32,
}

/// Rows, decoded some batches ahead on all processors.
struct RowBatches {
    file: SFrame,
    source_id: u32,
    todo: VecDeque<Group>,
    done: VecDeque<RecordBatch>,
}

impl RowBatches {
    fn new(file: SFrame, placement: &Placement) -> Self {
        let mut todo = VecDeque::new();
        let mut id = placement.first.unwind_function;
        for (piece, view) in file.views().enumerate() {
            let num = view.piece.num_functions;
            for from in (0..num).step_by(BATCH as usize) {
                let to = from.saturating_add(BATCH).min(num);
                todo.push_back(Group { piece, from, to, id: id.saturating_add(from) });
            }
            id = id.saturating_add(num);
        }
        // An empty table still has one batch, so that its schema is seen.
        let done = todo.is_empty().then(|| Columns::with_capacity(0, 0).finish()).into_iter().collect();
        Self { file, source_id: placement.source_id, todo, done }
    }

    fn batch(&self, group: Group) -> RecordBatch {
        let Some(piece) = self.file.pieces().get(group.piece) else {
            return Columns::with_capacity(self.source_id, 0).finish();
        };
        let view = self.file.view(piece);
        let functions: Vec<_> = (group.from..group.to).map_while(|index| view.function(index)).collect();
        // What functions claim, as far as honest ones go.
        let claimed =
            functions.iter().map(|function| function.num_rows as usize).fold(0, usize::saturating_add);
        let mut columns = Columns::with_capacity(self.source_id, claimed.min(1 << 17));
        let mut plain = Plain::new();
        for (function, id) in functions.iter().zip(group.id..) {
            let mut rows = view.rows(function);
            plain.take(&view, function, id, &mut rows, &mut columns);
            let context = piece.context(function);
            for row in rows.map_while(Result::ok) {
                let said = columns.shapes.said(context.meaning(&row).ok());
                let (start, offset) = (row.start, view.offset(row.at));
                columns.push(UnwindRow { function: id, start, said, offset });
            }
        }
        columns.finish()
    }
}

impl Iterator for RowBatches {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        if self.done.is_empty() {
            let num = self.todo.len().min(rayon::current_num_threads().saturating_mul(2));
            let groups: Vec<Group> = self.todo.drain(..num).collect();
            self.done = groups.into_par_iter().map(|group| self.batch(group)).collect();
        }
        self.done.pop_front()
    }
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
        for address in addresses {
            let found = file.find(*address);
            let function = found.as_ref().map(|found| {
                let first = firsts.get(found.piece).copied().unwrap_or(0);
                (first.saturating_add(found.function.index), found.function.start)
            });
            let row = found.and_then(|found| Some((found.row?.start.into(), found.recovery?.ok())));
            table.push(*address, function, row);
        }
        table.finish()
    };
    addresses.par_chunks(BATCH as usize).map(batch).collect()
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
