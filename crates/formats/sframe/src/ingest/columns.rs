//! Builds the columns of `unwind_rows` and `unwind_lookups`, column by column. Apart from offsets, rows have few
//! distinct recoveries (shapes), so a row stores the number of its shape.

use std::sync::Arc;

use arrow_array::builder::{UInt32Builder, UInt64Builder};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray, UInt32Array,
    UInt64Array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use perfuse_tables::{unwind_lookups, unwind_rows};
use rustc_hash::FxHashMap;

use crate::recovery::{Base, Expression, Recovery};

/// A row of `unwind_rows`.
#[derive(Clone, Copy, Debug)]
pub struct DecodedRow {
    /// Key of its function.
    pub function: u32,
    /// Offset from which it applies.
    pub start: u32,
    /// How registers are recovered.
    pub recovery: RowRecovery,
    /// Offset of its record in the file.
    pub record_offset: u64,
}

/// Columns of a batch of `unwind_rows` being built.
#[derive(Debug)]
pub struct UnwindRowColumns {
    source_id: u32,
    functions: Vec<u32>,
    starts: Vec<u64>,
    rules: RecoveryColumns,
    record_offsets: Vec<u64>,
    /// The shapes that occur.
    pub shapes: RecoveryShapes,
}

impl UnwindRowColumns {
    /// Columns with capacity for this many rows.
    pub fn with_capacity(source_id: u32, rows: usize) -> Self {
        Self {
            source_id,
            functions: Vec::with_capacity(rows),
            starts: Vec::with_capacity(rows),
            rules: RecoveryColumns::with_capacity(rows),
            record_offsets: Vec::with_capacity(rows),
            shapes: RecoveryShapes::default(),
        }
    }

    /// Adds a row.
    pub fn push(&mut self, row: DecodedRow) {
        self.functions.push(row.function);
        self.starts.push(row.start.into());
        self.rules.push(row.recovery);
        self.record_offsets.push(row.record_offset);
    }

    /// Adds the rows of a block.
    pub fn extend(&mut self, block: &RowBlock) {
        self.functions.extend_from_slice(block.functions());
        self.starts.extend_from_slice(block.starts());
        self.rules.extend(block.shapes(), block.offsets());
        self.record_offsets.extend_from_slice(block.record_offsets());
    }

    /// The rows as Arrow.
    pub fn finish(self) -> RecordBatch {
        let Self { source_id, functions, starts, rules, record_offsets, shapes } = self;
        let sources = UInt32Array::from(vec![source_id; functions.len()]);
        let mut columns: Vec<ArrayRef> =
            vec![Arc::new(UInt32Array::from(functions)), Arc::new(UInt64Array::from(starts))];
        columns.extend(shapes.columns(rules));
        columns.push(Arc::new(sources));
        columns.push(Arc::new(UInt64Array::from(record_offsets)));
        unwind_rows::batch(columns)
    }
}

/// Columns of a batch of `unwind_lookups` being built.
#[derive(Debug)]
pub struct LookupColumns {
    addresses: Vec<u64>,
    ids: UInt32Builder,
    functions: UInt64Builder,
    starts: UInt64Builder,
    rules: RecoveryColumns,
    shapes: RecoveryShapes,
}

impl LookupColumns {
    /// Columns with capacity for this many addresses.
    pub fn with_capacity(rows: usize) -> Self {
        Self {
            addresses: Vec::with_capacity(rows),
            ids: UInt32Builder::with_capacity(rows),
            functions: UInt64Builder::with_capacity(rows),
            starts: UInt64Builder::with_capacity(rows),
            rules: RecoveryColumns::with_capacity(rows),
            shapes: RecoveryShapes::default(),
        }
    }

    /// Adds an address: key and start address of its function, start and recovery of its row.
    pub fn push(&mut self, address: u64, function: Option<(u32, u64)>, row: Option<(u64, Option<Recovery>)>) {
        self.addresses.push(address);
        self.ids.append_option(function.map(|(id, _)| id));
        self.functions.append_option(function.map(|(_, start)| start));
        self.starts.append_option(row.map(|(start, _)| start));
        self.rules.push(self.shapes.recovery_of(row.and_then(|(_, recovery)| recovery)));
    }

    /// The rows as Arrow.
    pub fn finish(mut self) -> RecordBatch {
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(UInt64Array::from(self.addresses)),
            Arc::new(self.ids.finish()),
            Arc::new(self.functions.finish()),
            Arc::new(self.starts.finish()),
        ];
        columns.extend(self.shapes.columns(self.rules));
        unwind_lookups::batch(columns)
    }
}

/// Number of rows in a block.
pub const BLOCK_ROWS: usize = 64;

/// Rows in columns of fixed size, which can be filled without capacity checks.
#[derive(Debug)]
pub struct RowBlock {
    pub len: usize,
    pub functions: [u32; BLOCK_ROWS],
    pub starts: [u64; BLOCK_ROWS],
    pub shapes: [u32; BLOCK_ROWS],
    pub offsets: [[i64; BLOCK_ROWS]; 3],
    pub record_offsets: [u64; BLOCK_ROWS],
}

impl RowBlock {
    /// An empty block; `fixed_ra` is the fixed offset of the return address from the CFA, or 0.
    pub fn empty(fixed_ra: i64) -> Self {
        Self {
            len: 0,
            functions: [0; BLOCK_ROWS],
            starts: [0; BLOCK_ROWS],
            shapes: [0; BLOCK_ROWS],
            offsets: [[0; BLOCK_ROWS], [0; BLOCK_ROWS], [fixed_ra; BLOCK_ROWS]],
            record_offsets: [0; BLOCK_ROWS],
        }
    }

    /// Keys of functions.
    pub fn functions(&self) -> &[u32] {
        self.functions.get(..self.len).unwrap_or_default()
    }

    /// Offsets from which rows apply.
    pub fn starts(&self) -> &[u64] {
        self.starts.get(..self.len).unwrap_or_default()
    }

    /// Shape numbers.
    pub fn shapes(&self) -> &[u32] {
        self.shapes.get(..self.len).unwrap_or_default()
    }

    /// Offsets of CFA, frame pointer and return address.
    pub fn offsets(&self) -> [&[i64]; 3] {
        self.offsets.each_ref().map(|offsets| offsets.get(..self.len).unwrap_or_default())
    }

    /// File offsets of the records.
    pub fn record_offsets(&self) -> &[u64] {
        self.record_offsets.get(..self.len).unwrap_or_default()
    }
}

/// The recovery of a row: the number of its shape, and the offsets of CFA, frame pointer and return address.
#[derive(Clone, Copy, Debug)]
pub struct RowRecovery {
    pub shape: u32,
    pub offsets: [i64; 3],
}

/// The recoveries of rows, as columns.
#[derive(Debug)]
pub struct RecoveryColumns {
    shapes: Vec<u32>,
    offsets: [Vec<i64>; 3],
}

impl RecoveryColumns {
    /// Columns with capacity for this many rows.
    pub fn with_capacity(rows: usize) -> Self {
        Self { shapes: Vec::with_capacity(rows), offsets: [(); 3].map(|()| Vec::with_capacity(rows)) }
    }

    /// Adds a row.
    pub fn push(&mut self, row: RowRecovery) {
        self.shapes.push(row.shape);
        for (all, offset) in self.offsets.iter_mut().zip(row.offsets) {
            all.push(offset);
        }
    }

    /// Adds rows.
    pub fn extend(&mut self, shapes: &[u32], offsets: [&[i64]; 3]) {
        self.shapes.extend_from_slice(shapes);
        for (all, offsets) in self.offsets.iter_mut().zip(offsets) {
            all.extend_from_slice(offsets);
        }
    }
}

/// A recovery without its offsets: base of each rule, and whether memory is read there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct RecoveryShape {
    rules: [Option<(Base, bool)>; 3],
    mangled: bool,
    outermost: bool,
}

impl RecoveryShape {
    /// The boolean properties, one bit each: which rules exist, which of them read memory, `mangled`, `outermost`.
    fn flags(&self) -> u8 {
        let [cfa, fp, ra] = self.rules;
        let reads_memory = |rule: Option<(Base, bool)>| rule.is_some_and(|(_, deref)| deref);
        let flags = [
            cfa.is_some(),
            fp.is_some(),
            ra.is_some(),
            reads_memory(cfa),
            reads_memory(fp),
            reads_memory(ra),
            self.mangled,
            self.outermost,
        ];
        flags.into_iter().rev().fold(0, |bits, truth| bits << 1 | u8::from(truth))
    }
}

/// Bits of [`RecoveryShape::flags`]: the first of three for existing rules, the first of three for rules that read
/// memory, and the other two.
const HAS_RULE: usize = 0;
const READS_MEMORY: usize = 3;
const MANGLED: usize = 6;
const OUTERMOST: usize = 7;

/// All shapes that occurred, numbered.
#[derive(Debug, Default)]
pub struct RecoveryShapes {
    all: Vec<RecoveryShape>,
    numbers: FxHashMap<RecoveryShape, u32>,
}

/// Names of the bases that are not register numbers, by their dictionary keys.
const NAMED: [&str; 3] = ["sp", "fp", "cfa"];

impl RecoveryShapes {
    /// The recovery of a row; without rules where the row cannot be interpreted.
    pub fn recovery_of(&mut self, recovery: Option<Recovery>) -> RowRecovery {
        let (rules, mangled) = match recovery {
            Some(Recovery::Caller { cfa, fp, ra, ra_mangled }) => {
                ([Some(cfa), fp.expression(), ra.expression()], ra_mangled)
            }
            Some(Recovery::Outermost) | None => ([None; 3], false),
        };
        let outermost = recovery == Some(Recovery::Outermost);
        let without_offset = |Expression { base, deref, .. }: Expression| (base, deref);
        let shape = RecoveryShape { rules: rules.map(|rule| rule.map(without_offset)), mangled, outermost };
        let shape = match self.all.last() {
            Some(last) if *last == shape => self.all.len().saturating_sub(1) as u32,
            _ => *self.numbers.entry(shape).or_insert_with(|| {
                self.all.push(shape);
                self.all.len().saturating_sub(1) as u32
            }),
        };
        RowRecovery { shape, offsets: rules.map(|rule| rule.map_or(0, |rule| rule.offset)) }
    }

    /// Three columns for each rule, and two boolean columns.
    pub fn columns(&self, rows: RecoveryColumns) -> impl Iterator<Item = ArrayRef> {
        let RecoveryColumns { shapes, offsets: [cfa, fp, ra] } = rows;
        let flags = ShapeFlags::of(self, &shapes);
        let rules = [cfa, fp, ra].into_iter().enumerate();
        let mut columns: Vec<ArrayRef> =
            rules.flat_map(|(rule, offsets)| self.rule(rule, &shapes, offsets, &flags)).collect();
        columns.extend([MANGLED, OUTERMOST].map(|bit| flags.column(bit)));
        columns.into_iter()
    }

    /// The columns of a rule: base, offset, whether memory is read.
    fn rule(&self, number: usize, shapes: &[u32], offsets: Vec<i64>, flags: &ShapeFlags) -> [ArrayRef; 3] {
        let rule = |shape: &RecoveryShape| shape.rules.get(number).copied().flatten();
        let mut names: Vec<String> = NAMED.map(str::to_owned).into();
        let mut registers: FxHashMap<u32, i32> = FxHashMap::default();
        let mut key = |shape: &RecoveryShape| match rule(shape) {
            None | Some((Base::Sp, _)) => 0,
            Some((Base::Fp, _)) => 1,
            Some((Base::Cfa, _)) => 2,
            Some((Base::Register(number), _)) => *registers.entry(number).or_insert_with(|| {
                names.push(format!("r{number}"));
                i32::try_from(names.len().saturating_sub(1)).unwrap_or(0)
            }),
        };
        let keys: Vec<i32> = self.all.iter().map(&mut key).collect();
        let keys_in_use =
            self.all.iter().zip(&keys).filter(|(shape, _)| rule(shape).is_some()).map(|(_, key)| *key);
        let keys = match common_value(keys_in_use) {
            Some(one) => vec![one; shapes.len()],
            None => by_shape(shapes, &keys),
        };
        let valid = Some(NullBuffer::new(flags.bits(HAS_RULE.saturating_add(number))));
        let valid = valid.filter(|valid| valid.null_count() > 0);
        let keys = Int32Array::new(keys.into(), valid.clone());
        // SAFETY: every key comes from `key`, which returns the index of an existing name, or is 0, for rows of an
        // unknown shape.
        let bases =
            unsafe { DictionaryArray::<Int32Type>::new_unchecked(keys, Arc::new(StringArray::from(names))) };
        let offsets = Int64Array::new(offsets.into(), valid);
        [Arc::new(bases), Arc::new(offsets), flags.column(READS_MEMORY.saturating_add(number))]
    }
}

/// The flags of each row.
struct ShapeFlags {
    rows: Vec<u8>,
    /// Flags that all shapes have, and flags that any shape has.
    all: u8,
    any: u8,
}

impl ShapeFlags {
    fn of(shapes: &RecoveryShapes, rows: &[u32]) -> Self {
        let flags: Vec<u8> = shapes.all.iter().map(RecoveryShape::flags).collect();
        Self {
            rows: by_shape(rows, &flags),
            all: flags.iter().fold(u8::MAX, |all, flags| all & flags),
            any: flags.iter().fold(0, |any, flags| any | flags),
        }
    }

    /// One flag of every row, as a column.
    fn column(&self, bit: usize) -> ArrayRef {
        Arc::new(BooleanArray::new(self.bits(bit), None))
    }

    /// One flag of every row.
    fn bits(&self, bit: usize) -> BooleanBuffer {
        let mask = 1u8.wrapping_shl(bit as u32);
        if self.all & mask != 0 {
            return BooleanBuffer::new_set(self.rows.len());
        }
        if self.any & mask == 0 {
            return BooleanBuffer::new_unset(self.rows.len());
        }
        let (eights, rest) = self.rows.as_chunks::<8>();
        let mut last = [0; 8];
        last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        let bytes: Vec<u8> =
            eights.iter().chain([&last]).map(|eight| gather_bit(*eight, bit as u32)).collect();
        BooleanBuffer::new(Buffer::from_vec(bytes), 0, self.rows.len())
    }
}

/// Collects one bit of each of eight bytes into a byte.
#[inline]
fn gather_bit(bytes: [u8; 8], bit: u32) -> u8 {
    let lowest = u64::from_le_bytes(bytes).wrapping_shr(bit) & 0x0101_0101_0101_0101;
    // Moves the lowest bit of byte `i` to bit 56 + i, without collisions below.
    lowest.wrapping_mul(0x0102_0408_1020_4080).wrapping_shr(56) as u8
}

/// The value that all items share; `None` where they differ.
fn common_value<T: PartialEq + Default>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let Some(first) = all.next() else { return Some(T::default()) };
    all.all(|other| other == first).then_some(first)
}

/// The value that belongs to the shape of each row.
fn by_shape<T: Copy + Default>(rows: &[u32], of_shapes: &[T]) -> Vec<T> {
    rows.iter().map(|shape| of_shapes.get(*shape as usize).copied().unwrap_or_default()).collect()
}
