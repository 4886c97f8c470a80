//! Encodings of columns. Of a small table, whose bytes matter more than the time, each column has the one that is smallest.

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion,
};
use parquet::schema::types::ColumnPath;

/// Level of compression of columns that are written to be compared.
const TRIAL_LEVEL: i32 = 9;

/// How the values of a column are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnEncoding {
    /// As the Parquet library does by itself: numbers of distinct values.
    Dictionary,
    /// One after the other.
    Values(Encoding),
}

impl ColumnEncoding {
    /// The properties with this encoding of a column.
    pub(crate) fn set(self, properties: WriterPropertiesBuilder, column: &str) -> WriterPropertiesBuilder {
        let path = ColumnPath::from(column);
        match self {
            Self::Dictionary => properties.set_column_dictionary_enabled(path, true),
            Self::Values(encoding) => properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, encoding),
        }
    }

    /// That of a column of a large table.
    pub(crate) fn of_type(kind: &DataType) -> Self {
        // Keys, times and offsets mostly increase.
        encodings(kind).first().copied().unwrap_or(Self::Dictionary)
    }

    /// The one with which a column of a small table takes the least bytes.
    ///
    /// # Errors
    /// Those of the Parquet library.
    pub(crate) fn smallest(batch: &RecordBatch, field: &Field) -> Result<Self, ParquetError> {
        let name = field.name();
        let at = batch.schema().index_of(name)?;
        let column = batch.project(&[at])?;
        let mut smallest = (Self::of_type(field.data_type()), usize::MAX);
        for encoding in encodings(field.data_type()) {
            let properties = WriterProperties::builder()
                .set_writer_version(WriterVersion::PARQUET_2_0)
                .set_compression(Compression::ZSTD(ZstdLevel::try_new(TRIAL_LEVEL)?))
                .set_statistics_enabled(EnabledStatistics::None)
                .set_offset_index_disabled(true);
            let properties = encoding.set(properties, name).build();
            let mut writer = ArrowWriter::try_new(Vec::new(), column.schema(), Some(properties))?;
            writer.write(&column)?;
            let size = writer.into_inner()?.len();
            if size < smallest.1 {
                smallest = (*encoding, size);
            }
        }
        Ok(smallest.0)
    }
}

/// What a column of a type is stored as, the usual one first.
fn encodings(kind: &DataType) -> &'static [ColumnEncoding] {
    use ColumnEncoding::{Dictionary, Values};
    match kind {
        DataType::Int32 | DataType::Int64 | DataType::UInt32 | DataType::UInt64 => {
            &[Values(Encoding::DELTA_BINARY_PACKED), Values(Encoding::PLAIN), Dictionary]
        }
        DataType::Utf8 => TEXTS,
        DataType::Dictionary(_, values) if **values == DataType::Utf8 => TEXTS,
        _ => &[Dictionary],
    }
}

/// What texts are stored as.
const TEXTS: &[ColumnEncoding] = &[
    ColumnEncoding::Dictionary,
    ColumnEncoding::Values(Encoding::DELTA_BYTE_ARRAY),
    ColumnEncoding::Values(Encoding::DELTA_LENGTH_BYTE_ARRAY),
];

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, StringArray, UInt64Array};

    use super::*;

    fn smallest(column: ArrayRef) -> ColumnEncoding {
        let batch = RecordBatch::try_from_iter([("column", column)]).unwrap();
        let schema = batch.schema();
        ColumnEncoding::smallest(&batch, schema.field(0)).unwrap()
    }

    #[test]
    fn numbers() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state ^ (state >> 29)
        };
        let times = UInt64Array::from_iter_values((0..5000).map(|n| 1_000_000 * n));
        assert_eq!(smallest(Arc::new(times)), ColumnEncoding::Values(Encoding::DELTA_BINARY_PACKED));
        let hashes = UInt64Array::from_iter_values((0..5000).map(|_| random()));
        assert_eq!(smallest(Arc::new(hashes)), ColumnEncoding::Values(Encoding::PLAIN));
        let few = [random(), random(), random()];
        let repeated = UInt64Array::from_iter_values((0..5000).map(|_| few[(random() % 3) as usize]));
        assert_eq!(smallest(Arc::new(repeated)), ColumnEncoding::Dictionary);
    }

    #[test]
    fn texts() {
        let names = StringArray::from_iter_values((0..3000).map(|n| format!("a::common::prefix::{n:05}")));
        assert_eq!(smallest(Arc::new(names)), ColumnEncoding::Values(Encoding::DELTA_BYTE_ARRAY));
        let kinds = ["native", "kernel", "jit", "native", "native"];
        let kinds = StringArray::from_iter_values((0..3000).map(|n| kinds[(n * n % 7) % 5]));
        assert_eq!(smallest(Arc::new(kinds)), ColumnEncoding::Dictionary);
    }
}
