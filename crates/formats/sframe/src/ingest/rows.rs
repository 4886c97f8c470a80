//! Table `unwind_rows`.

use arrow_array::RecordBatch;

use super::columns::{Columns, UnwindRow};
use super::plain::Plain;
use super::spans::Span;
use crate::SFrame;
use crate::reader::View;

/// Rows of some functions.
pub fn batch(file: &SFrame, source_id: u32, spans: &[Span]) -> RecordBatch {
    let expected = spans.iter().map(|span| expected(file, span)).fold(0, usize::saturating_add);
    let mut columns = Columns::with_capacity(source_id, expected.min(1 << 17));
    for span in spans {
        let Some(piece) = file.pieces().get(span.piece) else { break };
        add(&file.view(piece), span, &mut columns);
    }
    columns.finish()
}

fn add(view: &View<'_>, span: &Span, columns: &mut Columns) {
    let mut plain = Plain::new(view.piece);
    for (index, id) in span.indexes.clone().zip(span.id..) {
        let Some(function) = view.function(index) else { break };
        let mut rows = view.rows(&function);
        plain.take(view, &function, id, &mut rows, columns);
        if rows.is_at_end() {
            continue;
        }
        plain.flush(columns);
        let context = view.piece.context(&function);
        for row in rows.map_while(Result::ok) {
            let said = columns.shapes.said(context.meaning(&row).ok());
            let (start, place) = (row.start, view.offset(row.at));
            columns.push(UnwindRow { function: id, start, said, place });
        }
    }
    plain.flush(columns);
}

/// Rows that so many functions have on average, and some more; a section has more bytes than it has rows.
fn expected(file: &SFrame, span: &Span) -> usize {
    let Some(piece) = file.pieces().get(span.piece) else { return 0 };
    let rows = u64::from(piece.header.sfh_num_fres).min(piece.rows.len() as u64);
    let average = rows.saturating_mul(span.indexes.len() as u64).checked_div(piece.num_functions.into());
    let average = average.unwrap_or(0);
    usize::try_from(average.saturating_add(average / 8)).unwrap_or(usize::MAX)
}
