//! Extension records into rows: the tree of a piece of code, the `inline_calls` and `embedded_files` tables.

use std::sync::Arc;

use perfuse_tables::{embedded_files, inline_calls};

use super::inline_info2::{self, InlineInfo2};
use super::tree::InlineTree;
use super::{Declaration, Extension, extension};
use crate::index::{Code, NONE};
use crate::{JitDump, Shared, ingest::wanted};
use perfuse_recording::{BatchStream, Placement, Recording, TableRequest, one_batch};

/// Rows of a batch.
const BATCH: usize = 1 << 16;

/// Gives the inline tree of a piece of code to `use_tree`, with the offset of its (first) record; `None` where the file has none.
/// Lines and calls are cut to the code.
pub fn with_tree<R>(
    dump: &Shared,
    code: &Code,
    use_tree: impl FnOnce(u64, &InlineTree<'_>) -> R,
) -> Option<R> {
    let index = dump.index();
    let about = *index.abouts.get(code.inline as usize)?;
    let record = index.record_at(&dump.source, about.offset, about.index)?;
    let extension = extension(&record)?;
    let tree = match &extension {
        Extension::DebugInfo2(info) => Ok(info.tree()),
        Extension::Frames(info) => info.tree(code.size),
        Extension::InlineInfo1(info) => Ok(info.tree()),
        Extension::InlineInfo2(_) => inline_info2::tree(&stacks(dump, code), code.start, code.size),
        Extension::Tier(_) | Extension::EmbeddedFile(_) => return None,
    };
    let mut tree = tree.ok()?;
    tree.lines.retain(|line| line.code_offset < code.size);
    tree.calls.retain_mut(|call| {
        call.size = call.size.min(code.size.saturating_sub(call.start_offset));
        call.size > 0
    });
    Some(use_tree(about.offset, &tree))
}

/// All of dialect D's records about a piece of code: they lie between the load before and its own.
fn stacks<'a>(dump: &'a Shared, code: &Code) -> Vec<InlineInfo2<'a>> {
    let index = dump.index();
    let Some(first) = index.abouts.get(code.inline as usize) else { return Vec::new() };
    let following = index.abouts.get(code.inline as usize..).unwrap_or_default();
    let own = following
        .iter()
        .take_while(|about| about.index < code.index)
        .filter(|about| about.code == first.code);
    own.filter_map(|about| {
        let record = index.record_at(&dump.source, about.offset, about.index)?;
        match extension(&record)? {
            Extension::InlineInfo2(info) => Some(info),
            _ => None,
        }
    })
    .collect()
}

/// Visits every function an extension record says was inlined.
pub fn inlined(extension: &Extension<'_>, mut visit: impl FnMut(&Declaration<'_>)) {
    match extension {
        Extension::DebugInfo2(info) => {
            info.inline_calls.iter().for_each(|call| visit(&info.declaration(call.function_index)));
        }
        Extension::Frames(info) => {
            let inlined = info.source_positions.iter().filter(|position| position.caller_index != -1);
            inlined.for_each(|position| visit(&info.frame(position).function));
        }
        Extension::InlineInfo1(info) => {
            info.entries
                .iter()
                .for_each(|entry| visit(&Declaration { name: entry.func_name, ..Declaration::default() }));
        }
        Extension::InlineInfo2(info) => info.stack().skip(1).for_each(|frame| visit(&frame.function)),
        Extension::Tier(_) | Extension::EmbeddedFile(_) => {}
    }
}

/// Tables only extension records fill.
pub fn table(
    dump: &JitDump,
    name: &str,
    placement: &Placement,
    request: &TableRequest,
) -> Option<BatchStream> {
    match name {
        "inline_calls" => Some(inline_calls(dump, placement, request)),
        "embedded_files" => Some(embedded_files(dump, placement)),
        _ => None,
    }
}

fn inline_calls(dump: &JitDump, placement: &Placement, request: &TableRequest) -> BatchStream {
    let codes = wanted(dump, placement, request).filter(|(_, code)| code.inline != NONE);
    let todo: Vec<(u32, Code)> = codes.map(|(id, code)| (id, *code)).collect();
    Box::new(CallBatches {
        dump: dump.share(),
        source_id: placement.source_id,
        first_function: placement.first.function,
        todo: todo.into_iter(),
        started: false,
    })
}

/// Calls, decoded as they are pulled.
struct CallBatches {
    dump: Arc<Shared>,
    source_id: u32,
    first_function: u32,
    todo: std::vec::IntoIter<(u32, Code)>,
    started: bool,
}

impl Iterator for CallBatches {
    type Item = arrow_array::RecordBatch;

    fn next(&mut self) -> Option<Self::Item> {
        let mut table = inline_calls::Builder::new();
        while table.len() < BATCH {
            let Some((id, code)) = self.todo.next() else { break };
            with_tree(&self.dump, &code, |offset, tree| self.push(id, offset, tree, &mut table));
        }
        // An empty table still has one batch, so that its schema is seen.
        let batch = !self.started || !table.is_empty();
        self.started = true;
        batch.then(|| table.finish())
    }
}

impl CallBatches {
    fn push(&self, id: u32, offset: u64, tree: &InlineTree<'_>, table: &mut inline_calls::Builder) {
        let functions = &self.dump.index().functions;
        for call in &tree.calls {
            let Some(function) = functions.declared(&call.function) else { continue };
            let path = String::from_utf8_lossy(call.call_path);
            table.push(
                id,
                call.start_offset,
                call.size,
                call.depth,
                self.first_function.saturating_add(function),
                (!path.is_empty()).then_some(&*path),
                known(call.call_line),
                known(call.call_column),
                self.source_id,
                offset,
            );
        }
    }
}

fn embedded_files(dump: &JitDump, placement: &Placement) -> BatchStream {
    let index = dump.index();
    let mut table = embedded_files::Builder::new();
    for &(offset, number) in &index.embedded {
        if let Some(record) = index.record_at(dump.source(), offset, number)
            && let Some(Extension::EmbeddedFile(file)) = extension(&record)
        {
            table.push(&String::from_utf8_lossy(file.path), file.text, placement.source_id, offset);
        }
    }
    one_batch(table.finish())
}

/// 0 means "not recorded".
pub(crate) fn known(value: u32) -> Option<u32> {
    (value != 0).then_some(value)
}
