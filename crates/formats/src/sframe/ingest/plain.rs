//! Rows whose words stand by position, little-endian, as nearly all do. What an info byte means is worked out once for all rows
//! that have it.

use perfuse_wire::Endian;

use super::columns::{Columns, UnwindRow};
use super::rules::{Said, Shapes};
use crate::sframe::consts::{Abi, SFRAME_FDE_TYPE_DEFAULT};
use crate::sframe::reader::View;
use crate::sframe::records::Function;
use crate::sframe::recovery::{Context, Place};
use crate::sframe::row::{Row, RowInfo, Rows};

/// What rows of an info byte say, and where their offsets are in the eight bytes behind it.
#[derive(Clone, Copy, Debug)]
struct Kind {
    said: Said,
    words_bytes: usize,
    fields: [Field; 3],
}

/// An offset is the bytes that are left when a word is shifted up and down again, if it is a word at all.
#[derive(Clone, Copy, Debug, Default)]
struct Field {
    up: u32,
    down: u32,
    keep: i64,
}

/// The kinds of rows of a piece, by info byte, as far as they were met.
pub struct Plain {
    kinds: [Option<Kind>; 256],
}

impl Plain {
    /// Of a piece whose rows may be such.
    pub fn new() -> Self {
        Self { kinds: [None; 256] }
    }

    /// Adds rows of a function, up to the first that is of no such kind.
    #[inline]
    pub fn take(
        &mut self,
        view: &View<'_>,
        function: &Function,
        id: u32,
        rows: &mut Rows<'_>,
        columns: &mut Columns,
    ) {
        let context = view.piece.context(function);
        if view.piece.endian != Endian::Little
            || context.fde_type != SFRAME_FDE_TYPE_DEFAULT
            || context.abi == Abi::S390X_ENDIAN_BIG
        {
            return;
        }
        match function.info.row_start_bytes() {
            Some(1) => self.walk::<1>(&context, id, view, rows, columns),
            Some(2) => self.walk::<2>(&context, id, view, rows, columns),
            Some(4) => self.walk::<4>(&context, id, view, rows, columns),
            _ => {}
        }
    }

    #[inline]
    fn walk<const START: u32>(
        &mut self,
        context: &Context,
        function: u32,
        view: &View<'_>,
        rows: &mut Rows<'_>,
        columns: &mut Columns,
    ) {
        while let Some((start, info, words)) = rows.peek::<START>() {
            let kind = match self.kinds.get(usize::from(info.0)) {
                Some(Some(kind)) => kind,
                _ => match self.learn(context, info, &mut columns.shapes) {
                    Some(kind) => kind,
                    None => return,
                },
            };
            let offset = |(fixed, field): (i64, Field)| {
                let word = words.wrapping_shl(field.up).cast_signed().wrapping_shr(field.down);
                fixed.wrapping_add(word & field.keep)
            };
            let ([cfa, fp, ra], [cfa_at, fp_at, ra_at]) = (kind.said.offsets, kind.fields);
            let offsets = [(cfa, cfa_at), (fp, fp_at), (ra, ra_at)].map(offset);
            let size = kind.words_bytes.wrapping_add(START as usize).wrapping_add(1);
            let said = Said { offsets, ..kind.said };
            let offset = view.offset(rows.pass(size));
            columns.push(UnwindRow { function, start, said, offset });
        }
    }

    #[cold]
    fn learn(&mut self, context: &Context, info: RowInfo, shapes: &mut Shapes) -> Option<&Kind> {
        let kind = kind(context, info, shapes)?;
        let slot = self.kinds.get_mut(usize::from(info.0))?;
        Some(slot.insert(kind))
    }
}

/// `None` for a row that cannot be read, or has more words than are looked at.
fn kind(context: &Context, info: RowInfo, shapes: &mut Shapes) -> Option<Kind> {
    let num_words = usize::from(info.num_words());
    let word_bytes = info.word_bytes().or((num_words == 0).then_some(1))?;
    let words_bytes = word_bytes.checked_mul(num_words).filter(|bytes| *bytes <= 8)?;
    let recovery = context.meaning(&Row::with_words_of_zero(info)).ok();
    let [ra, fp] = context.places(info).unwrap_or([Place::Same; 2]);
    let has_rules = recovery.is_some() && num_words > 0;
    let word = |place: Place| match place {
        Place::Word(index) if has_rules => {
            let bits = (word_bytes as u32).saturating_mul(8);
            let below = (index as u32).saturating_add(1).saturating_mul(bits);
            Field { up: 64u32.saturating_sub(below), down: 64u32.saturating_sub(bits), keep: -1 }
        }
        _ => Field::default(),
    };
    Some(Kind { said: shapes.said(recovery), words_bytes, fields: [Place::Word(0), fp, ra].map(word) })
}
