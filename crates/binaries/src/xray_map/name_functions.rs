use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{PrimitiveArray, RecordBatch};
use perfuse_tables::access::{ColumnError, Text, nullable, numbers, text};
use perfuse_tables::functions;

use super::findings::Finding;
use super::fit::Fit;
use super::map_file::MapFile;
use super::named_objects::{NamedFunction, NamedObjects};
use super::native_ids::{Candidates, NativeIds};
use super::object_maps::ObjectMaps;
use crate::symbolize::Symbolizer;

/// The functions of a log, with their names.
#[derive(Debug)]
pub struct Named {
    /// Table `functions`: the rows that were given, with `name`, `linkage_name`, `module_id`, `path`, `line` and `column` where
    /// a map has them.
    pub functions: RecordBatch,
    /// Table `modules`: one row an object that has functions among them.
    pub modules: RecordBatch,
    /// What is wrong with maps and with how they fit the log, each with the file it is about (empty where there is none).
    pub findings: Vec<(String, Finding)>,
}

/// Names the functions of a log by their native ids. Keys of modules start at `first_module_id`.
///
/// An id that stands for functions of several objects has all their names, `one | other`, and no module.
///
/// # Errors
/// When the batch is not of table `functions`.
pub fn name_functions(
    functions: &RecordBatch,
    ids: NativeIds,
    maps: &ObjectMaps,
    first_module_id: u32,
    symbolizer: &Symbolizer,
) -> Result<Named, ColumnError> {
    let rows = Rows::of(functions)?;
    let candidates = |row| Candidates::of(nullable(rows.native_ids, row)?, ids, maps);
    let candidates: Vec<Option<Candidates<'_>>> = (0..functions.num_rows()).map(candidates).collect();
    let wanted = candidates.iter().flatten().flat_map(Candidates::functions);
    let objects = NamedObjects::new(wanted, first_module_id, symbolizer);

    let mut fit = Fit::default();
    let mut table = functions::Builder::new();
    for (row, candidates) in candidates.iter().enumerate() {
        let mut found: Vec<NamedFunction<'_>> = Vec::new();
        if let Some(candidates) = candidates {
            fit.count(candidates);
            let known =
                candidates.functions().filter_map(|(object, _, function)| objects.get(object, function.id));
            found.extend(known);
        }
        rows.push(row, &found, &mut table);
    }

    let own = |file: &MapFile| {
        let (path, findings) = (file.display(), file.map().findings.clone());
        findings.into_iter().map(move |finding| (path.clone(), finding))
    };
    let mut findings: Vec<(String, Finding)> = maps.iter().flat_map(|(_, file)| own(file)).collect();
    findings.extend(fit.findings(ids, maps));
    findings.extend(objects.findings());
    Ok(Named { functions: table.finish(), modules: objects.modules(), findings })
}

/// The rows of table `functions` that were given.
struct Rows<'a> {
    function_ids: &'a PrimitiveArray<UInt32Type>,
    native_ids: &'a PrimitiveArray<UInt64Type>,
    names: Text<'a>,
    linkage_names: Text<'a>,
    module_ids: &'a PrimitiveArray<UInt32Type>,
    paths: Text<'a>,
    lines: &'a PrimitiveArray<UInt32Type>,
    columns: &'a PrimitiveArray<UInt32Type>,
}

impl<'a> Rows<'a> {
    fn of(batch: &'a RecordBatch) -> Result<Self, ColumnError> {
        Ok(Self {
            function_ids: numbers(batch, "function_id")?,
            native_ids: numbers(batch, "native_id")?,
            names: text(batch, "name")?,
            linkage_names: text(batch, "linkage_name")?,
            module_ids: numbers(batch, "module_id")?,
            paths: text(batch, "path")?,
            lines: numbers(batch, "line")?,
            columns: numbers(batch, "column")?,
        })
    }

    /// The row again, with what is known of the functions it may be.
    fn push(&self, row: usize, found: &[NamedFunction<'_>], table: &mut functions::Builder) {
        let given = self.names.get(row).unwrap_or_default();
        let (id, native_id) = (self.function_ids.value(row), nullable(self.native_ids, row));
        match found {
            [NamedFunction { module_id, frame: Some(frame), .. }] => {
                let linkage_name = frame.linkage_name.as_ref().unwrap_or(&frame.name);
                let (module_id, path) = (Some(*module_id), frame.path.as_deref());
                table.push(
                    id,
                    native_id,
                    &frame.name,
                    linkage_name,
                    module_id,
                    path,
                    frame.line,
                    frame.column,
                );
            }
            [] | [_] => table.push(
                id,
                native_id,
                given,
                self.linkage_names.get(row).unwrap_or(given),
                found.first().map(|only| only.module_id).or_else(|| nullable(self.module_ids, row)),
                self.paths.get(row),
                nullable(self.lines, row),
                nullable(self.columns, row),
            ),
            several => {
                let (name, linkage_name) =
                    (joined(several, NamedFunction::name), joined(several, NamedFunction::linkage_name));
                table.push(id, native_id, &name, &linkage_name, None, None, None, None);
            }
        }
    }
}

/// All names that are different, as `one | other`.
fn joined<'a>(functions: &[NamedFunction<'a>], name: impl Fn(&NamedFunction<'a>) -> String) -> String {
    let mut names: Vec<String> = Vec::new();
    for name in functions.iter().map(name) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(" | ")
}
