use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, RecordBatch, UInt8Array, UInt32Array, UInt64Array,
};
use arrow_schema::ArrowError;

use super::map::{Function, InstrumentationMap, Place, Sled};
use super::map_file::Names;
use crate::symbolize::SymbolFrame;

impl InstrumentationMap {
    /// A row a function, with `names` of all of them: `id`, `address` and `section` of its start, `name` for people and
    /// `linkage_name`, `path`, `line` and `column` of its declaration, `num_sleds`, their `kinds`, `always_instrument`,
    /// `version`.
    ///
    /// # Errors
    /// [`ArrowError`], which columns of one length never give.
    pub fn functions_batch(&self, names: &Names) -> Result<RecordBatch, ArrowError> {
        let all = || self.functions.iter();
        let sleds = |function: &Function| &self.sleds[function.sleds.clone()];
        let frames = || (0..self.functions.len()).map(|at| names.functions.get(at).and_then(Option::as_ref));
        let kinds: Vec<String> = all().map(|function| kinds(sleds(function))).collect();
        let always = |function| sleds(function).iter().all(|sled| sled.always_instrument);
        let version = |function| sleds(function).first().map(|sled| sled.version);
        RecordBatch::try_from_iter_with_nullable([
            (
                "id",
                Arc::new(UInt32Array::from_iter_values(all().map(|function| function.id))) as ArrayRef,
                false,
            ),
            ("address", addresses(all().map(|function| function.place)), true),
            ("section", self.sections(all().map(|function| function.place)), true),
            ("name", text(frames().map(|frame| Some(&*frame?.name))), true),
            ("linkage_name", text(frames().map(|frame| frame.map(linkage_name))), true),
            ("path", text(frames().map(|frame| frame?.path.as_deref())), true),
            ("line", Arc::new(frames().map(|frame| frame?.line).collect::<UInt32Array>()), true),
            ("column", Arc::new(frames().map(|frame| frame?.column).collect::<UInt32Array>()), true),
            (
                "num_sleds",
                Arc::new(all().map(|function| Some(function.sleds.len() as u32)).collect::<UInt32Array>()),
                false,
            ),
            ("kinds", text(kinds.iter().map(|kinds| Some(kinds.as_str()))), false),
            (
                "always_instrument",
                Arc::new(all().map(|function| Some(always(function))).collect::<BooleanArray>()),
                false,
            ),
            ("version", Arc::new(all().map(version).collect::<UInt8Array>()), true),
        ])
    }

    /// A row a sled, function by function: `function_id`, `address`, `function_address`, `section`, `kind`,
    /// `always_instrument`, `version`, and `offset` of its entry in the file.
    ///
    /// # Errors
    /// [`ArrowError`], which columns of one length never give.
    pub fn sleds_batch(&self) -> Result<RecordBatch, ArrowError> {
        let sleds = |function: &Function| self.sleds[function.sleds.clone()].iter();
        let all = || self.functions.iter().flat_map(sleds);
        let ids =
            self.functions.iter().flat_map(|function| std::iter::repeat_n(function.id, function.sleds.len()));
        let kinds: Vec<String> = all().map(|sled| sled.kind.to_string()).collect();
        RecordBatch::try_from_iter_with_nullable([
            ("function_id", Arc::new(UInt32Array::from_iter_values(ids)) as ArrayRef, false),
            ("address", addresses(all().map(|sled| sled.place)), true),
            ("function_address", addresses(all().map(|sled| sled.function)), true),
            ("section", self.sections(all().map(|sled| sled.place)), true),
            ("kind", text(kinds.iter().map(|kind| Some(kind.as_str()))), false),
            (
                "always_instrument",
                Arc::new(all().map(|sled| Some(sled.always_instrument)).collect::<BooleanArray>()),
                false,
            ),
            ("version", Arc::new(UInt8Array::from_iter_values(all().map(|sled| sled.version))), false),
            ("offset", Arc::new(UInt64Array::from_iter_values(all().map(|sled| sled.offset))), false),
        ])
    }

    fn sections(&self, places: impl Iterator<Item = Option<Place>>) -> ArrayRef {
        text(places.map(|place| self.section_name(place?).map(|name| &**name)))
    }
}

fn addresses(places: impl Iterator<Item = Option<Place>>) -> ArrayRef {
    Arc::new(places.map(|place| place.map(|place| place.address)).collect::<UInt64Array>())
}

fn text<'a>(texts: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(texts.collect::<DictionaryArray<Int32Type>>())
}

fn linkage_name(frame: &SymbolFrame) -> &str {
    frame.linkage_name.as_ref().unwrap_or(&frame.name)
}

/// The kinds there are among sleds, in their order: `function-enter, function-exit`.
fn kinds(sleds: &[Sled]) -> String {
    let mut seen = Vec::new();
    for kind in sleds.iter().map(|sled| sled.kind) {
        if !seen.contains(&kind) {
            seen.push(kind);
        }
    }
    let names: Vec<String> = seen.iter().map(ToString::to_string).collect();
    names.join(", ")
}
