//! Lines of functions that recordings name with their files only.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::builder::UInt32Builder;
use arrow_array::types::UInt32Type;
use arrow_array::{ArrayRef, RecordBatch};
use perfuse_engine::join::{DescribeName, MapFunction};
use perfuse_formats::jitdump::names::{self, ParsedName};
use perfuse_tables::access::{nullable, numbers, text};
use rustc_hash::FxHashMap;

/// Lines at which functions are defined, by file and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefinedLines {
    by_file: FxHashMap<String, FxHashMap<String, u32>>,
}

impl DefinedLines {
    /// Of `(name, line)` by file; lines count from 1.
    #[must_use]
    pub fn new(files: impl IntoIterator<Item = (String, Vec<(String, u32)>)>) -> Self {
        let lines = |lines: Vec<(String, u32)>| lines.into_iter().filter(|(_, line)| *line > 0).collect();
        Self { by_file: files.into_iter().map(|(file, of_file)| (file, lines(of_file))).collect() }
    }

    /// The line of a function; `None` where it is not known.
    #[must_use]
    pub fn line(&self, path: &str, name: &str) -> Option<u32> {
        self.by_file.get(path)?.get(name).copied()
    }

    /// The files, each with its names and lines.
    pub fn files(&self) -> impl Iterator<Item = (&str, impl Iterator<Item = (&str, u32)>)> {
        self.by_file
            .iter()
            .map(|(file, lines)| (file.as_str(), lines.iter().map(|(name, &line)| (name.as_str(), line))))
    }

    /// A batch of table `functions` with lines where it has a file and no line.
    pub(crate) fn with_lines(&self, functions: RecordBatch) -> RecordBatch {
        self.fill(&functions).unwrap_or(functions)
    }

    fn fill(&self, functions: &RecordBatch) -> Option<RecordBatch> {
        let names = text(functions, "name").ok()?;
        let paths = text(functions, "path").ok()?;
        let lines = numbers::<UInt32Type>(functions, "line").ok()?;
        let mut filled = UInt32Builder::with_capacity(functions.num_rows());
        for row in 0..functions.num_rows() {
            let defined = || self.line(paths.get(row)?, names.get(row)?);
            filled.append_option(nullable(lines, row).or_else(defined));
        }
        let at = functions.schema().index_of("line").ok()?;
        let mut columns: Vec<ArrayRef> = functions.columns().to_vec();
        *columns.get_mut(at)? = Arc::new(filled.finish());
        RecordBatch::try_new(functions.schema(), columns).ok()
    }
}

/// What names of functions in perf maps state. Those of CPython are taken apart as in its dumps; in those of other runtimes
/// stays what no column has, such as a tier. Lines are those of recordings in the directory of the map.
pub(crate) fn describe_map_names(by_directory: FxHashMap<PathBuf, Arc<DefinedLines>>) -> Box<DescribeName> {
    Box::new(move |directory, raw| describe(raw, by_directory.get(directory).map(|found| &**found)))
}

fn describe(raw: &str, definitions: Option<&DefinedLines>) -> MapFunction {
    let linkage_name = raw.to_owned();
    let Some(ParsedName { function, path, .. }) = names::cpython(raw) else {
        return MapFunction { name: linkage_name.clone(), linkage_name, path: None, line: None };
    };
    let line = path.and_then(|path| definitions?.line(path, &function));
    MapFunction { linkage_name, name: function.into_owned(), path: path.map(str::to_owned), line }
}

#[cfg(test)]
mod tests {
    use arrow_array::types::UInt32Type;
    use perfuse_tables::access::{nullable, numbers};
    use perfuse_tables::functions;

    use super::{DefinedLines, describe};

    #[test]
    fn only_functions_of_a_file_without_a_line_get_one() {
        let lines = [("f", 7), ("g", 8), ("nothing", 0)].map(|(name, line)| (name.to_owned(), line));
        let definitions = DefinedLines::new([("/a.py".to_owned(), lines.to_vec())]);
        let mut table = functions::Builder::new();
        for (id, name, path, line) in [
            (0, "f", Some("/a.py"), None),
            (1, "g", Some("/a.py"), Some(3)),
            (2, "f", Some("/b.py"), None),
            (3, "f", None, None),
            (4, "nothing", Some("/a.py"), None),
        ] {
            table.push(id, None, name, name, None, path, line, Some(5));
        }
        let filled = definitions.with_lines(table.finish());
        let lines = numbers::<UInt32Type>(&filled, "line").expect("the column");
        let found: Vec<_> = (0..lines.len()).map(|row| nullable(lines, row)).collect();
        assert_eq!(found, [Some(7), Some(3), None, None, None]);
        let columns = numbers::<UInt32Type>(&filled, "column").expect("the column");
        assert_eq!(nullable(columns, 0), Some(5));
    }

    #[test]
    fn names_of_cpython_in_maps_are_taken_apart_and_others_stay() {
        let definitions = DefinedLines::new([("/a.py".to_owned(), vec![("C.f".to_owned(), 7)])]);
        let parts = |raw: &str, definitions| {
            let found = describe(raw, definitions);
            assert_eq!(found.linkage_name, raw);
            (found.name, found.path, found.line)
        };
        let (name, path) = ("C.f".to_owned(), Some("/a.py".to_owned()));
        assert_eq!(parts("py::C.f:/a.py", None), (name.clone(), path.clone(), None));
        assert_eq!(parts("py::C.f:/a.py", Some(&definitions)), (name, path, Some(7)));
        let compiled = "JS:*f /a.py:3:1";
        assert_eq!(parts(compiled, Some(&definitions)), (compiled.to_owned(), None, None));
    }
}
