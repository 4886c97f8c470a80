//! Declarations of tables: their columns, Arrow schemas and builders.

use std::sync::{Arc, OnceLock};

use arrow_schema::{DataType, Field, Schema, SchemaRef};

/// A column of a common table.
#[derive(Debug)]
pub struct ColumnSpec {
    /// Name, with its unit as a suffix.
    pub name: &'static str,
    /// Arrow type.
    pub data_type: fn() -> DataType,
    /// Whether null, for "not recorded", may occur.
    pub nullable: bool,
    /// Meaning and unit. One that ends in a colon is followed by the column's words.
    pub doc: &'static str,
    /// The words the column has, each with its meaning; none where it has any values.
    pub words: fn() -> Vec<(&'static str, &'static str)>,
}

impl ColumnSpec {
    /// The documentation of the column; one that ends in a colon is continued by the words of the column.
    #[must_use]
    pub fn meaning(&self) -> String {
        let doc = self.doc.trim();
        if !doc.ends_with(':') {
            return doc.to_owned();
        }
        let words = (self.words)();
        let phrases = words.iter().map(|(word, meaning)| format!("`{word}` ({})", phrase(meaning)));
        format!("{doc} {}.", phrases.collect::<Vec<_>>().join(", "))
    }
}

/// A sentence as a phrase inside another sentence.
fn phrase(sentence: &str) -> String {
    let mut letters = sentence.trim_end_matches('.').chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// A common table.
#[derive(Debug)]
pub struct TableSpec {
    /// Plural snake_case name.
    pub name: &'static str,
    /// Description of a row.
    pub doc: &'static str,
    /// Columns, in order.
    pub columns: &'static [ColumnSpec],
    /// The schema, created by the first call of `schema`.
    pub(crate) schema: OnceLock<SchemaRef>,
}

impl TableSpec {
    /// The Arrow schema of this table.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        let make = || {
            let fields = self.columns.iter().map(|c| Field::new(c.name, (c.data_type)(), c.nullable));
            Arc::new(Schema::new(fields.collect::<Vec<_>>()))
        };
        Arc::clone(self.schema.get_or_init(make))
    }
}

/// Declares a table: a module with its [`TableSpec`] and its `Builder`.
macro_rules! table {
    ($(#[doc = $doc:literal])+ $table:ident { $($(#[doc = $cdoc:literal])+ $column:ident: $kind:ty,)+ }) => {
        #[doc = concat!("Table `", stringify!($table), "`:", $($doc),+)]
        pub mod $table {
            #[allow(unused_imports, reason = "each table names the column types it needs")]
            use crate::column::{Binary, Choice, Column, List, Opt, Str};

            /// The declaration.
            pub static SPEC: crate::TableSpec = crate::TableSpec {
                name: stringify!($table),
                doc: concat!($($doc),+),
                columns: &[$(crate::ColumnSpec {
                    name: stringify!($column),
                    data_type: <$kind as Column>::data_type,
                    nullable: <$kind as Column>::NULLABLE,
                    doc: concat!($($cdoc),+),
                    words: <$kind as Column>::words,
                }),+],
                schema: std::sync::OnceLock::new(),
            };

            /// A batch of columns in declared order and of the declared types.
            ///
            /// # Panics
            /// When order, types or lengths differ: the caller created the columns.
            #[must_use]
            pub fn batch(columns: Vec<arrow_array::ArrayRef>) -> arrow_array::RecordBatch {
                match arrow_array::RecordBatch::try_new(SPEC.schema(), columns) {
                    Ok(batch) => batch,
                    Err(error) => unreachable!("{}: {error}", SPEC.name),
                }
            }

            /// Collects rows for an Arrow batch.
            #[derive(Debug, Default)]
            pub struct Builder {
                $($column: <$kind as Column>::Builder,)+
                len: usize,
            }

            #[allow(clippy::too_many_arguments, reason = "one argument a column")]
            impl Builder {
                /// An empty table.
                #[must_use]
                pub fn new() -> Self {
                    Self::default()
                }

                /// Appends a row, columns in declared order.
                #[inline]
                pub fn push(&mut self, $($column: <$kind as Column>::Item<'_>),+) {
                    perfuse_stopping::checkpoint_at(self.len);
                    $(<$kind as Column>::push(&mut self.$column, $column);)+
                    self.len += 1;
                }

                /// Number of rows.
                #[must_use]
                pub fn len(&self) -> usize {
                    self.len
                }

                /// Whether there are no rows.
                #[must_use]
                pub fn is_empty(&self) -> bool {
                    self.len == 0
                }

                /// Returns the rows as Arrow and empties the builder.
                pub fn finish(&mut self) -> arrow_array::RecordBatch {
                    self.len = 0;
                    // Columns and schema are generated from one declaration, and `push` extends all columns.
                    batch(vec![$(<$kind as Column>::finish(&mut self.$column)),+])
                }
            }
        }
    };
}
pub(crate) use table;
