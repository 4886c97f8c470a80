//! Common tables as Parquet files: written with the schema of the table, read only with that schema.

use std::fmt;
use std::io::Write;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, new_null_array};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, RowGroupMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnPath;
use perfuse_recording::Source;
use perfuse_tables::TableSpec;

use crate::encodings::ColumnEncoding;
use crate::row_groups::{DAMAGED, ROW_GROUP_SUMS, Summing, VerifiedBytes, stated_sums};

/// Rows of a row group, the part of a table that can be read alone. Few where inputs of a fuzzer are to have several.
pub const ROW_GROUP_ROWS: usize = if cfg!(fuzzing) { 8 } else { 122_880 };
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

/// Writes a table in row groups of `group_rows` rows, usually [`ROW_GROUP_ROWS`]. Returns its number of rows.
///
/// # Errors
/// Those of the batches, of the output and of the Parquet library.
pub fn write(
    table: &'static TableSpec,
    schema: SchemaRef,
    group_rows: usize,
    mut batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
    out: impl Write + Send,
) -> Result<u64, TableError> {
    let begin: Vec<_> = batches.by_ref().take(2).collect();
    let fits = |batch: &RecordBatch| batch.num_rows() <= group_rows;
    let is_small = begin.len() < 2 && begin.iter().flatten().all(fits);
    let level = ZstdLevel::try_new(if is_small { SMALL_LEVEL } else { LEVEL })?;
    let fact = |key: &str, value: &str| KeyValue::new(key.to_owned(), value.to_owned());
    let mut properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_compression(Compression::ZSTD(level))
        .set_max_row_group_row_count(None)
        .set_statistics_enabled(if is_small { EnabledStatistics::None } else { EnabledStatistics::Chunk })
        .set_offset_index_disabled(true)
        .set_created_by("perfuse".to_owned())
        .set_key_value_metadata(Some(vec![
            fact("perfuse_table", table.name),
            fact("perfuse_schema_version", "1"),
        ]));
    for field in schema.fields() {
        let (name, kind) = (field.name().as_str(), field.data_type());
        if !kind.is_numeric() && !is_small {
            // Texts are not searched by their order.
            let path = ColumnPath::from(name);
            properties = properties.set_column_statistics_enabled(path, EnabledStatistics::None);
        }
        let encoding = match begin.first() {
            Some(Ok(batch)) if is_small => ColumnEncoding::smallest(batch, field)?,
            _ => ColumnEncoding::of_type(kind),
        };
        properties = encoding.set(properties, name);
    }
    // Types of columns follow from the declaration of the table and from Parquet's own.
    let options =
        ArrowWriterOptions::new().with_properties(properties.build()).with_skip_arrow_metadata(true);
    let mut writer = ArrowWriter::try_new_with_options(Summing::new(out), schema, options)?;
    let (mut num_rows, mut sums, mut in_group) = (0u64, Vec::new(), 0usize);
    for batch in begin.into_iter().chain(batches) {
        perfuse_stopping::checkpoint();
        let batch = batch.map_err(|error| TableError::Table(table.name, error.to_string()))?;
        num_rows = num_rows.saturating_add(batch.num_rows() as u64);
        let mut at = 0usize;
        while at < batch.num_rows() {
            let len = group_rows.max(1).saturating_sub(in_group).min(batch.num_rows().saturating_sub(at));
            writer.write(&batch.slice(at, len))?;
            (at, in_group) = (at.saturating_add(len), in_group.saturating_add(len));
            if in_group >= group_rows {
                sums.push(end_row_group(&mut writer)?);
                in_group = 0;
            }
        }
    }
    if in_group > 0 {
        sums.push(end_row_group(&mut writer)?);
    }
    if sums.len() > 1 {
        // The checksum of the whole is enough for one.
        let text: Vec<String> = sums.iter().map(|sum| format!("{sum:08x}")).collect();
        writer.append_key_value_metadata(fact(ROW_GROUP_SUMS, &text.join(" ")));
    }
    writer.close()?;
    Ok(num_rows)
}

/// Ends a row group. Returns the CRC-32 of its bytes.
fn end_row_group<W: Write + Send>(writer: &mut ArrowWriter<Summing<W>>) -> Result<u32, TableError> {
    writer.flush()?;
    writer.sync().map_err(|error| ParquetError::External(Box::new(error)))?;
    Ok(writer.inner_mut().take_sum())
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
    bytes: VerifiedBytes,
    metadata: ArrowReaderMetadata,
    /// For each column of the table its column in the file; null where the file was written before the column was declared.
    columns: Vec<Option<usize>>,
    /// Columns of the file that this version does not know.
    pub num_unknown_columns: usize,
    /// Number of rows, by the footer.
    pub num_rows: u64,
}

impl ParquetTable {
    /// Reads the footer. `crc` is the CRC-32 of all bytes. Where the footer states that of each row group, these are read when
    /// their rows are; else all bytes are read now.
    ///
    /// # Errors
    /// Where it is damaged, or states other types, or sizes that no such file has.
    pub fn open(
        table: &'static TableSpec,
        source: &Arc<Source>,
        range: Range<usize>,
        crc: u32,
    ) -> Result<Self, TableError> {
        let wrong = |message: String| TableError::Table(table.name, message);
        let size = range.len() as u64;
        let bytes = Bytes::from_owner(OwnedRange(Arc::clone(source), range));
        let opened = contained(table, || {
            let metadata = load(table, &bytes)?;
            let sums = stated_sums(metadata.metadata(), bytes.len());
            Ok((metadata, sums))
        });
        let sums = opened.as_ref().map_or(None, |(_, sums)| sums.as_deref());
        let Some(bytes) = VerifiedBytes::new(bytes, sums, crc) else {
            return Err(wrong(DAMAGED.to_owned()));
        };
        let (metadata, _) = opened?;
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
            if at.is_none() && !field.is_nullable() {
                return Err(wrong(format!("column {} is missing", field.name())));
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
        let mut builder = self.builder(batch_rows);
        if let Some(rows) = rows {
            let (groups, offset) = self.groups_with(&rows);
            let len = rows.end.saturating_sub(rows.start);
            builder = builder.with_row_groups(groups).with_offset(offset as usize).with_limit(len as usize);
        }
        self.batches(builder)
    }

    /// The rows of those row groups that may have values of a column in a range: all rows that have them, and others.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn rows_near(
        &self,
        column: &str,
        values: &RangeInclusive<i64>,
        batch_rows: usize,
    ) -> Result<impl Iterator<Item = Result<RecordBatch, TableError>> + Send + use<>, TableError> {
        self.rows_of_groups(self.groups_near(column, values), batch_rows)
    }

    /// Numbers of the row groups that may have values of a column in a range.
    #[must_use]
    pub fn groups_near(&self, column: &str, values: &RangeInclusive<i64>) -> Vec<usize> {
        let groups = self.metadata.metadata().row_groups().iter();
        // Parquet has unsigned integers in the same statistics.
        let is_signed =
            self.table.schema().field_with_name(column).is_ok_and(|one| *one.data_type() == DataType::Int64);
        let may_have = |group: &RowGroupMetaData| {
            let known = least_and_greatest(group, column).filter(|_| is_signed);
            known.is_none_or(|(least, greatest)| least <= *values.end() && greatest >= *values.start())
        };
        groups.enumerate().filter(|(_, group)| may_have(group)).map(|(number, _)| number).collect()
    }

    /// The rows of some row groups.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn rows_of_groups(
        &self,
        groups: Vec<usize>,
        batch_rows: usize,
    ) -> Result<impl Iterator<Item = Result<RecordBatch, TableError>> + Send + use<>, TableError> {
        self.batches(self.builder(batch_rows).with_row_groups(groups))
    }

    /// Number of the first row after each row group.
    #[must_use]
    pub fn group_ends(&self) -> Vec<u64> {
        let groups = self.metadata.metadata().row_groups().iter();
        let mut end = 0u64;
        let ends = groups.map(|group| {
            end = end.saturating_add(u64::try_from(group.num_rows()).unwrap_or(0));
            end
        });
        ends.collect()
    }

    /// Numbers of the row groups with some rows, and the number of rows before these in the first one.
    fn groups_with(&self, rows: &Range<u64>) -> (Vec<usize>, u64) {
        let (mut groups, mut offset, mut start) = (Vec::new(), 0, 0u64);
        for (number, group) in self.metadata.metadata().row_groups().iter().enumerate() {
            let end = start.saturating_add(u64::try_from(group.num_rows()).unwrap_or(0));
            if start < rows.end && rows.start < end {
                if groups.is_empty() {
                    offset = rows.start.saturating_sub(start);
                }
                groups.push(number);
            }
            start = end;
        }
        (groups, offset)
    }

    fn builder(&self, batch_rows: usize) -> ParquetRecordBatchReaderBuilder<VerifiedBytes> {
        let builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(self.bytes.clone(), self.metadata.clone());
        let mask = ProjectionMask::roots(builder.parquet_schema(), self.columns.iter().flatten().copied());
        builder.with_batch_size(batch_rows).with_projection(mask)
    }

    fn batches(
        &self,
        builder: ParquetRecordBatchReaderBuilder<VerifiedBytes>,
    ) -> Result<impl Iterator<Item = Result<RecordBatch, TableError>> + Send + use<>, TableError> {
        let (schema, table, bytes) = (self.table.schema(), self.table, self.bytes.clone());
        // The Parquet library wraps the error of bytes that it cannot have.
        let plain = move |error: TableError| match bytes.is_damaged() {
            true => TableError::Table(table.name, DAMAGED.to_owned()),
            false => error,
        };
        let mut reader = Some(contained(table, || Ok(builder.build()?)).map_err(&plain)?);
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
            next.map_err(&plain).transpose()
        }))
    }
}

/// Reads the footer, with the types that are declared for the columns of the table.
fn load(table: &'static TableSpec, bytes: &Bytes) -> Result<ArrowReaderMetadata, TableError> {
    // The Arrow schema that files of other programs contain is not followed.
    let plain = ArrowReaderMetadata::load(bytes, ArrowReaderOptions::new().with_skip_arrow_metadata(true))?;
    let declared = table.schema();
    let as_declared = |field: &FieldRef| match declared.field_with_name(field.name()) {
        Ok(other) => {
            Arc::new(Field::new(field.name().as_str(), other.data_type().clone(), field.is_nullable()))
        }
        Err(_) => Arc::clone(field),
    };
    let schema = Schema::new(plain.schema().fields().iter().map(as_declared).collect::<Vec<_>>());
    let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
    Ok(ArrowReaderMetadata::try_new(Arc::clone(plain.metadata()), options)?)
}

/// The least and the greatest value of a column in a row group, where the footer states them.
fn least_and_greatest(group: &RowGroupMetaData, column: &str) -> Option<(i64, i64)> {
    let chunk = group.columns().iter().find(|chunk| {
        let path = chunk.column_path();
        path.parts().len() == 1 && path.parts().iter().all(|part| part == column)
    })?;
    match chunk.statistics()? {
        Statistics::Int64(found) => Some((*found.min_opt()?, *found.max_opt()?)),
        _ => None,
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
