//! What rows say, as columns. Of all that rows say but their offsets there are few different kinds, so a row keeps the number
//! of one; columns are looked up by it.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BooleanArray, DictionaryArray, Int32Array, Int64Array, StringArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use rustc_hash::FxHashMap;

use crate::sframe::recovery::{Base, Expression, Recovery};

/// What a row says: the number of its shape, and the offsets of CFA, frame pointer and return address.
#[derive(Clone, Copy, Debug)]
pub struct Said {
    pub shape: u32,
    pub offsets: [i64; 3],
}

/// What a row says but for its offsets: base of each rule, and whether memory is read there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Shape {
    rules: [Option<(Base, bool)>; 3],
    mangled: bool,
    outermost: bool,
}

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
    pub fn columns<'a>(
        &'a self,
        rows: impl ExactSizeIterator<Item = Said> + Clone + 'a,
    ) -> impl Iterator<Item = ArrayRef> + 'a {
        let truths = [|shape: &Shape| shape.mangled, |shape: &Shape| shape.outermost];
        let bits = rows.clone();
        let truths =
            truths.map(|truth| Arc::new(BooleanArray::new(self.bits(bits.clone(), truth), None)) as _);
        (0..3).flat_map(move |rule| self.rule(rule, rows.clone())).chain(truths)
    }

    fn rule(&self, number: usize, rows: impl ExactSizeIterator<Item = Said> + Clone) -> [ArrayRef; 3] {
        let rule = |shape: &Shape| shape.rules.get(number).copied().flatten();
        let mut names: Vec<String> = NAMED.map(str::to_owned).into();
        let mut registers: FxHashMap<u32, i32> = FxHashMap::default();
        let mut key = |shape: &Shape| match rule(shape) {
            None | Some((Base::Sp, _)) => 0,
            Some((Base::Fp, _)) => 1,
            Some((Base::Cfa, _)) => 2,
            Some((Base::Register(number), _)) => *registers.entry(number).or_insert_with(|| {
                names.push(format!("r{number}"));
                i32::try_from(names.len().saturating_sub(1)).unwrap_or(i32::MAX)
            }),
        };
        let keys: Vec<i32> = self.all.iter().map(&mut key).collect();
        let keys: Vec<i32> = match keys.as_slice() {
            [first, rest @ ..] if rest.iter().all(|key| key == first) => vec![*first; rows.len()],
            _ => rows.clone().map(|said| keys.get(said.shape as usize).copied().unwrap_or(0)).collect(),
        };
        let valid = NullBuffer::new(self.bits(rows.clone(), |shape| rule(shape).is_some()));
        let valid = Some(valid).filter(|valid| valid.null_count() > 0);
        let derefs = self.bits(rows.clone(), |shape| rule(shape).is_some_and(|(_, deref)| deref));
        let offsets: Vec<i64> = rows.map(|said| said.offsets.get(number).copied().unwrap_or(0)).collect();
        let keys = Int32Array::new(keys.into(), valid.clone());
        let bases: ArrayRef =
            match DictionaryArray::<Int32Type>::try_new(keys, Arc::new(StringArray::from(names))) {
                Ok(array) => Arc::new(array),
                Err(error) => unreachable!("every key has a name: {error}"),
            };
        [bases, Arc::new(Int64Array::new(offsets.into(), valid)), Arc::new(BooleanArray::new(derefs, None))]
    }

    fn bits(
        &self,
        mut rows: impl ExactSizeIterator<Item = Said>,
        truth: impl Fn(&Shape) -> bool,
    ) -> BooleanBuffer {
        let truths: Vec<bool> = self.all.iter().map(truth).collect();
        match truths.as_slice() {
            [first, rest @ ..] if rest.iter().all(|truth| truth == first) => match first {
                true => BooleanBuffer::new_set(rows.len()),
                false => BooleanBuffer::new_unset(rows.len()),
            },
            _ => BooleanBuffer::collect_bool(rows.len(), |_| {
                rows.next().is_some_and(|said| truths.get(said.shape as usize).is_some_and(|truth| *truth))
            }),
        }
    }
}
