//! Selected rows of any table that recordings fill, and their number.

use arrow_array::RecordBatch;
use perfuse_engine::calls::Selection;
use perfuse_engine::handles::{HandleKind, HandleSite, handles};
use perfuse_engine::selected::{RowFilter, count_by_word_and_key};
use perfuse_formats::TableRequest;
use perfuse_tables::TableSpec;
use perfuse_tables::access::ColumnError;

use crate::profile::Profile;
use crate::recordings::table_request;

/// Selected rows of a table.
#[derive(Clone, Debug)]
pub struct Rows {
    /// The table.
    pub table: &'static TableSpec,
    /// Which of its rows.
    pub filter: RowFilter,
}

impl Rows {
    /// Rows of a table by name; `time` and `thread` are the columns that the selection is about.
    ///
    /// # Errors
    /// When there is no such table or column.
    pub fn select(
        table: &str,
        selection: Selection,
        time: &str,
        thread: &str,
        kinds: Option<Vec<String>>,
    ) -> Result<Self, String> {
        let table = perfuse_tables::table(table).ok_or_else(|| format!("no table {table}"))?;
        let mut rows = Self { table, filter: RowFilter { selection, time: "", thread: "", kinds } };
        if rows.filter.selection.time_ns.is_some() {
            rows.filter.time = rows.column(time)?.1;
        }
        if rows.filter.selection.threads.is_some() {
            rows.filter.thread = rows.column(thread)?.1;
        }
        Ok(rows)
    }

    /// Index and name of a column.
    ///
    /// # Errors
    /// When the table has no such column.
    pub fn column(&self, name: &str) -> Result<(usize, &'static str), String> {
        let found = self.table.columns.iter().enumerate().find(|(_, column)| column.name == name);
        let found = found.map(|(at, column)| (at, column.name));
        found.ok_or_else(|| format!("no column {name} in {}", self.table.name))
    }
}

/// Columns of a table, by index.
pub type Columns = Vec<usize>;

impl Profile {
    /// Rows that recordings fill; `slices` contains no calls.
    fn recorded_rows(
        &self,
        table: &'static str,
        request: TableRequest,
    ) -> Result<impl Iterator<Item = RecordBatch> + Send + 'static, ColumnError> {
        self.settle_keys()?;
        Ok(self.recording_set().rows(table, request))
    }

    /// Number of rows of a table, where all recordings that fill it have it without making the table.
    fn num_recorded_rows(&self, table: &str) -> Option<u64> {
        let filling = self.recordings().filter(|recording| recording.fills(table));
        filling.map(|recording| recording.num_rows(table)).sum()
    }

    /// Columns of selected rows, made on demand. Keys of stacks are those of [`Profile::stacks_of`].
    ///
    /// # Errors
    /// When a recording's table is not as declared.
    pub fn selected_rows(
        &self,
        Rows { table, filter }: Rows,
        columns: Columns,
    ) -> Result<impl Iterator<Item = Result<RecordBatch, ColumnError>> + Send + 'static, ColumnError> {
        let mut requested = columns.iter().filter_map(|at| table.columns.get(*at));
        let with_stacks = requested.any(|column| column.name.ends_with("stack_id"));
        let batches = self.recorded_rows(table.name, table_request(table.name, with_stacks))?;
        Ok(batches.map(move |batch| filter.take(&batch, &columns)))
    }

    /// Number of selected rows.
    ///
    /// # Errors
    /// When a recording's table is not as declared.
    pub fn count_rows(&self, Rows { table, filter }: &Rows) -> Result<u64, ColumnError> {
        let is_whole = filter.selection.threads.is_none() && filter.selection.time_ns.is_none();
        if is_whole
            && filter.kinds.is_none()
            && let Some(num_rows) = self.num_recorded_rows(table.name)
        {
            return Ok(num_rows);
        }
        self.recorded_rows(table.name, table_request(table.name, false))?
            .map(|batch| filter.count(&batch))
            .sum()
    }

    /// Number of selected rows by the values of two columns: `(word, key, count)`.
    ///
    /// # Errors
    /// When a recording's table is not as declared.
    pub fn row_counts(
        &self,
        Rows { table, filter }: &Rows,
        word: &'static str,
        key: &'static str,
    ) -> Result<Vec<(String, Option<u32>, u64)>, ColumnError> {
        let request = table_request(table.name, key.ends_with("stack_id"));
        count_by_word_and_key(self.recorded_rows(table.name, request)?, filter, word, key)
    }

    /// Sums of handles created or destroyed by some threads in a time range: by kind, and `with_stacks` by kind and stack.
    ///
    /// # Errors
    /// When a recording's table is not as declared.
    pub fn handle_sums(
        &self,
        selection: &Selection,
        with_stacks: bool,
    ) -> Result<(Vec<HandleKind>, Vec<HandleSite>), ColumnError> {
        handles(self.recorded_rows("gc_handles", table_request("gc_handles", with_stacks))?, selection)
    }
}
