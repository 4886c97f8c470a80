//! What a frame is called wherever a frame has a name: in reports, which have symbols, and in exports, which have frames.

use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{BooleanArray, DictionaryArray, Int32Array, RecordBatch, UInt32Array};
use rustc_hash::FxHashMap;

use super::columns::{numbers, text};
use super::symbols::may_be_of;
use super::{CallSymbols, StackError, StackTables};
use crate::NONE;
use crate::batch;

/// One row per frame: `frame_id`, `name`, `has_own_path`, `code_origin`.
///
/// `name` is that of its symbol: of its function, else a label that unnamed addresses of one module share. `has_own_path` states
/// whether there is a path that can be one of the function: it is not that of a function that was inlined without a name.
/// `code_origin` is a [`CodeOrigin`](super::CodeOrigin): that of the code, also for functions that were inlined into it.
///
/// # Errors
/// When a table lacks a column.
pub fn frame_names(tables: &StackTables) -> Result<RecordBatch, StackError> {
    let mut symbols = CallSymbols::of(tables, false)?;
    let frames = &tables.frames;
    let paths = text(frames, "frames", "path", &mut symbols.texts)?;
    let mut known = FxHashMap::default();
    let mut names = Vec::with_capacity(paths.len());
    let mut own = Vec::with_capacity(paths.len());
    let mut origins = StringDictionaryBuilder::<Int8Type>::new();
    for (&number, &path) in symbols.of_frame.iter().zip(&paths) {
        let Some(symbol) = symbols.symbols.get(number as usize) else { continue };
        let text = |id| symbols.texts.get(id).unwrap_or_default();
        names.push(symbol.name as i32);
        origins.append_value(symbol.code_origin.name());
        own.push(*known.entry((number, path)).or_insert_with(|| {
            path != NONE && (symbol.function_id == NONE || may_be_of(text(symbol.name), text(path)))
        }));
    }
    let names = DictionaryArray::<Int32Type>::new(Int32Array::from(names), Arc::new(symbols.texts.array()));
    Ok(batch::of(vec![
        ("frame_id", Arc::new(UInt32Array::from(numbers(frames, "frames", "frame_id")?))),
        ("name", Arc::new(names)),
        ("has_own_path", Arc::new(BooleanArray::from(own))),
        ("code_origin", Arc::new(origins.finish())),
    ]))
}
