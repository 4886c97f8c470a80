use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use perfuse_tables::modules;

use super::findings::Finding;
use super::map::Function;
use super::map_file::{MapFile, Names};
use crate::symbolize::{SymbolFrame, Symbolizer};

/// The objects that functions of a log are of, and the names of these functions.
pub(super) struct NamedObjects<'a>(BTreeMap<u8, NamedObject<'a>>);

struct NamedObject<'a> {
    file: &'a MapFile,
    module_id: u32,
    /// By id.
    functions: Vec<Function>,
    names: Names,
}

/// A function that a log may mean.
#[derive(Clone, Copy)]
pub(super) struct NamedFunction<'a> {
    pub(super) module_id: u32,
    pub(super) id: u32,
    pub(super) file: &'a MapFile,
    /// `None` where the file has no name for it.
    pub(super) frame: Option<&'a SymbolFrame>,
}

impl<'a> NamedObjects<'a> {
    /// Looks up functions, each once however often it is given. Modules get keys from `first_module_id` on.
    pub(super) fn new(
        functions: impl Iterator<Item = (u8, &'a MapFile, &'a Function)>,
        first_module_id: u32,
        symbolizer: &Symbolizer,
    ) -> Self {
        let mut objects: BTreeMap<u8, NamedObject<'a>> = BTreeMap::new();
        for (number, file, function) in functions {
            let new = || NamedObject { file, module_id: 0, functions: Vec::new(), names: Names::default() };
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

    /// What has no name, and why, by file.
    pub(super) fn findings(&self) -> impl Iterator<Item = (String, Finding)> + '_ {
        self.0.values().filter_map(|object| Some((object.file.display(), object.names.finding()?)))
    }
}

impl NamedFunction<'_> {
    /// The name for people; where there is none, what is known of it.
    pub(super) fn name(&self) -> String {
        self.frame.map_or_else(
            || format!("function {} of {}", self.id, self.file.display()),
            |frame| frame.name.to_string(),
        )
    }

    /// The name as the file has it.
    pub(super) fn linkage_name(&self) -> String {
        let raw = self.frame.map(|frame| frame.linkage_name.as_ref().unwrap_or(&frame.name));
        raw.map_or_else(|| self.name(), ToString::to_string)
    }
}
