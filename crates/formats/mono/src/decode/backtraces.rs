//! Backtraces by their encoding. Most allocations have a backtrace that occurred before: its bytes are compared, which
//! takes a fraction of the time of decoding its methods.

use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::decode::leb128;

/// A backtrace as stored since data version 13: each method is the difference to the previous one, the first to the
/// last method of an earlier event. What remains is the same for the same methods.
#[derive(Clone, Copy, Debug)]
pub struct EncodedBacktrace<'a> {
    /// The first method.
    pub first: u64,
    /// The encoding of the others.
    pub others: &'a [u8],
}

impl EncodedBacktrace<'_> {
    /// Decodes its methods, `num_others` of them in `others`; `None` if a number is longer than eight bytes.
    #[must_use]
    #[cold]
    pub fn decode(&self, num_others: u64, mask: u64) -> Option<Vec<u64>> {
        let mut methods = vec![self.first];
        let (mut method, mut rest) = (self.first, self.others);
        for _ in 0..num_others {
            let (difference, after) = leb128::split(rest)?;
            method = method.wrapping_add_signed(difference) & mask;
            methods.push(method);
            rest = after;
        }
        Some(methods)
    }

    #[inline]
    fn hash(&self) -> u64 {
        FxBuildHasher.hash_one((self.first, self.others))
    }
}

/// What a backtrace stands for.
#[derive(Clone, Copy, Debug)]
pub enum Meaning<T> {
    /// The same at any time.
    Constant(T),
    /// Something else at another time: an address of its methods was reused.
    AtThisTime(T),
}

impl<T> Meaning<T> {
    /// What it stands for at the time that was asked about.
    pub fn value(self) -> T {
        match self {
            Self::Constant(value) | Self::AtThisTime(value) => value,
        }
    }
}

/// Backtraces that were decoded, with what they stand for.
#[derive(Debug)]
pub struct KnownBacktraces<T> {
    all: Vec<KnownBacktrace<T>>,
    /// Number in `all` of each, by the hash of its methods.
    by_hash: FxHashMap<u64, u32>,
    /// Number in `all` of the last one that began like this. Most backtraces are the last one that began like them: they are
    /// compared without a search for their end and without hashing them.
    by_start: Vec<u32>,
    /// The encodings of all.
    encodings: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct KnownBacktrace<T> {
    first: u64,
    last: u64,
    /// Number of the other methods, and their range in `encodings`.
    num_others: u64,
    start: usize,
    end: usize,
    value: T,
}

/// Size of `by_start`: a power of two.
const NUM_STARTS: usize = 1 << 13;

/// Index in `by_start` of backtraces with this first method, number of others and first bytes of these.
#[inline]
fn start_slot(first: u64, num_others: u64, bytes: [u8; 8]) -> usize {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = first.wrapping_mul(MULTIPLIER) ^ num_others ^ u64::from_le_bytes(bytes);
    (mixed.wrapping_mul(MULTIPLIER) >> 40) as usize % NUM_STARTS
}

impl<T> Default for KnownBacktraces<T> {
    fn default() -> Self {
        let by_start = vec![u32::MAX; NUM_STARTS];
        Self { all: Vec::new(), by_hash: FxHashMap::default(), by_start, encodings: Vec::new() }
    }
}

impl<T: Copy> KnownBacktraces<T> {
    /// What the backtrace at the start of `bytes` stands for, its last method, and the length of the others in bytes, where it is
    /// the last one that began like this.
    #[inline]
    pub(super) fn find_last(&self, first: u64, num_others: u64, bytes: &[u8]) -> Option<(T, u64, usize)> {
        let slot = start_slot(first, num_others, *bytes.first_chunk()?);
        let known = self.all.get(*self.by_start.get(slot)? as usize)?;
        let encoding = self.encodings.get(known.start..known.end)?;
        let is_same = known.first == first
            && known.num_others == num_others
            && bytes.get(..encoding.len())? == encoding;
        is_same.then_some((known.value, known.last, encoding.len()))
    }

    /// What a backtrace stands for, and its last method.
    #[inline]
    pub(super) fn find(&mut self, backtrace: &EncodedBacktrace<'_>) -> Option<(T, u64)> {
        let number = *self.by_hash.get(&backtrace.hash())?;
        let known = *self.all.get(number as usize)?;
        let is_same =
            known.first == backtrace.first && self.encodings.get(known.start..known.end)? == backtrace.others;
        if is_same
            && let Some(bytes) = backtrace.others.first_chunk()
            && let Some(last) = self.by_start.get_mut(start_slot(known.first, known.num_others, *bytes))
        {
            *last = number;
        }
        is_same.then_some((known.value, known.last))
    }

    /// Adds a backtrace, unless it stands for something else at another time; returns what it stands for.
    #[cold]
    pub(super) fn add(
        &mut self,
        backtrace: &EncodedBacktrace<'_>,
        methods: &[u64],
        meaning: Meaning<T>,
    ) -> T {
        let Meaning::Constant(value) = meaning else { return meaning.value() };
        let start = self.encodings.len();
        self.encodings.extend_from_slice(backtrace.others);
        let (first, last) = (backtrace.first, methods.last().copied().unwrap_or(backtrace.first));
        let num_others = (methods.len() as u64).saturating_sub(1);
        self.by_hash.insert(backtrace.hash(), self.all.len() as u32);
        self.all.push(KnownBacktrace { first, last, num_others, start, end: self.encodings.len(), value });
        value
    }
}
