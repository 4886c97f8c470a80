//! Columns of `unwind_rows` and `unwind_lookups`, each filled at once, as there are many rows.

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
pub struct UnwindRow {
    /// Key of its function.
    pub function: u32,
    /// Where it begins to hold.
    pub start: u32,
    /// What it says.
    pub said: Said,
    /// Offset of its record.
    pub place: u64,
}

/// Rows on their way into a batch of `unwind_rows`.
#[derive(Debug)]
pub struct Columns {
    source_id: u32,
    functions: Vec<u32>,
    starts: Vec<u64>,
    rules: Rules,
    places: Vec<u64>,
    /// What rows say.
    pub shapes: Shapes,
}

impl Columns {
    /// Room for so many rows.
    pub fn with_capacity(source_id: u32, rows: usize) -> Self {
        Self {
            source_id,
            functions: Vec::with_capacity(rows),
            starts: Vec::with_capacity(rows),
            rules: Rules::with_capacity(rows),
            places: Vec::with_capacity(rows),
            shapes: Shapes::default(),
        }
    }

    /// Adds a row.
    pub fn push(&mut self, row: UnwindRow) {
        self.functions.push(row.function);
        self.starts.push(row.start.into());
        self.rules.push(row.said);
        self.places.push(row.place);
    }

    /// Adds the rows of a block.
    pub fn extend(&mut self, block: &Block) {
        self.functions.extend_from_slice(block.functions());
        self.starts.extend_from_slice(block.starts());
        self.rules.extend(block.shapes(), block.offsets());
        self.places.extend_from_slice(block.places());
    }

    /// The rows as Arrow.
    pub fn finish(self) -> RecordBatch {
        let Self { source_id, functions, starts, rules, places, shapes } = self;
        let sources = UInt32Array::from(vec![source_id; functions.len()]);
        let mut columns: Vec<ArrayRef> =
            vec![Arc::new(UInt32Array::from(functions)), Arc::new(UInt64Array::from(starts))];
        columns.extend(shapes.columns(rules));
        columns.push(Arc::new(sources));
        columns.push(Arc::new(UInt64Array::from(places)));
        unwind_rows::batch(columns)
    }
}

/// Addresses that were looked up, on their way into a batch of `unwind_lookups`.
#[derive(Debug)]
pub struct Lookups {
    addresses: Vec<u64>,
    ids: UInt32Builder,
    functions: UInt64Builder,
    starts: UInt64Builder,
    rules: Rules,
    shapes: Shapes,
}

impl Lookups {
    /// Room for so many addresses.
    pub fn with_capacity(rows: usize) -> Self {
        Self {
            addresses: Vec::with_capacity(rows),
            ids: UInt32Builder::with_capacity(rows),
            functions: UInt64Builder::with_capacity(rows),
            starts: UInt64Builder::with_capacity(rows),
            rules: Rules::with_capacity(rows),
            shapes: Shapes::default(),
        }
    }

    /// Adds an address: key and first address of its function, start of its row, and what that says.
    pub fn push(&mut self, address: u64, function: Option<(u32, u64)>, row: Option<(u64, Option<Recovery>)>) {
        self.addresses.push(address);
        self.ids.append_option(function.map(|(id, _)| id));
        self.functions.append_option(function.map(|(_, start)| start));
        self.starts.append_option(row.map(|(start, _)| start));
        self.rules.push(self.shapes.said(row.and_then(|(_, recovery)| recovery)));
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

/// Rows of a block.
pub const BLOCK: usize = 64;

/// Rows one behind the other, in columns of fixed size: filling them takes no look at how much room is left.
#[derive(Debug)]
pub struct Block {
    pub len: usize,
    pub functions: [u32; BLOCK],
    pub starts: [u64; BLOCK],
    pub shapes: [u32; BLOCK],
    pub offsets: [[i64; BLOCK]; 3],
    pub places: [u64; BLOCK],
}

impl Block {
    /// Of rows whose return address is so far from the CFA, where it is as far for all.
    pub fn empty(fixed_ra: i64) -> Self {
        Self {
            len: 0,
            functions: [0; BLOCK],
            starts: [0; BLOCK],
            shapes: [0; BLOCK],
            offsets: [[0; BLOCK], [0; BLOCK], [fixed_ra; BLOCK]],
            places: [0; BLOCK],
        }
    }

    /// Keys of functions.
    pub fn functions(&self) -> &[u32] {
        self.functions.get(..self.len).unwrap_or_default()
    }

    /// Where rows begin to hold.
    pub fn starts(&self) -> &[u64] {
        self.starts.get(..self.len).unwrap_or_default()
    }

    /// Numbers of shapes.
    pub fn shapes(&self) -> &[u32] {
        self.shapes.get(..self.len).unwrap_or_default()
    }

    /// Offsets of each rule.
    pub fn offsets(&self) -> [&[i64]; 3] {
        self.offsets.each_ref().map(|offsets| offsets.get(..self.len).unwrap_or_default())
    }

    /// Offsets of records.
    pub fn places(&self) -> &[u64] {
        self.places.get(..self.len).unwrap_or_default()
    }
}

/// What a row says: the number of its shape, and the offsets of CFA, frame pointer and return address.
#[derive(Clone, Copy, Debug)]
pub struct Said {
    pub shape: u32,
    pub offsets: [i64; 3],
}

/// What rows say, one behind the other.
#[derive(Debug)]
pub struct Rules {
    shapes: Vec<u32>,
    offsets: [Vec<i64>; 3],
}

impl Rules {
    /// Room for so many rows.
    pub fn with_capacity(rows: usize) -> Self {
        Self { shapes: Vec::with_capacity(rows), offsets: [(); 3].map(|()| Vec::with_capacity(rows)) }
    }

    /// Adds a row.
    pub fn push(&mut self, row: Said) {
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

/// What a row says but for its offsets: base of each rule, and whether memory is read there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Shape {
    rules: [Option<(Base, bool)>; 3],
    mangled: bool,
    outermost: bool,
}

impl Shape {
    /// All that is true or false of it, a bit each: which rules there are, which read memory, and the rest.
    fn truths(&self) -> u8 {
        let [cfa, fp, ra] = self.rules;
        let reads = |rule: Option<(Base, bool)>| rule.is_some_and(|(_, deref)| deref);
        let truths = [
            cfa.is_some(),
            fp.is_some(),
            ra.is_some(),
            reads(cfa),
            reads(fp),
            reads(ra),
            self.mangled,
            self.outermost,
        ];
        truths.into_iter().rev().fold(0, |bits, truth| bits << 1 | u8::from(truth))
    }
}

/// The bit of [`Shape::truths`] for the first rule's being there, its reading memory, and the other two.
const IS_THERE: usize = 0;
const READS: usize = 3;
const MANGLED: usize = 6;
const OUTERMOST: usize = 7;

/// All shapes that were met, numbered.
#[derive(Debug, Default)]
pub struct Shapes {
    all: Vec<Shape>,
    numbers: FxHashMap<Shape, u32>,
}

/// Bases that are no register's number, by their keys.
const NAMED: [&str; 3] = ["sp", "fp", "cfa"];

impl Shapes {
    /// What a row says; one that says nothing has no rules.
    pub fn said(&mut self, recovery: Option<Recovery>) -> Said {
        let (rules, mangled) = match recovery {
            Some(Recovery::Caller { cfa, fp, ra, ra_mangled }) => {
                ([Some(cfa), fp.expression(), ra.expression()], ra_mangled)
            }
            Some(Recovery::Outermost) | None => ([None; 3], false),
        };
        let outermost = recovery == Some(Recovery::Outermost);
        let parts = |Expression { base, deref, .. }: Expression| (base, deref);
        let shape = Shape { rules: rules.map(|rule| rule.map(parts)), mangled, outermost };
        let shape = match self.all.last() {
            Some(last) if *last == shape => self.all.len().saturating_sub(1) as u32,
            _ => *self.numbers.entry(shape).or_insert_with(|| {
                self.all.push(shape);
                self.all.len().saturating_sub(1) as u32
            }),
        };
        Said { shape, offsets: rules.map(|rule| rule.map_or(0, |rule| rule.offset)) }
    }

    /// Three columns for each rule, and two truths.
    pub fn columns(&self, rows: Rules) -> impl Iterator<Item = ArrayRef> {
        let Rules { shapes, offsets: [cfa, fp, ra] } = rows;
        let truths = Truths::of(self, &shapes);
        let rules = [cfa, fp, ra].into_iter().enumerate();
        let mut columns: Vec<ArrayRef> =
            rules.flat_map(|(rule, offsets)| self.rule(rule, &shapes, offsets, &truths)).collect();
        columns.extend([MANGLED, OUTERMOST].map(|bit| truths.column(bit)));
        columns.into_iter()
    }

    fn rule(&self, number: usize, shapes: &[u32], offsets: Vec<i64>, truths: &Truths) -> [ArrayRef; 3] {
        let rule = |shape: &Shape| shape.rules.get(number).copied().flatten();
        let mut names: Vec<String> = NAMED.map(str::to_owned).into();
        let mut registers: FxHashMap<u32, i32> = FxHashMap::default();
        let mut key = |shape: &Shape| match rule(shape) {
            None | Some((Base::Sp, _)) => 0,
            Some((Base::Fp, _)) => 1,
            Some((Base::Cfa, _)) => 2,
            Some((Base::Register(number), _)) => *registers.entry(number).or_insert_with(|| {
                names.push(format!("r{number}"));
                i32::try_from(names.len().saturating_sub(1)).unwrap_or(0)
            }),
        };
        let keys: Vec<i32> = self.all.iter().map(&mut key).collect();
        let there =
            self.all.iter().zip(&keys).filter(|(shape, _)| rule(shape).is_some()).map(|(_, key)| *key);
        let keys = match same(there) {
            Some(one) => vec![one; shapes.len()],
            None => looked_up(shapes, &keys),
        };
        let valid = Some(NullBuffer::new(truths.bits(IS_THERE.saturating_add(number))));
        let valid = valid.filter(|valid| valid.null_count() > 0);
        let keys = Int32Array::new(keys.into(), valid.clone());
        // SAFETY: keys are those `key` gave, each of a name that is there, or 0; rows of no known shape have 0.
        let bases =
            unsafe { DictionaryArray::<Int32Type>::new_unchecked(keys, Arc::new(StringArray::from(names))) };
        let offsets = Int64Array::new(offsets.into(), valid);
        [Arc::new(bases), Arc::new(offsets), truths.column(READS.saturating_add(number))]
    }
}

/// What is true of rows, a byte each.
struct Truths {
    rows: Vec<u8>,
    /// What is true of all shapes, and of any.
    all: u8,
    any: u8,
}

impl Truths {
    fn of(shapes: &Shapes, rows: &[u32]) -> Self {
        let truths: Vec<u8> = shapes.all.iter().map(Shape::truths).collect();
        Self {
            rows: looked_up(rows, &truths),
            all: truths.iter().fold(u8::MAX, |all, truths| all & truths),
            any: truths.iter().fold(0, |any, truths| any | truths),
        }
    }

    fn column(&self, bit: usize) -> ArrayRef {
        Arc::new(BooleanArray::new(self.bits(bit), None))
    }

    /// One truth of every row.
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
        let bytes: Vec<u8> = eights.iter().chain([&last]).map(|eight| gather(*eight, bit as u32)).collect();
        BooleanBuffer::new(Buffer::from_vec(bytes), 0, self.rows.len())
    }
}

/// A bit of each of eight bytes, as a byte.
#[inline]
fn gather(bytes: [u8; 8], bit: u32) -> u8 {
    let lowest = u64::from_le_bytes(bytes).wrapping_shr(bit) & 0x0101_0101_0101_0101;
    // Moves the lowest bit of byte `i` to bit 56 + i; no two meet below.
    lowest.wrapping_mul(0x0102_0408_1020_4080).wrapping_shr(56) as u8
}

/// The one value all are; `None` where they differ.
fn same<T: PartialEq + Default>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let Some(first) = all.next() else { return Some(T::default()) };
    all.all(|other| other == first).then_some(first)
}

/// What shapes have, for every row.
fn looked_up<T: Copy + Default>(rows: &[u32], of_shapes: &[T]) -> Vec<T> {
    rows.iter().map(|shape| of_shapes.get(*shape as usize).copied().unwrap_or_default()).collect()
}
