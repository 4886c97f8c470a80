//! Typed access to the columns of the common tables.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int16Type, Int32Type, UInt8Type, UInt16Type, UInt32Type};
use arrow_array::{Array, DictionaryArray, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::DataType;
use rustc_hash::FxHashMap;

use super::StackError;
use crate::NONE;

/// Texts, each kept once.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    ids: FxHashMap<Arc<str>, u32>,
    values: Vec<Arc<str>>,
}

impl Texts {
    /// Number of a text.
    pub fn id(&mut self, text: &str) -> u32 {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        let (id, text) = (self.values.len() as u32, Arc::<str>::from(text));
        self.values.push(Arc::clone(&text));
        self.ids.insert(text, id);
        id
    }

    /// The text of a number; none for [`NONE`].
    pub fn get(&self, id: u32) -> Option<&str> {
        self.values.get(id as usize).map(|text| &**text)
    }

    /// All texts, in the order of their numbers.
    pub fn array(&self) -> StringArray {
        StringArray::from_iter_values(&self.values)
    }
}

/// A column of one batch.
pub fn column<'a, A: Array + 'static>(
    batch: &'a RecordBatch,
    table: &'static str,
    column: &'static str,
) -> Result<&'a A, StackError> {
    let found = batch.column_by_name(column);
    let array = found.and_then(|array| array.as_any().downcast_ref::<A>());
    array.ok_or_else(|| StackError::Column { table, column, found: found.map(|a| a.data_type().to_string()) })
}

/// A column of small numbers over all batches; [`NONE`] stands for null.
pub fn numbers(
    batches: &[RecordBatch],
    table: &'static str,
    name: &'static str,
) -> Result<Vec<u32>, StackError> {
    let mut out = Vec::with_capacity(batches.iter().map(RecordBatch::num_rows).sum());
    for batch in batches {
        let array: &UInt32Array = column(batch, table, name)?;
        if array.null_count() == 0 {
            out.extend_from_slice(array.values());
        } else {
            out.extend(array.iter().map(|value| value.unwrap_or(NONE)));
        }
    }
    Ok(out)
}

/// A column of large numbers over all batches.
pub fn wide_numbers(
    batches: &[RecordBatch],
    table: &'static str,
    name: &'static str,
) -> Result<Vec<Option<u64>>, StackError> {
    let mut out = Vec::with_capacity(batches.iter().map(RecordBatch::num_rows).sum());
    for batch in batches {
        out.extend(column::<UInt64Array>(batch, table, name)?.iter());
    }
    Ok(out)
}

/// A column of texts over all batches, as numbers of `texts`; [`NONE`] stands for null.
pub fn text(
    batches: &[RecordBatch],
    table: &'static str,
    name: &'static str,
    texts: &mut Texts,
) -> Result<Vec<u32>, StackError> {
    let mut out = Vec::new();
    for batch in batches {
        let array: &dyn Array =
            batch.column_by_name(name).ok_or(StackError::Column { table, column: name, found: None })?;
        let ids = ids_of(array, texts).ok_or_else(|| StackError::Column {
            table,
            column: name,
            found: Some(array.data_type().to_string()),
        })?;
        if out.is_empty() {
            out = ids;
            out.reserve(batches.iter().map(RecordBatch::num_rows).sum::<usize>().saturating_sub(out.len()));
        } else {
            out.extend(ids);
        }
    }
    Ok(out)
}

fn ids_of(array: &dyn Array, texts: &mut Texts) -> Option<Vec<u32>> {
    /// Interns each value of the dictionary once, independent of the number of rows.
    macro_rules! dictionary {
        ($keys:ty) => {{
            let array: &DictionaryArray<$keys> = array.as_dictionary();
            let values = ids_of(array.values().as_ref(), texts)?;
            let id = |key| usize::try_from(key).ok().and_then(|key| values.get(key).copied()).unwrap_or(NONE);
            let keys = array.keys();
            Some(match keys.null_count() {
                0 => keys.values().iter().copied().map(id).collect(),
                _ => keys.iter().map(|key| key.map_or(NONE, id)).collect(),
            })
        }};
    }
    let mut intern = |text: Option<&str>| text.map_or(NONE, |text| texts.id(text));
    match array.data_type() {
        DataType::Utf8 => Some(array.as_any().downcast_ref::<StringArray>()?.iter().map(intern).collect()),
        DataType::LargeUtf8 => Some(array.as_string::<i64>().iter().map(&mut intern).collect()),
        DataType::Utf8View => Some(array.as_string_view().iter().map(&mut intern).collect()),
        DataType::Null => Some(vec![NONE; array.len()]),
        DataType::Dictionary(keys, _) => match keys.as_ref() {
            DataType::Int8 => dictionary!(Int8Type),
            DataType::Int16 => dictionary!(Int16Type),
            DataType::Int32 => dictionary!(Int32Type),
            DataType::UInt8 => dictionary!(UInt8Type),
            DataType::UInt16 => dictionary!(UInt16Type),
            DataType::UInt32 => dictionary!(UInt32Type),
            _ => None,
        },
        _ => None,
    }
}

/// Row number of each key. Keys that equal the row number, as in the tables of a profile, need no memory.
#[derive(Clone, Debug)]
pub enum Keys {
    /// The key is the row number, below this bound.
    Dense(u32),
    /// Any other numbering.
    Sparse(FxHashMap<u32, u32>),
}

impl Keys {
    /// The numbering of a key column.
    pub fn of(keys: &[u32]) -> Self {
        if keys.iter().enumerate().all(|(row, &key)| row == key as usize) {
            Self::Dense(keys.len() as u32)
        } else {
            Self::Sparse(keys.iter().enumerate().map(|(row, &key)| (key, row as u32)).collect())
        }
    }

    /// The row of a key; [`NONE`] where there is none.
    #[inline]
    pub fn row(&self, key: u32) -> u32 {
        match self {
            Self::Dense(len) if key < *len => key,
            Self::Dense(_) => NONE,
            Self::Sparse(rows) => rows.get(&key).copied().unwrap_or(NONE),
        }
    }
}
