//! Columns of `unwind_rows`, filled directly: a row costs a few stores, as there are many.

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

use crate::sframe::recovery::{Base, Expression, Recovery};

/// Rows on their way into a batch of `unwind_rows`.
#[derive(Debug)]
pub struct Columns {
    source_id: u32,
    functions: Vec<u32>,
    starts: Vec<u64>,
    rules: Rules,
    offsets: Vec<u64>,
}

impl Columns {
    /// Room for so many rows.
    pub fn with_capacity(source_id: u32, rows: usize) -> Self {
        Self {
            source_id,
            functions: Vec::with_capacity(rows),
            starts: Vec::with_capacity(rows),
            rules: Rules::with_capacity(rows),
            offsets: Vec::with_capacity(rows),
        }
    }

    /// Adds a row; one that says nothing has no rules.
    #[inline]
    pub fn push(&mut self, function: u32, start: u64, recovery: Option<Recovery>, offset: u64) {
        self.functions.push(function);
        self.starts.push(start);
        self.offsets.push(offset);
        self.rules.push(recovery);
    }

    /// The rows as Arrow.
    pub fn finish(self) -> RecordBatch {
        let num = self.functions.len();
        let mut columns: Vec<ArrayRef> =
            vec![Arc::new(UInt32Array::from(self.functions)), Arc::new(UInt64Array::from(self.starts))];
        columns.extend(self.rules.finish());
        columns.push(Arc::new(UInt32Array::from(vec![self.source_id; num])));
        columns.push(Arc::new(UInt64Array::from(self.offsets)));
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
        }
    }

    /// Adds an address: key and first address of its function, start of its row, and what that says.
    pub fn push(&mut self, address: u64, function: Option<(u32, u64)>, row: Option<(u64, Option<Recovery>)>) {
        self.addresses.push(address);
        self.ids.append_option(function.map(|(id, _)| id));
        self.functions.append_option(function.map(|(_, start)| start));
        self.starts.append_option(row.map(|(start, _)| start));
        self.rules.push(row.and_then(|(_, recovery)| recovery));
    }

    /// The rows as Arrow.
    pub fn finish(mut self) -> RecordBatch {
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(UInt64Array::from(self.addresses)),
            Arc::new(self.ids.finish()),
            Arc::new(self.functions.finish()),
            Arc::new(self.starts.finish()),
        ];
        columns.extend(self.rules.finish());
        unwind_lookups::batch(columns)
    }
}

/// The columns that both tables have: three rules, and two truths.
#[derive(Debug)]
struct Rules {
    cfa: Rule,
    fp: Rule,
    ra: Rule,
    mangled: Bits,
    outermost: Bits,
}

impl Rules {
    fn with_capacity(rows: usize) -> Self {
        Self {
            cfa: Rule::with_capacity(rows),
            fp: Rule::with_capacity(rows),
            ra: Rule::with_capacity(rows),
            mangled: Bits::with_capacity(rows),
            outermost: Bits::with_capacity(rows),
        }
    }

    #[inline]
    fn push(&mut self, recovery: Option<Recovery>) {
        let (cfa, fp, ra, mangled) = match recovery {
            Some(Recovery::Caller { cfa, fp, ra, ra_mangled }) => {
                (Some(cfa), fp.expression(), ra.expression(), ra_mangled)
            }
            Some(Recovery::Outermost) | None => (None, None, None, false),
        };
        self.cfa.push(cfa);
        self.fp.push(fp);
        self.ra.push(ra);
        self.mangled.push(mangled);
        self.outermost.push(recovery == Some(Recovery::Outermost));
    }

    fn finish(self) -> impl Iterator<Item = ArrayRef> {
        let truths = [self.mangled, self.outermost];
        let truths = truths.map(|truth| Arc::new(BooleanArray::new(truth.finish(), None)) as ArrayRef);
        [self.cfa, self.fp, self.ra].into_iter().flat_map(Rule::finish).chain(truths)
    }
}

/// A column of truths, a bit each.
#[derive(Debug)]
struct Bits {
    words: Vec<u64>,
    word: u64,
    len: usize,
}

impl Bits {
    fn with_capacity(rows: usize) -> Self {
        Self { words: Vec::with_capacity(rows.div_ceil(64)), word: 0, len: 0 }
    }

    /// So many of one.
    fn all(bit: bool, len: usize, rows: usize) -> Self {
        let mut bits = Self::with_capacity(rows.max(len));
        bits.words.resize(len / 64, if bit { u64::MAX } else { 0 });
        bits.len = len & !63;
        (0..len & 63).for_each(|_| bits.push(bit));
        bits
    }

    #[inline]
    fn push(&mut self, bit: bool) {
        self.word |= u64::from(bit).wrapping_shl(self.len as u32);
        self.len = self.len.wrapping_add(1);
        if self.len.is_multiple_of(64) {
            self.words.push(self.word);
            self.word = 0;
        }
    }

    fn finish(mut self) -> BooleanBuffer {
        self.words.push(self.word);
        // Bits lie from the lowest byte on, in whatever order the machine keeps bytes of a word.
        let words: Vec<u64> = self.words.into_iter().map(u64::to_le).collect();
        BooleanBuffer::new(Buffer::from_vec(words), 0, self.len)
    }
}

/// The three columns of a rule: base, offset, and whether memory is read.
#[derive(Debug)]
struct Rule {
    /// All that was pushed, while it is one and the same: return addresses of amd64 are.
    same: Option<(Option<Expression>, usize)>,
    bases: Vec<i32>,
    offsets: Vec<i64>,
    derefs: Bits,
    valid: Bits,
    registers: FxHashMap<u32, i32>,
    names: Vec<String>,
}

/// Bases that are no register's number, by their keys.
const NAMED: [&str; 3] = ["sp", "fp", "cfa"];

impl Rule {
    fn with_capacity(rows: usize) -> Self {
        Self {
            same: None,
            bases: Vec::with_capacity(rows),
            offsets: Vec::with_capacity(rows),
            derefs: Bits::with_capacity(rows),
            valid: Bits::with_capacity(rows),
            registers: FxHashMap::default(),
            names: Vec::new(),
        }
    }

    #[inline]
    fn push(&mut self, rule: Option<Expression>) {
        match &mut self.same {
            Some((same, num)) if *same == rule => *num = num.saturating_add(1),
            Some(_) => {
                self.spread();
                self.put(rule);
            }
            None if self.bases.is_empty() => self.same = Some((rule, 1)),
            None => self.put(rule),
        }
    }

    /// Writes out what was counted; nothing else was pushed yet.
    fn spread(&mut self) {
        if let Some((rule, num)) = self.same.take() {
            let (key, offset, deref) = self.parts(rule);
            self.bases.resize(num, key);
            self.offsets.resize(num, offset);
            let rows = self.bases.capacity();
            self.derefs = Bits::all(deref, num, rows);
            self.valid = Bits::all(rule.is_some(), num, rows);
        }
    }

    #[inline]
    fn put(&mut self, rule: Option<Expression>) {
        let (key, offset, deref) = self.parts(rule);
        self.bases.push(key);
        self.offsets.push(offset);
        self.derefs.push(deref);
        self.valid.push(rule.is_some());
    }

    #[inline]
    fn parts(&mut self, rule: Option<Expression>) -> (i32, i64, bool) {
        let Expression { base, offset, deref } = rule.unwrap_or(NOWHERE);
        let key = match base {
            Base::Sp => 0,
            Base::Fp => 1,
            Base::Cfa => 2,
            Base::Register(number) => self.register(number),
        };
        (key, offset, deref)
    }

    fn register(&mut self, number: u32) -> i32 {
        *self.registers.entry(number).or_insert_with(|| {
            let key = NAMED.len().saturating_add(self.names.len());
            self.names.push(format!("r{number}"));
            i32::try_from(key).unwrap_or(i32::MAX)
        })
    }

    fn finish(mut self) -> [ArrayRef; 3] {
        self.spread();
        let names = NAMED.into_iter().chain(self.names.iter().map(String::as_str));
        let values = Arc::new(StringArray::from_iter_values(names));
        let valid = Some(NullBuffer::new(self.valid.finish())).filter(|valid| valid.null_count() > 0);
        let keys = Int32Array::new(self.bases.into(), valid.clone());
        let bases: ArrayRef = match DictionaryArray::<Int32Type>::try_new(keys, values) {
            Ok(array) => Arc::new(array),
            Err(error) => unreachable!("every key has a name: {error}"),
        };
        let offsets = Int64Array::new(self.offsets.into(), valid);
        [bases, Arc::new(offsets), Arc::new(BooleanArray::new(self.derefs.finish(), None))]
    }
}

/// What stands where there is no rule, under a null.
const NOWHERE: Expression = Expression { base: Base::Sp, offset: 0, deref: false };
