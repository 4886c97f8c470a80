//! Saved profiles: a zip file with the tables of a profile as Parquet files, the recordings it was made of as compressed copies,
//! and a manifest. `docs/reference/pack.md` describes it.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::panic
    )
)]

pub mod container;
pub mod copies;
mod encodings;
pub mod parquet_file;
mod row_groups;
pub mod rules;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use perfuse_recording::{
    BatchStream, Capabilities, ClockPolicy, Format, Placement, Position, Recording, Role, Sniff, Source,
    Summary, TableRequest,
};
use perfuse_tables::{BATCH_ROWS, Offsets, RESOLVED_TABLES, TABLES, TableSpec};
use perfuse_wire::{Diagnostics, ErrorKind, ParseError, RecordView, Value};

use container::{MANIFEST, Member};
use parquet_file::{ParquetTable, TableError};

/// The format's entry in the registry.
pub static FORMAT: Format = Format {
    name: "saved",
    title: "perfuse saved profile",
    about: "what perfuse pack writes: a profile with all names, lines and stacks, to be opened on any machine",
    role: Role::SavedProfile,
    report: "profile",
    clock: ClockPolicy::TIMELESS,
    process_field: None,
    files: &["*.perfuse"],
    directory: None,
    capabilities: Capabilities { writer: false, repair: false },
    sniff: |head| Sniff::by_magic(container::begins(head)),
    open: |source| Ok(Arc::new(SavedProfile::open(source)?)),
    refused: Some(
        "copy the file again, or make it again of its recordings: perfuse pack FILES -o OUT.perfuse",
    ),
    rules: rules::RULES,
    layouts: &[],
    tables: &[],
};

/// Largest manifest.
const MAX_MANIFEST_BYTES: usize = 16 << 20;

/// An open saved profile.
pub struct SavedProfile {
    source: Arc<Source>,
    members: Vec<Member>,
}

impl SavedProfile {
    /// Reads the directory.
    ///
    /// # Errors
    /// Where the file is cut, or is not a zip file as perfuse writes it.
    pub fn open(source: Arc<Source>) -> Result<Self, ParseError> {
        let members = container::members(&source)?;
        let manifest = members.iter().find(|member| member.name == MANIFEST);
        let manifest = manifest.filter(|member| member.range.len() <= MAX_MANIFEST_BYTES);
        if manifest.is_none() {
            let expected = "a manifest.json of at most 16 MiB";
            return Err(ParseError::new(ErrorKind::Invalid { value: 0, expected }, 0, "manifest"));
        }
        Ok(Self { source, members })
    }

    /// All members, in the order of the file.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// A member by name.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name == name)
    }

    /// The bytes of a member; `None` where there is none of the name, or its checksum is wrong.
    #[must_use]
    pub fn bytes(&self, name: &str) -> Option<&[u8]> {
        let member = self.member(name)?;
        let bytes = self.source.get(member.range.clone())?;
        (crc(bytes) == member.crc).then_some(bytes)
    }

    /// A common table; `None` where the profile has no rows of it. Of a large one only the footer is read.
    ///
    /// # Errors
    /// Where the bytes that were read are damaged, or are not that table.
    pub fn parquet(&self, table: &str) -> Result<Option<ParquetTable>, TableError> {
        let Some(spec) = perfuse_tables::table(table) else { return Ok(None) };
        let Some(member) = self.member(&member_name(spec.name)) else { return Ok(None) };
        ParquetTable::open(spec, &self.source, member.range.clone(), member.crc).map(Some)
    }

    /// One of [`RESOLVED_TABLES`]; `None` where the file has not got it.
    ///
    /// # Errors
    /// Where the bytes that were read are damaged, or are not that table.
    pub fn resolved_table(&self, spec: &'static TableSpec) -> Result<Option<ParquetTable>, TableError> {
        let Some(member) = self.member(&resolved_member_name(spec.name)) else { return Ok(None) };
        ParquetTable::open(spec, &self.source, member.range.clone(), member.crc).map(Some)
    }

    /// Some rows of a table as one batch.
    ///
    /// # Errors
    /// Where its bytes are damaged, or it has fewer rows.
    pub fn batch(&self, spec: &'static TableSpec, rows: Range<u64>) -> Result<RecordBatch, TableError> {
        if rows.is_empty() {
            return Ok(RecordBatch::new_empty(spec.schema()));
        }
        let missing = || TableError::Table(spec.name, "rows are missing".to_owned());
        let opened =
            self.parquet(spec.name)?.filter(|opened| rows.end <= opened.num_rows).ok_or_else(missing)?;
        let num_rows = rows.end.saturating_sub(rows.start);
        let batch = opened.rows(Some(rows), num_rows as usize)?.next().ok_or_else(missing)??;
        if batch.num_rows() as u64 == num_rows { Ok(batch) } else { Err(missing()) }
    }
}

/// Name of the member that contains a table.
#[must_use]
pub fn member_name(table: &str) -> String {
    format!("tables/{table}.parquet")
}

/// Name of the member that contains one of [`RESOLVED_TABLES`].
fn resolved_member_name(table: &str) -> String {
    format!("resolved/{table}.parquet")
}

/// CRC-32 as in zip files.
#[must_use]
pub fn crc(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

impl Recording for SavedProfile {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn source(&self) -> &Arc<Source> {
        &self.source
    }

    fn summary(&self) -> Summary {
        let count = |prefix: &str| {
            self.members.iter().filter(|member| member.name.starts_with(prefix)).count() as u64
        };
        let counts = [
            ("table", count("tables/")),
            ("recording", count("inputs/")),
            ("member", self.members.len() as u64),
        ];
        Summary { version: Some("1".to_owned()), ..Summary::of_counts(&counts) }
    }

    fn read_record<'a>(
        &'a self,
        at: &mut Position,
        _wanted: &dyn Fn(&str) -> bool,
    ) -> Option<RecordView<'a>> {
        let member = self.members.get(usize::try_from(at.index).ok()?)?;
        let index = at.index;
        let offset = member.header_offset as u64;
        at.index = index.saturating_add(1);
        at.offset = member.range.end as u64;
        let size = at.offset.saturating_sub(offset);
        let fields = vec![
            ("name", Value::Text(member.name.as_str().into())),
            ("size_bytes", Value::Unsigned(member.range.len() as u64)),
            ("crc32", Value::Hex(member.crc.into())),
        ];
        Some(RecordView { index, offset, size, name: "member".into(), timestamp: None, fields })
    }

    fn check(&self, sink: &mut Diagnostics) {
        for (index, member) in (0u64..).zip(&self.members) {
            perfuse_stopping::checkpoint();
            let offset = member.header_offset as u64;
            if self.bytes(&member.name).is_none() {
                let message = || format!("the bytes of {} do not have their checksum", member.name).into();
                sink.push(&rules::MEMBER_CHECKSUM, offset, Some(index), "crc32", message);
            }
        }
        let tables = TABLES.iter().map(|table| (member_name(table.name), *table));
        let resolved = RESOLVED_TABLES.iter().map(|table| (resolved_member_name(table.name), *table));
        for (name, table) in tables.chain(resolved) {
            let Some(member) = self.member(&name).filter(|member| self.bytes(&member.name).is_some()) else {
                continue;
            };
            let offset = member.header_offset as u64;
            match self.num_readable_rows(table, member) {
                Err(error) => {
                    sink.push(&rules::NOT_A_TABLE, offset, None, "", || {
                        format!("{}: {error}", member.name).into()
                    });
                }
                Ok(0) => {}
                Ok(unknown) => {
                    let message =
                        || format!("{} has {unknown} columns that this version does not know", member.name);
                    sink.push(&rules::UNKNOWN_COLUMN, offset, None, "", || message().into());
                }
            }
        }
    }

    fn findings(&self, _sink: &mut Diagnostics) {}

    fn extent(&self) -> Offsets {
        Offsets { source: 1, ..Offsets::default() }
    }

    fn fills(&self, table: &str) -> bool {
        self.member(&member_name(table)).is_some()
    }

    fn table(&self, _name: &str, _placement: &Placement, _request: &TableRequest) -> Option<BatchStream> {
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl SavedProfile {
    /// Reads all rows of a table. Returns the number of its columns that this version does not know.
    fn num_readable_rows(&self, table: &'static TableSpec, member: &Member) -> Result<usize, TableError> {
        let opened = ParquetTable::open(table, &self.source, member.range.clone(), member.crc)?;
        let mut num_rows = 0u64;
        for batch in opened.rows(None, BATCH_ROWS)? {
            num_rows = num_rows.saturating_add(batch?.num_rows() as u64);
        }
        if num_rows != opened.num_rows {
            return Err(TableError::Table(
                table.name,
                "the number of rows is not that of its footer".to_owned(),
            ));
        }
        Ok(opened.num_unknown_columns)
    }
}
