//! Common tables as Parquet files: written with the schema of the table, read only with that schema.

use std::fmt;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, new_null_array};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::ColumnPath;
use perfuse_recording::Source;
use perfuse_tables::TableSpec;

/// Rows of a record batch.
pub const BATCH_ROWS: usize = 65_536;
/// Rows of a row group, the part of a table that can be read alone.
const ROW_GROUP_ROWS: usize = 122_880;
/// A table may be this many times larger in memory than in the file.
const MAX_RATIO: u64 = 1024;
/// Level of zstd compression, and that of tables of one batch, whose bytes matter more than the time.
const LEVEL: i32 = 9;
const SMALL_LEVEL: i32 = 19;
/// A table of this size in memory is never too large.
const SMALL_BYTES: u64 = 64 << 20;

/// Why a table of a saved profile cannot be written or read.
#[derive(Debug)]
pub enum TableError {
    /// The Parquet library's error.
    Parquet(ParquetError),
    /// Another error, with the name of the table.
    Table(&'static str, String),
}

impl fmt::Display for TableError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parquet(error) => error.fmt(out),
            Self::Table(table, message) => write!(out, "table {table}: {message}"),
        }
    }
}

impl std::error::Error for TableError {}

impl From<ArrowError> for TableError {
    fn from(error: ArrowError) -> Self {
        Self::Parquet(error.into())
    }
}

impl From<ParquetError> for TableError {
    fn from(error: ParquetError) -> Self {
        Self::Parquet(error)
    }
}

/// Writes a table. Returns its number of rows.
///
/// # Errors
/// Those of the batches, of the output and of the Parquet library.
pub fn write(
    table: &'static TableSpec,
    schema: SchemaRef,
    mut batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
    out: impl Write + Send,
) -> Result<u64, TableError> {
    let begin: Vec<_> = batches.by_ref().take(2).collect();
    let level = ZstdLevel::try_new(if begin.len() < 2 { SMALL_LEVEL } else { LEVEL })?;
    let fact = |key: &str, value: &str| KeyValue::new(key.to_owned(), value.to_owned());
    let mut properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_compression(Compression::ZSTD(level))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_created_by("perfuse".to_owned())
        .set_key_value_metadata(Some(vec![
            fact("perfuse_table", table.name),
            fact("perfuse_schema_version", "1"),
        ]));
    for field in schema.fields() {
        let (path, kind) = (ColumnPath::from(field.name().as_str()), field.data_type());
        if !kind.is_numeric() {
            // Texts are not searched by their order.
            properties = properties.set_column_statistics_enabled(path.clone(), EnabledStatistics::None);
        }
        if matches!(kind, DataType::Int32 | DataType::Int64 | DataType::UInt32 | DataType::UInt64) {
            // Keys, times and offsets mostly increase.
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    let mut writer = ArrowWriter::try_new(out, schema, Some(properties.build()))?;
    let mut num_rows = 0u64;
    for batch in begin.into_iter().chain(batches) {
        perfuse_stopping::checkpoint();
        let batch = batch.map_err(|error| TableError::Table(table.name, error.to_string()))?;
        num_rows = num_rows.saturating_add(batch.num_rows() as u64);
        writer.write(&batch)?;
    }
    writer.close()?;
    Ok(num_rows)
}

/// Bytes of a source that the Parquet library can own.
struct OwnedRange(Arc<Source>, Range<usize>);

impl AsRef<[u8]> for OwnedRange {
    fn as_ref(&self) -> &[u8] {
        self.0.get(self.1.clone()).unwrap_or_default()
    }
}

/// A table of a saved profile, opened: its footer was read and compared with the declaration of the table.
pub struct ParquetTable {
    table: &'static TableSpec,
    bytes: Bytes,
    metadata: ArrowReaderMetadata,
    /// For each column of the table its column in the file; null where the file was written before the column was declared.
    columns: Vec<Option<usize>>,
    /// Columns of the file that this version does not know.
    pub num_unknown_columns: usize,
    /// Number of rows, by the footer.
    pub num_rows: u64,
}

impl ParquetTable {
    /// Reads the footer.
    ///
    /// # Errors
    /// Where it is damaged, or states other types, or sizes that no such file has.
    pub fn open(
        table: &'static TableSpec,
        source: &Arc<Source>,
        range: Range<usize>,
    ) -> Result<Self, TableError> {
        let wrong = |message: String| TableError::Table(table.name, message);
        let size = range.len() as u64;
        let bytes = Bytes::from_owner(OwnedRange(Arc::clone(source), range));
        let metadata =
            contained(table, || Ok(ArrowReaderMetadata::load(&bytes, ArrowReaderOptions::new())?))?;
        let groups = metadata.metadata().row_groups();
        let mut unpacked = 0u64;
        for group in groups {
            unpacked = unpacked.saturating_add(u64::try_from(group.total_byte_size()).unwrap_or(u64::MAX));
        }
        if unpacked > SMALL_BYTES.max(size.saturating_mul(MAX_RATIO)) {
            return Err(wrong(format!("{unpacked} bytes in {size} are not plausible")));
        }
        let num_rows =
            groups.iter().try_fold(0u64, |sum, group| sum.checked_add(u64::try_from(group.num_rows()).ok()?));
        let num_rows = num_rows.ok_or_else(|| wrong("a number of rows is negative".to_owned()))?;
        let (declared, found) = (table.schema(), Arc::clone(metadata.schema()));
        let mut columns = Vec::new();
        for field in declared.fields() {
            let at = found.fields().iter().position(|other| other.name() == field.name());
            let other = at.and_then(|at| found.fields().get(at));
            match other {
                Some(other) if other.data_type() == field.data_type() => {}
                Some(other) => {
                    return Err(wrong(format!("column {} is of type {}", field.name(), other.data_type())));
                }
                None if field.is_nullable() => {}
                None => return Err(wrong(format!("column {} is missing", field.name()))),
            }
            columns.push(at);
        }
        let known = columns.iter().flatten().count();
        let num_unknown_columns = found.fields().len().saturating_sub(known);
        Ok(Self { table, bytes, metadata, columns, num_unknown_columns, num_rows })
    }

    /// Some rows, in batches of at most `batch_rows` that are decoded as they are taken.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn rows(
        &self,
        rows: Option<Range<u64>>,
        batch_rows: usize,
    ) -> Result<impl Iterator<Item = Result<RecordBatch, TableError>> + Send + use<>, TableError> {
        let builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(self.bytes.clone(), self.metadata.clone());
        let mask = ProjectionMask::roots(builder.parquet_schema(), self.columns.iter().flatten().copied());
        let mut builder = builder.with_batch_size(batch_rows).with_projection(mask);
        if let Some(rows) = rows {
            let len = rows.end.saturating_sub(rows.start);
            builder = builder.with_offset(rows.start as usize).with_limit(len as usize);
        }
        let (schema, table) = (self.table.schema(), self.table);
        let mut reader = Some(contained(table, || Ok(builder.build()?))?);
        Ok(std::iter::from_fn(move || {
            perfuse_stopping::checkpoint();
            let next = contained(table, || {
                let Some(batch) = reader.as_mut().and_then(Iterator::next) else { return Ok(None) };
                as_declared(&schema, &batch?).map(Some).map_err(TableError::from)
            });
            if !matches!(next, Ok(Some(_))) {
                // After an error its state is unknown.
                reader = None;
            }
            next.transpose()
        }))
    }
}

/// Runs code of the Parquet library, which panics for some damaged files. Its errors name the table.
fn contained<R>(table: &TableSpec, work: impl FnOnce() -> Result<R, TableError>) -> Result<R, TableError> {
    let named = |message: String| TableError::Table(table.name, message);
    match perfuse_stopping::contain(work) {
        Ok(Err(TableError::Parquet(error))) => Err(named(error.to_string())),
        Ok(result) => result,
        Err(message) => Err(named(format!("it cannot be decoded: {message}"))),
    }
}

/// The columns of a table in their order; null for those that the file has not.
fn as_declared(schema: &SchemaRef, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let column = |name: &String, kind: &DataType| -> ArrayRef {
        batch.column_by_name(name).map_or_else(|| new_null_array(kind, batch.num_rows()), Arc::clone)
    };
    let columns = schema.fields().iter().map(|field| column(field.name(), field.data_type())).collect();
    RecordBatch::try_new(Arc::clone(schema), columns)
}
