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
    by_hash: FxHashMap<u64, KnownBacktrace<T>>,
    /// The encodings of all.
    encodings: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct KnownBacktrace<T> {
    first: u64,
    last: u64,
    /// Range of the other methods in `encodings`.
    start: usize,
    end: usize,
    value: T,
}

impl<T> Default for KnownBacktraces<T> {
    fn default() -> Self {
        Self { by_hash: FxHashMap::default(), encodings: Vec::new() }
    }
}

impl<T: Copy> KnownBacktraces<T> {
    /// What a backtrace stands for, and its last method.
    #[inline]
    pub(super) fn find(&self, backtrace: &EncodedBacktrace<'_>) -> Option<(T, u64)> {
        let known = self.by_hash.get(&backtrace.hash())?;
        let is_same =
            known.first == backtrace.first && self.encodings.get(known.start..known.end)? == backtrace.others;
        is_same.then_some((known.value, known.last))
    }

    /// Adds a backtrace, unless it stands for something else at another time; returns what it stands for.
    #[cold]
    pub(super) fn add(&mut self, backtrace: &EncodedBacktrace<'_>, last: u64, meaning: Meaning<T>) -> T {
        let Meaning::Constant(value) = meaning else { return meaning.value() };
        let start = self.encodings.len();
        self.encodings.extend_from_slice(backtrace.others);
        let end = self.encodings.len();
        self.by_hash
            .insert(backtrace.hash(), KnownBacktrace { first: backtrace.first, last, start, end, value });
        value
    }
}
