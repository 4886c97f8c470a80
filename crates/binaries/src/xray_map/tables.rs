//! Tables of functions and sleds.

use std::fmt::{self, Write};
use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, RecordBatch, StringArray, UInt8Array, UInt32Array, UInt64Array,
};
use arrow_schema::ArrowError;

use super::map::{CodeLocation, InstrumentationMap, InstrumentedFunction, Sled};
use super::map_file::FunctionNames;
use crate::symbolize::SymbolFrame;

impl InstrumentationMap {
    /// One row per function, with `names` of all of them: `id`, `address` and `section` of its start, demangled `name` and
    /// `linkage_name`, `path`, `line` and `column` of its declaration, `num_sleds`, their `kinds`, `always_instrument`,
    /// `version`.
    ///
    /// # Errors
    /// [`ArrowError`], which columns of one length never give.
    pub fn functions_batch(&self, names: &FunctionNames) -> Result<RecordBatch, ArrowError> {
        let all = || self.functions.iter();
        let sleds = |function: &InstrumentedFunction| self.sleds_of(function);
        let frames = || (0..self.functions.len()).map(|at| names.functions.get(at).and_then(Option::as_ref));
        let always = |function| sleds(function).iter().all(|sled| sled.always_instrument);
        let version = |function| sleds(function).first().map(|sled| sled.version);
        RecordBatch::try_from_iter_with_nullable([
            (
                "id",
                Arc::new(UInt32Array::from_iter_values(all().map(|function| function.id))) as ArrayRef,
                false,
            ),
            ("address", addresses(all().map(|function| function.location)), true),
            ("section", self.sections(all().map(|function| function.location)), true),
            ("name", Arc::new(frames().map(|frame| Some(&*frame?.name)).collect::<StringArray>()), true),
            (
                "linkage_name",
                Arc::new(frames().map(|frame| frame.map(linkage_name)).collect::<StringArray>()),
                true,
            ),
            ("path", text(frames().map(|frame| frame?.path.as_deref())), true),
            ("line", Arc::new(frames().map(|frame| frame?.line).collect::<UInt32Array>()), true),
            ("column", Arc::new(frames().map(|frame| frame?.column).collect::<UInt32Array>()), true),
            (
                "num_sleds",
                Arc::new(all().map(|function| Some(function.sleds.len() as u32)).collect::<UInt32Array>()),
                false,
            ),
            ("kinds", written(all(), |function, out| write_kinds(sleds(function), out)), false),
            (
                "always_instrument",
                Arc::new(all().map(|function| Some(always(function))).collect::<BooleanArray>()),
                false,
            ),
            ("version", Arc::new(all().map(version).collect::<UInt8Array>()), true),
        ])
    }

    /// One row per sled, function by function: `function_id`, `address`, `function_address`, `section`, `kind`,
    /// `always_instrument`, `version`, and `offset` of its entry in the file.
    ///
    /// # Errors
    /// [`ArrowError`], which columns of one length never give.
    pub fn sleds_batch(&self) -> Result<RecordBatch, ArrowError> {
        let all = || self.functions.iter().flat_map(|function| self.sleds_of(function));
        let ids =
            self.functions.iter().flat_map(|function| std::iter::repeat_n(function.id, function.sleds.len()));
        RecordBatch::try_from_iter_with_nullable([
            ("function_id", Arc::new(UInt32Array::from_iter_values(ids)) as ArrayRef, false),
            ("address", addresses(all().map(|sled| sled.location)), true),
            ("function_address", addresses(all().map(|sled| sled.function)), true),
            ("section", self.sections(all().map(|sled| sled.location)), true),
            ("kind", written(all(), |sled, out| write!(out, "{}", sled.kind)), false),
            (
                "always_instrument",
                Arc::new(all().map(|sled| Some(sled.always_instrument)).collect::<BooleanArray>()),
                false,
            ),
            ("version", Arc::new(UInt8Array::from_iter_values(all().map(|sled| sled.version))), false),
            ("offset", Arc::new(UInt64Array::from_iter_values(all().map(|sled| sled.offset))), false),
        ])
    }

    fn sleds_of(&self, function: &InstrumentedFunction) -> &[Sled] {
        self.sleds.get(function.sleds.clone()).unwrap_or_default()
    }

    fn sections(&self, locations: impl Iterator<Item = Option<CodeLocation>>) -> ArrayRef {
        text(locations.map(|location| self.section_name(location?).map(|name| &**name)))
    }
}

fn addresses(locations: impl Iterator<Item = Option<CodeLocation>>) -> ArrayRef {
    Arc::new(locations.map(|location| location.map(|location| location.address)).collect::<UInt64Array>())
}

fn text<'a>(texts: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(texts.collect::<DictionaryArray<Int32Type>>())
}

fn linkage_name(frame: &SymbolFrame) -> &str {
    frame.linkage_name.as_ref().unwrap_or(&frame.name)
}

/// A dictionary column of texts, written without a string for each row.
fn written<T>(rows: impl Iterator<Item = T>, write: impl Fn(T, &mut String) -> fmt::Result) -> ArrayRef {
    let mut column = StringDictionaryBuilder::<Int32Type>::new();
    let mut text = String::new();
    for row in rows {
        text.clear();
        match write(row, &mut text) {
            Ok(()) => column.append_value(&text),
            Err(fmt::Error) => column.append_null(),
        }
    }
    Arc::new(column.finish())
}

/// Writes each kind of the sleds once, in their order: `function-enter, function-exit`.
fn write_kinds(sleds: &[Sled], out: &mut String) -> fmt::Result {
    let mut seen = [0_u64; 4];
    for sled in sleds {
        let bit = 1 << (sled.kind.0 % 64);
        let Some(word) = seen.get_mut(usize::from(sled.kind.0 / 64)) else { continue };
        if *word & bit == 0 {
            *word |= bit;
            let gap = if out.is_empty() { "" } else { ", " };
            write!(out, "{gap}{}", sled.kind)?;
        }
    }
    Ok(())
}
