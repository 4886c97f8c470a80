//! Rows whose words stand by position, little-endian, as nearly all do. What an info byte means is worked out once for all rows
//! that have it.

use perfuse_wire::Endian;

use super::columns::{BLOCK, Block, Columns, Shapes};
use crate::consts::{Abi, SFRAME_FDE_TYPE_DEFAULT};
use crate::reader::View;
use crate::records::Function;
use crate::recovery::{Context, Place};
use crate::row::{Row, RowInfo, Rows};
use crate::unit::Piece;

/// What rows of an info byte say, and where their offsets are in the eight bytes behind it.
#[derive(Clone, Copy, Debug)]
struct Kind {
    shape: u32,
    fields: [Field; 3],
}

const UNKNOWN: Kind = Kind { shape: 0, fields: [NOWHERE; 3] };

/// An offset is the bytes that are left when a word is shifted up and down again, if it is a word at all.
#[derive(Clone, Copy, Debug)]
struct Field {
    up: u32,
    down: u32,
    keep: i64,
    fixed: i64,
}

const NOWHERE: Field = Field { up: 0, down: 0, keep: 0, fixed: 0 };

impl Field {
    #[inline]
    fn of(&self, words: u64) -> i64 {
        let word = words.wrapping_shl(self.up).cast_signed().wrapping_shr(self.down);
        self.fixed.wrapping_add(word & self.keep)
    }
}

/// The kinds of rows of a piece, by info byte, as far as they were met.
pub struct Plain {
    /// Size of info byte and words; 0 where no such row was met. Apart from the rest, as the next row waits for nothing else.
    sizes: [u8; 256],
    kinds: [Kind; 256],
    block: Block,
}

impl Plain {
    /// Of a piece whose rows may be such.
    pub fn new(piece: &Piece) -> Self {
        let fixed_ra = piece.header.sfh_cfa_fixed_ra_offset;
        Self { sizes: [0; 256], kinds: [UNKNOWN; 256], block: Block::empty(fixed_ra.into()) }
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
        // Rules whose offsets rows have: the return address is the last.
        match (function.info.row_start_bytes(), context.fixed_ra) {
            (Some(1), 0) => self.walk::<1, 3>(&context, id, view, rows, columns),
            (Some(2), 0) => self.walk::<2, 3>(&context, id, view, rows, columns),
            (Some(4), 0) => self.walk::<4, 3>(&context, id, view, rows, columns),
            (Some(1), _) => self.walk::<1, 2>(&context, id, view, rows, columns),
            (Some(2), _) => self.walk::<2, 2>(&context, id, view, rows, columns),
            (Some(4), _) => self.walk::<4, 2>(&context, id, view, rows, columns),
            _ => {}
        }
    }

    /// Hands over what was added.
    pub fn flush(&mut self, columns: &mut Columns) {
        columns.extend(&self.block);
        self.block.len = 0;
    }

    #[inline]
    fn walk<const START: u32, const RULES: usize>(
        &mut self,
        context: &Context,
        function: u32,
        view: &View<'_>,
        rows: &mut Rows<'_>,
        columns: &mut Columns,
    ) {
        let Self { sizes, kinds, block } = self;
        while let Some((start, info, words)) = rows.peek::<START>() {
            // Tables of 256 have an entry for every byte, so that there is nothing to look at.
            let byte = usize::from(info.0);
            let (Some(size), Some(kind)) = (sizes.get_mut(byte), kinds.get_mut(byte)) else { return };
            if *size == 0 {
                match kind_of(context, info, &mut columns.shapes) {
                    Some(known) => (*size, *kind) = known,
                    None => return,
                }
            }
            // Below the length of the arrays, so that there is nothing to look at either.
            let slot = block.len % BLOCK;
            put(&mut block.functions, slot, function);
            put(&mut block.starts, slot, start.into());
            put(&mut block.shapes, slot, kind.shape);
            for (offsets, field) in block.offsets.iter_mut().zip(kind.fields).take(RULES) {
                put(offsets, slot, field.of(words));
            }
            let place = rows.pass(usize::from(*size).wrapping_add(START as usize));
            put(&mut block.places, slot, view.offset(place));
            block.len = slot.wrapping_add(1);
            if block.len == BLOCK {
                columns.extend(block);
                block.len = 0;
            }
        }
    }
}

#[inline]
fn put<T>(column: &mut [T; BLOCK], slot: usize, value: T) {
    if let Some(to) = column.get_mut(slot) {
        *to = value;
    }
}

/// `None` for a row that cannot be read, or has more words than are looked at.
#[cold]
fn kind_of(context: &Context, info: RowInfo, shapes: &mut Shapes) -> Option<(u8, Kind)> {
    let num_words = usize::from(info.num_words());
    let word_bytes = info.word_bytes().or((num_words == 0).then_some(1))?;
    let words_bytes = word_bytes.checked_mul(num_words).filter(|bytes| *bytes <= 8)?;
    let recovery = context.meaning(&Row::with_words_of_zero(info)).ok();
    let said = shapes.said(recovery);
    let [ra, fp] = context.places(info).unwrap_or([Place::Same; 2]);
    let has_rules = recovery.is_some() && num_words > 0;
    let word = |(place, fixed): (Place, i64)| match place {
        Place::Word(index) if has_rules => {
            let bits = (word_bytes as u32).saturating_mul(8);
            let below = (index as u32).saturating_add(1).saturating_mul(bits);
            Field { up: 64u32.saturating_sub(below), down: 64u32.saturating_sub(bits), keep: -1, fixed }
        }
        _ => Field { fixed, ..NOWHERE },
    };
    let [cfa, from_fp, from_ra] = said.offsets;
    let fields = [(Place::Word(0), cfa), (fp, from_fp), (ra, from_ra)].map(word);
    Some((words_bytes.saturating_add(1) as u8, Kind { shape: said.shape, fields }))
}
