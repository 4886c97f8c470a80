//! Reading columns of a common table back, by name.

use std::fmt;
use std::ops::Range;

use arrow_array::types::{ArrowPrimitiveType, Int32Type};
use arrow_array::{
    Array, BinaryArray, BooleanArray, DictionaryArray, ListArray, PrimitiveArray, RecordBatch, StringArray,
};

use crate::Choices;

/// A batch does not have the column its table declares, or not with that type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnError {
    /// The column.
    pub column: &'static str,
}

impl fmt::Display for ColumnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no column {} of the declared type", self.column)
    }
}

impl std::error::Error for ColumnError {}

fn column<'a, A: 'static>(batch: &'a RecordBatch, column: &'static str) -> Result<&'a A, ColumnError> {
    batch.column_by_name(column).and_then(|array| array.as_any().downcast_ref()).ok_or(ColumnError { column })
}

/// A column of numbers.
///
/// # Errors
/// [`ColumnError`], as for all functions here.
pub fn numbers<'a, T: ArrowPrimitiveType>(
    batch: &'a RecordBatch,
    name: &'static str,
) -> Result<&'a PrimitiveArray<T>, ColumnError> {
    column(batch, name)
}

/// A column of truth values.
///
/// # Errors
/// [`ColumnError`]
pub fn booleans<'a>(batch: &'a RecordBatch, name: &'static str) -> Result<&'a BooleanArray, ColumnError> {
    column(batch, name)
}

/// A column of bytes.
///
/// # Errors
/// [`ColumnError`]
pub fn bytes<'a>(batch: &'a RecordBatch, name: &'static str) -> Result<&'a BinaryArray, ColumnError> {
    column(batch, name)
}

/// A column of lists.
///
/// # Errors
/// [`ColumnError`]
pub fn lists<'a>(batch: &'a RecordBatch, name: &'static str) -> Result<&'a ListArray, ColumnError> {
    column(batch, name)
}

/// A dictionary-encoded column of text.
///
/// # Errors
/// [`ColumnError`]
pub fn text<'a>(batch: &'a RecordBatch, name: &'static str) -> Result<Text<'a>, ColumnError> {
    let keys: &DictionaryArray<Int32Type> = column(batch, name)?;
    let values = keys.values().as_any().downcast_ref().ok_or(ColumnError { column: name })?;
    Ok(Text { keys, values })
}

/// A column of a few known words.
///
/// # Errors
/// [`ColumnError`], also for a word that is none of them.
pub fn choices<'a, C: Choices>(
    batch: &'a RecordBatch,
    name: &'static str,
) -> Result<Chosen<'a, C>, ColumnError> {
    let text = text(batch, name)?;
    let known = |word: Option<&str>| C::ALL.iter().copied().find(|choice| Some(choice.name()) == word);
    let words = text.values.iter().map(known).collect::<Option<Vec<_>>>();
    let words = words.filter(|_| text.keys.null_count() == 0).ok_or(ColumnError { column: name })?;
    Ok(Chosen { keys: text.keys.keys().values(), words })
}

/// Words by row.
#[derive(Clone, Debug)]
pub struct Chosen<'a, C> {
    keys: &'a [i32],
    words: Vec<C>,
}

impl<C: Choices> Chosen<'_, C> {
    /// The word in a row.
    #[must_use]
    #[inline]
    pub fn get(&self, row: usize) -> C {
        self.words[self.keys[row] as usize]
    }

    /// The words in some rows.
    #[inline]
    pub fn iter(&self, rows: Range<usize>) -> impl ExactSizeIterator<Item = C> + Clone + '_ {
        self.keys[rows].iter().map(|&key| self.words[key as usize])
    }
}

/// Text by row.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    keys: &'a DictionaryArray<Int32Type>,
    values: &'a StringArray,
}

impl<'a> Text<'a> {
    /// The text in a row; `None` for null.
    #[must_use]
    pub fn get(&self, row: usize) -> Option<&'a str> {
        self.keys.key(row).map(|key| self.values.value(key))
    }

    /// The row's key in [`Text::values`]; `None` for null.
    #[must_use]
    pub fn key(&self, row: usize) -> Option<usize> {
        self.keys.key(row)
    }

    /// The distinct texts.
    #[must_use]
    pub fn values(&self) -> &'a StringArray {
        self.values
    }
}

/// A number that may be null.
#[must_use]
pub fn nullable<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, row: usize) -> Option<T::Native> {
    array.is_valid(row).then(|| array.value(row))
}
