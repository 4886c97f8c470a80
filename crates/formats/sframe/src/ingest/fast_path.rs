//! Fast path for little-endian DEFAULT rows, which nearly all are. What an info byte means is computed once for all
//! rows that have it.

use perfuse_wire::Endian;

use super::columns::{BLOCK_ROWS, RecoveryShapes, RowBlock, UnwindRowColumns};
use crate::consts::{Abi, SFRAME_FDE_TYPE_DEFAULT};
use crate::reader::UnitView;
use crate::records::Fde;
use crate::recovery::{RegisterSlot, RowContext};
use crate::row::{Fre, FreInfo, FreIter};
use crate::unit::SFrameUnit;

/// How rows with one info byte are decoded: their shape, and where their offsets are in the eight bytes after the
/// info byte.
#[derive(Clone, Copy, Debug)]
struct FreLayout {
    shape: u32,
    fields: [OffsetField; 3],
}

const NO_LAYOUT: FreLayout = FreLayout { shape: 0, fields: [NO_FIELD; 3] };

/// Extracts an offset: the word is shifted left and right to sign-extend it, and masked to 0 where there is no such
/// word.
#[derive(Clone, Copy, Debug)]
struct OffsetField {
    shift_left: u32,
    shift_right: u32,
    mask: i64,
    fixed: i64,
}

const NO_FIELD: OffsetField = OffsetField { shift_left: 0, shift_right: 0, mask: 0, fixed: 0 };

impl OffsetField {
    #[inline]
    fn of(&self, words: u64) -> i64 {
        let word = words.wrapping_shl(self.shift_left).cast_signed().wrapping_shr(self.shift_right);
        self.fixed.wrapping_add(word & self.mask)
    }
}

/// Decodes the rows of a unit; caches layouts by info byte.
pub struct FastRows {
    /// Size of info byte and words; 0 for a layout that is not cached yet. Separate from the layouts, so that finding
    /// the next row depends on less data.
    sizes: [u8; 256],
    layouts: [FreLayout; 256],
    block: RowBlock,
}

impl FastRows {
    /// A decoder for the rows of a unit.
    pub fn new(unit: &SFrameUnit) -> Self {
        let fixed_ra = unit.header.sfh_cfa_fixed_ra_offset;
        Self { sizes: [0; 256], layouts: [NO_LAYOUT; 256], block: RowBlock::empty(fixed_ra.into()) }
    }

    /// Adds the rows of a function, up to the first that this path cannot decode.
    #[inline]
    pub fn add_rows_of(
        &mut self,
        view: &UnitView<'_>,
        function: &Fde,
        id: u32,
        rows: &mut FreIter<'_>,
        columns: &mut UnwindRowColumns,
    ) {
        let context = view.unit.context(function);
        if view.unit.endian != Endian::Little
            || context.fde_type != SFRAME_FDE_TYPE_DEFAULT
            || context.abi == Abi::S390X_ENDIAN_BIG
        {
            return;
        }
        // The number of rules whose offsets rows contain; the return address is the last.
        match (function.info.row_start_bytes(), context.fixed_ra) {
            (Some(1), 0) => self.add_rows::<1, 3>(&context, id, view, rows, columns),
            (Some(2), 0) => self.add_rows::<2, 3>(&context, id, view, rows, columns),
            (Some(4), 0) => self.add_rows::<4, 3>(&context, id, view, rows, columns),
            (Some(1), _) => self.add_rows::<1, 2>(&context, id, view, rows, columns),
            (Some(2), _) => self.add_rows::<2, 2>(&context, id, view, rows, columns),
            (Some(4), _) => self.add_rows::<4, 2>(&context, id, view, rows, columns),
            _ => {}
        }
    }

    /// Passes the rows of the current block on.
    pub fn flush(&mut self, columns: &mut UnwindRowColumns) {
        columns.extend(&self.block);
        self.block.len = 0;
    }

    #[inline]
    fn add_rows<const START: u32, const RULES: usize>(
        &mut self,
        context: &RowContext,
        function: u32,
        view: &UnitView<'_>,
        rows: &mut FreIter<'_>,
        columns: &mut UnwindRowColumns,
    ) {
        let Self { sizes, layouts, block } = self;
        while let Some((start, info, words)) = rows.peek::<START>() {
            // Indexes of a byte into tables of 256 entries need no bounds check.
            let byte = usize::from(info.0);
            let (Some(size), Some(layout)) = (sizes.get_mut(byte), layouts.get_mut(byte)) else { return };
            if *size == 0 {
                match fre_layout(context, info, &mut columns.shapes) {
                    Some(found) => (*size, *layout) = found,
                    None => return,
                }
            }
            // The index is below the length of the arrays, so this needs no bounds check either.
            let slot = block.len % BLOCK_ROWS;
            put(&mut block.functions, slot, function);
            put(&mut block.starts, slot, start.into());
            put(&mut block.shapes, slot, layout.shape);
            for (offsets, field) in block.offsets.iter_mut().zip(layout.fields).take(RULES) {
                put(offsets, slot, field.of(words));
            }
            let at = rows.pass(usize::from(*size).wrapping_add(START as usize));
            put(&mut block.record_offsets, slot, view.offset(at));
            block.len = slot.wrapping_add(1);
            if block.len == BLOCK_ROWS {
                columns.extend(block);
                block.len = 0;
            }
        }
    }
}

#[inline]
fn put<T>(column: &mut [T; BLOCK_ROWS], slot: usize, value: T) {
    if let Some(to) = column.get_mut(slot) {
        *to = value;
    }
}

/// The size and layout of rows with this info byte; `None` where a row cannot be read or its words exceed eight
/// bytes.
#[cold]
fn fre_layout(context: &RowContext, info: FreInfo, shapes: &mut RecoveryShapes) -> Option<(u8, FreLayout)> {
    let num_words = usize::from(info.num_words());
    let word_bytes = info.word_bytes().or((num_words == 0).then_some(1))?;
    let words_bytes = word_bytes.checked_mul(num_words).filter(|bytes| *bytes <= 8)?;
    let recovery = context.interpret(&Fre::with_words_of_zero(info)).ok();
    let by_shape = shapes.recovery_of(recovery);
    let [ra, fp] = context.register_slots(info).unwrap_or([RegisterSlot::Same; 2]);
    let has_rules = recovery.is_some() && num_words > 0;
    let word = |(slot, fixed): (RegisterSlot, i64)| match slot {
        RegisterSlot::Word(index) if has_rules => {
            let bits = (word_bytes as u32).saturating_mul(8);
            let below = (index as u32).saturating_add(1).saturating_mul(bits);
            OffsetField {
                shift_left: 64u32.saturating_sub(below),
                shift_right: 64u32.saturating_sub(bits),
                mask: -1,
                fixed,
            }
        }
        _ => OffsetField { fixed, ..NO_FIELD },
    };
    let [cfa, from_fp, from_ra] = by_shape.offsets;
    let fields = [(RegisterSlot::Word(0), cfa), (fp, from_fp), (ra, from_ra)].map(word);
    Some((words_bytes.saturating_add(1) as u8, FreLayout { shape: by_shape.shape, fields }))
}
