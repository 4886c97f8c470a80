//! Names the functions of a log by the maps of the objects of its process.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{PrimitiveArray, RecordBatch};
use perfuse_tables::access::{ColumnError, Text, nullable, numbers, text};
use perfuse_tables::{functions, modules};

use super::findings::{ALIASED_OBJECTS, MapFinding, UNKNOWN_FUNCTION, UNMAPPED_OBJECT};
use super::map::InstrumentedFunction;
use super::map_file::{FunctionNames, MapFile};
use crate::symbolize::{SymbolFrame, Symbolizer};

/// The functions of a log with their names.
#[derive(Debug)]
pub struct NamedFunctions {
    /// Table `functions`: the rows that were given, with `name`, `linkage_name`, `module_id`, `path`, `line` and `column` where
    /// a map has them.
    pub functions: RecordBatch,
    /// Table `modules`: one row per object that has functions among them.
    pub modules: RecordBatch,
    /// Problems of the maps, and of the log's ids and the maps, each with the path of its file (empty where there is none).
    pub findings: Vec<(String, MapFinding)>,
}

/// Names the functions of a log by their native ids. Keys of modules start at `first_module_id`.
///
/// An id that stands for functions of several objects has all their names, `one | other`, and no module.
///
/// # Errors
/// When the batch does not have the columns of table `functions`.
pub fn name_functions(
    functions: &RecordBatch,
    ids: NativeIds,
    maps: &ObjectMaps,
    first_module_id: u32,
    symbolizer: &Symbolizer,
) -> Result<NamedFunctions, ColumnError> {
    let rows = FunctionRows::new(functions)?;
    let candidates = |row| FunctionCandidates::find(nullable(rows.native_ids, row)?, ids, maps);
    let candidates: Vec<Option<FunctionCandidates<'_>>> = (0..functions.num_rows()).map(candidates).collect();
    let requested = candidates.iter().flatten().flat_map(FunctionCandidates::functions);
    let objects = NamedObjects::new(requested, first_module_id, symbolizer);

    let mut log_match = LogMatch::default();
    let mut table = functions::Builder::new();
    for (row, candidates) in candidates.iter().enumerate() {
        let mut found: Vec<NamedFunction<'_>> = Vec::new();
        if let Some(candidates) = candidates {
            log_match.count(candidates);
            let named =
                candidates.functions().filter_map(|(object, _, function)| objects.get(object, function.id));
            found.extend(named);
        }
        rows.push(row, &found, &mut table);
    }

    let own = |file: &MapFile| {
        let (path, findings) = (file.display(), file.map().findings.clone());
        findings.into_iter().map(move |finding| (path.clone(), finding))
    };
    let mut findings: Vec<(String, MapFinding)> = maps.iter().flat_map(|(_, file)| own(file)).collect();
    findings.extend(log_match.findings(ids, maps));
    findings.extend(objects.findings());
    Ok(NamedFunctions { functions: table.finish(), modules: objects.modules(), findings })
}

/// Columns of the given table `functions`.
struct FunctionRows<'a> {
    function_ids: &'a PrimitiveArray<UInt32Type>,
    native_ids: &'a PrimitiveArray<UInt64Type>,
    names: Text<'a>,
    linkage_names: Text<'a>,
    module_ids: &'a PrimitiveArray<UInt32Type>,
    paths: Text<'a>,
    lines: &'a PrimitiveArray<UInt32Type>,
    columns: &'a PrimitiveArray<UInt32Type>,
}

impl<'a> FunctionRows<'a> {
    fn new(batch: &'a RecordBatch) -> Result<Self, ColumnError> {
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

    /// Adds a row with the names of the functions that it may stand for.
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

/// All distinct names, as `one | other`.
fn joined<'a>(functions: &[NamedFunction<'a>], name: impl Fn(&NamedFunction<'a>) -> String) -> String {
    let mut names: Vec<String> = Vec::new();
    for name in functions.iter().map(name) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(" | ")
}

/// The file of each object of a process: the program is object 0, libraries follow in the order they were loaded.
#[derive(Debug, Default)]
pub struct ObjectMaps {
    files: BTreeMap<u8, MapFile>,
}

/// An object number that logs cannot represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectNumberError(pub u32);

impl ObjectMaps {
    /// No objects.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether it has no files.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Assigns a file to an object, in place of an earlier one.
    ///
    /// # Errors
    /// When the number is above 255.
    pub fn insert(&mut self, object: u32, file: MapFile) -> Result<(), ObjectNumberError> {
        self.files.insert(u8::try_from(object).map_err(|_| ObjectNumberError(object))?, file);
        Ok(())
    }

    /// The objects, by number.
    pub fn iter(&self) -> impl Iterator<Item = (u8, &MapFile)> {
        self.files.iter().map(|(&object, file)| (object, file))
    }

    pub(super) fn get(&self, object: u8) -> Option<&MapFile> {
        self.files.get(&object)
    }

    /// Whether there are no libraries, so that ids are those of the program alone.
    pub(super) fn is_program_alone(&self) -> bool {
        self.files.keys().all(|&object| object == 0)
    }
}

impl fmt::Display for ObjectNumberError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "object {} is not possible: XRay numbers objects from 0 to 255", self.0)
    }
}

impl std::error::Error for ObjectNumberError {}

/// Number of bits of a function's id in a log. With libraries, the upper 8 of all 32 are the object's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NativeIds {
    /// FDR mode: 4 bits of the object remain, so that object 16 has the ids of object 0.
    Bits28,
    /// Basic and profiling mode.
    Bits32,
}

const FUNCTION_BITS: u32 = 24;

impl NativeIds {
    /// The id in the log; `None` for numbers with more bits. A signed id, negative for objects from 128 on, is the same as its
    /// unsigned value.
    fn logged_id(self, native_id: u64) -> Option<u32> {
        let id = u32::try_from(native_id).ok();
        let id = id.or_else(|| i32::try_from(native_id as i64).ok().map(|id| id as u32))?;
        match self {
            Self::Bits28 => (id >> 28 == 0).then_some(id),
            Self::Bits32 => Some(id),
        }
    }

    /// Whether the object number `logged` of a log may stand for this object.
    pub(super) fn may_mean(self, logged: u8, object: u8) -> bool {
        match self {
            Self::Bits28 => logged == object % 16,
            Self::Bits32 => logged == object,
        }
    }
}

/// The functions that an id may stand for.
#[derive(Debug)]
pub(super) struct FunctionCandidates<'a> {
    /// The object's number in the log.
    pub(super) object: u8,
    /// The function's number in its object.
    pub(super) function: u32,
    /// The possible objects that have a map, by number.
    pub(super) objects: Vec<(u8, &'a MapFile)>,
}

impl<'a> FunctionCandidates<'a> {
    pub(super) fn find(native_id: u64, ids: NativeIds, maps: &'a ObjectMaps) -> Option<Self> {
        let id = ids.logged_id(native_id)?;
        let (object, function) = ((id >> FUNCTION_BITS) as u8, id & ((1 << FUNCTION_BITS) - 1));
        if let Some(program) = maps.get(0).filter(|_| maps.is_program_alone()) {
            // A program without libraries may have any number of functions.
            if object == 0 || program.map().function(id).is_some() {
                return Some(Self { object: 0, function: id, objects: vec![(0, program)] });
            }
        }
        let objects = maps.iter().filter(|(number, _)| ids.may_mean(object, *number)).collect();
        Some(Self { object, function, objects })
    }

    /// The possible functions.
    pub(super) fn functions(&self) -> impl Iterator<Item = (u8, &'a MapFile, &'a InstrumentedFunction)> + '_ {
        let function =
            |&(object, file): &(u8, &'a MapFile)| Some((object, file, file.map().function(self.function)?));
        self.objects.iter().filter_map(function)
    }
}

/// The objects of a log's functions, with the names of these functions.
pub(super) struct NamedObjects<'a>(BTreeMap<u8, NamedObject<'a>>);

/// An object, with the names of the functions that the log has.
struct NamedObject<'a> {
    file: &'a MapFile,
    module_id: u32,
    /// By id.
    functions: Vec<InstrumentedFunction>,
    names: FunctionNames,
}

/// A function that an id may stand for.
#[derive(Clone, Copy)]
pub(super) struct NamedFunction<'a> {
    pub(super) module_id: u32,
    pub(super) id: u32,
    pub(super) file: &'a MapFile,
    /// `None` where the file has no name for it.
    pub(super) frame: Option<&'a SymbolFrame>,
}

impl<'a> NamedObjects<'a> {
    /// Looks up functions, each once. Modules get keys from `first_module_id` on.
    pub(super) fn new(
        functions: impl Iterator<Item = (u8, &'a MapFile, &'a InstrumentedFunction)>,
        first_module_id: u32,
        symbolizer: &Symbolizer,
    ) -> Self {
        let mut objects: BTreeMap<u8, NamedObject<'a>> = BTreeMap::new();
        for (number, file, function) in functions {
            let new =
                || NamedObject { file, module_id: 0, functions: Vec::new(), names: FunctionNames::default() };
            objects.entry(number).or_insert_with(new).functions.push(function.clone());
        }
        for (object, module_id) in objects.values_mut().zip(first_module_id..) {
            object.functions.sort_unstable_by_key(|function| function.id);
            object.functions.dedup_by_key(|function| function.id);
            object.names = object.file.names(&object.functions, symbolizer);
            object.module_id = module_id;
        }
        Self(objects)
    }

    pub(super) fn get(&self, object: u8, id: u32) -> Option<NamedFunction<'_>> {
        let object = self.0.get(&object)?;
        let at = object.functions.binary_search_by_key(&id, |function| function.id).ok()?;
        let frame = object.names.functions.get(at)?.as_ref();
        Some(NamedFunction { module_id: object.module_id, id, file: object.file, frame })
    }

    /// Table `modules`.
    pub(super) fn modules(&self) -> RecordBatch {
        let mut table = modules::Builder::new();
        for object in self.0.values() {
            table.push(object.module_id, &object.file.display(), "native", object.names.build_id.as_deref());
        }
        table.finish()
    }

    /// Findings about functions without a name, by file.
    pub(super) fn findings(&self) -> impl Iterator<Item = (String, MapFinding)> + '_ {
        self.0.values().filter_map(|object| Some((object.file.display(), object.names.finding()?)))
    }
}

impl NamedFunction<'_> {
    /// The demangled name; where there is none, id and file.
    pub(super) fn name(&self) -> String {
        self.frame.map_or_else(
            || format!("function {} of {}", self.id, self.file.display()),
            |frame| frame.name.to_string(),
        )
    }

    /// The name in the file.
    pub(super) fn linkage_name(&self) -> String {
        let raw = self.frame.map(|frame| frame.linkage_name.as_ref().unwrap_or(&frame.name));
        raw.map_or_else(|| self.name(), ToString::to_string)
    }
}

/// Counts which ids of a log the maps have.
#[derive(Debug, Default)]
pub(super) struct LogMatch {
    /// Ids of objects without a map, by object.
    unmapped: BTreeMap<u8, BTreeSet<u32>>,
    /// Ids that are not in a map of their object, by object.
    unknown: BTreeMap<u8, BTreeSet<u32>>,
    /// Ids that may be functions of several objects, by the object's number in the log.
    ambiguous: BTreeMap<u8, BTreeSet<u32>>,
    /// Objects in the log.
    seen: BTreeSet<u8>,
}

impl LogMatch {
    pub(super) fn count(&mut self, candidates: &FunctionCandidates<'_>) {
        let (object, id) = (candidates.object, candidates.function);
        self.seen.insert(object);
        let ids = match (candidates.objects.len(), candidates.functions().count()) {
            (0, _) => self.unmapped.entry(object),
            (_, 0) => self.unknown.entry(object),
            (_, 1) => return,
            _ => self.ambiguous.entry(object),
        };
        ids.or_default().insert(id);
    }

    /// The ids that do not match, each with the path of its file; empty for objects without one.
    pub(super) fn findings(&self, ids: NativeIds, maps: &ObjectMaps) -> Vec<(String, MapFinding)> {
        let mut found = Vec::new();
        let mut push = |file: Option<&MapFile>, code, message| {
            let path = file.map(MapFile::display).unwrap_or_default();
            found.push((path, MapFinding { code, message, offset: None, count: 1 }));
        };
        for (object, functions) in &self.unmapped {
            let text = functions_text(functions);
            push(
                None,
                UNMAPPED_OBJECT,
                format!("no map was given for object {object}, which has {text} in the log"),
            );
        }
        for (object, functions) in &self.unknown {
            let files =
                maps.iter().filter(|(number, _)| ids.may_mean(*object, *number)).map(|(_, file)| file);
            if let Some(largest) = files.max_by_key(|file| file.map().functions.len()) {
                let most = largest.map().functions.len();
                let last = functions.last().copied().unwrap_or_default();
                let text = functions_text(functions);
                let message = format!(
                    "the map ends at id {most}, and the log has {text} beyond, up to id {last}: the file is another \
                     build, or another program"
                );
                push(Some(largest), UNKNOWN_FUNCTION, message);
            }
        }
        for &object in &self.seen {
            let possible: Vec<(u8, &MapFile)> =
                maps.iter().filter(|(number, _)| ids.may_mean(object, *number)).collect();
            let numbers: Vec<String> = possible.iter().map(|(number, _)| number.to_string()).collect();
            let file = possible.first().map(|(_, file)| *file);
            match (possible.as_slice(), self.ambiguous.get(&object)) {
                (_, Some(functions)) => {
                    let (text, objects) = (functions_text(functions), numbers.join(" and "));
                    let message = format!(
                        "{text} may be of any of objects {objects}, whose ids are the same in an FDR log"
                    );
                    push(file, ALIASED_OBJECTS, message);
                }
                ([(only, _)], None) if *only != object => {
                    let message = format!(
                        "object {only} has the ids of object {object} in an FDR log, and only of the former a map was given"
                    );
                    push(file, ALIASED_OBJECTS, message);
                }
                _ => {}
            }
        }
        found
    }
}

fn functions_text(functions: &BTreeSet<u32>) -> String {
    match functions.len() {
        1 => "1 function".to_owned(),
        many => format!("{many} functions"),
    }
}
