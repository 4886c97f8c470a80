//! Access to columns of a common table by name.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, Int32Type};
use arrow_array::{
    Array, BinaryArray, BooleanArray, DictionaryArray, ListArray, PrimitiveArray, RecordBatch, StringArray,
};

use crate::Choices;

/// A batch does not contain a column of the declared type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnError {
    /// Name of the column.
    pub column: &'static str,
}

impl fmt::Display for ColumnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no column {} of the declared type", self.column)
    }
}

impl std::error::Error for ColumnError {}

/// A column of an array type.
fn column<'a, A: 'static>(batch: &'a RecordBatch, column: &'static str) -> Result<&'a A, ColumnError> {
    batch.column_by_name(column).and_then(|array| array.as_any().downcast_ref()).ok_or(ColumnError { column })
}

/// A column of numbers.
///
/// # Errors
/// [`ColumnError`]
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

/// A column with a fixed set of values.
///
/// # Errors
/// [`ColumnError`], also for a text that is not one of the values.
pub fn choices<'a, C: Choices>(
    batch: &'a RecordBatch,
    name: &'static str,
) -> Result<ChoiceColumn<'a, C>, ColumnError> {
    let text = text(batch, name)?;
    let parse = |text: Option<&str>| C::ALL.iter().copied().find(|choice| Some(choice.name()) == text);
    let choices = text.values.iter().map(parse).collect::<Option<Vec<_>>>();
    let choices = choices.filter(|_| text.keys.null_count() == 0).ok_or(ColumnError { column: name })?;
    Ok(ChoiceColumn { keys: text.keys.keys().values(), choices })
}

/// A column with a fixed set of values.
#[derive(Clone, Debug)]
pub struct ChoiceColumn<'a, C> {
    keys: &'a [i32],
    /// Values by key.
    choices: Vec<C>,
}

impl<C: Choices> ChoiceColumn<'_, C> {
    /// The value in a row.
    #[must_use]
    #[inline]
    pub fn get(&self, row: usize) -> C {
        self.choices[self.keys[row] as usize]
    }

    /// The values in a range of rows.
    #[inline]
    pub fn iter(&self, rows: Range<usize>) -> impl ExactSizeIterator<Item = C> + Clone + '_ {
        self.keys[rows].iter().map(|&key| self.choices[key as usize])
    }
}

/// A dictionary-encoded column of text.
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

    /// The key of a row in [`Text::values`]; `None` for null.
    #[must_use]
    pub fn key(&self, row: usize) -> Option<usize> {
        self.keys.key(row)
    }

    /// The distinct texts.
    #[must_use]
    pub fn values(&self) -> &'a StringArray {
        self.values
    }

    /// The column with another text for each distinct one.
    #[must_use]
    pub fn map(&self, text_of: impl Fn(&str) -> &'static str) -> DictionaryArray<Int32Type> {
        let mut texts = Vec::new();
        let key_of = |value: Option<&str>| {
            let text = text_of(value.unwrap_or_default());
            let known = texts.iter().position(|known| *known == text);
            known.unwrap_or_else(|| {
                texts.push(text);
                texts.len() - 1
            }) as i32
        };
        let new_keys: Vec<i32> = self.values.iter().map(key_of).collect();
        let keys = self.keys.keys().unary(|key| new_keys.get(key as usize).copied().unwrap_or_default());
        DictionaryArray::new(keys, Arc::new(StringArray::from(texts)))
    }
}

/// The number in a row; `None` for null.
#[must_use]
pub fn nullable<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, row: usize) -> Option<T::Native> {
    array.is_valid(row).then(|| array.value(row))
}
