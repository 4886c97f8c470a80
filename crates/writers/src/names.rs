//! Function names, encoded once for output.

use arrow_array::RecordBatch;
use arrow_array::types::UInt32Type;
use perfuse_tables::access::{ColumnError, numbers, text};

/// Name of functions without a name.
const NO_NAME: &str = "(no name)";

/// The encoded name of each function.
#[derive(Clone, Debug, Default)]
pub struct EncodedNames {
    bytes: Vec<u8>,
    /// The encoded name of functions without a row.
    unknown: Vec<u8>,
    /// Range in `bytes` by function key; empty for unused keys.
    places: Vec<(usize, usize)>,
}

impl EncodedNames {
    /// Encodes the names in batches of table `functions` with `write`.
    ///
    /// # Errors
    /// [`ColumnError`]
    pub fn of(functions: &[RecordBatch], write: impl Fn(&str, &mut Vec<u8>)) -> Result<Self, ColumnError> {
        let mut names = Self::default();
        write(NO_NAME, &mut names.unknown);
        for batch in functions {
            let (ids, texts) = (numbers::<UInt32Type>(batch, "function_id")?, text(batch, "name")?);
            for (row, &id) in ids.values().iter().enumerate() {
                let start = names.bytes.len();
                let name = texts.get(row).filter(|name| !name.is_empty());
                write(name.unwrap_or(NO_NAME), &mut names.bytes);
                let id = id as usize;
                if id >= names.places.len() {
                    names.places.resize(id + 1, (0, 0));
                }
                names.places[id] = (start, names.bytes.len());
            }
        }
        Ok(names)
    }

    /// The encoded name of a function.
    #[inline]
    pub fn get(&self, function_id: u32) -> &[u8] {
        match self.places.get(function_id as usize) {
            Some(&(start, end)) if start < end => &self.bytes[start..end],
            _ => &self.unknown,
        }
    }
}
