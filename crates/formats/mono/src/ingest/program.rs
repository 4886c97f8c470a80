//! Tables of the program: modules, functions, code objects, types, mappings; and table `records`.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use perfuse_recording::{BatchStream, Placement, one_batch};
use perfuse_tables::{code_objects, functions, mappings, modules, records, types};
use rustc_hash::FxHashSet;

use crate::consts::{KindSet, METHOD_HELPER, helper_name};
use crate::ingest::scan;
use crate::ingest::threads::{ThreadKeys, process};
use crate::log::LogData;
use crate::names::LogNames;
use crate::records::int_size;
use crate::survey::definitions::{HelperRecord, MethodRecord};

/// Table `modules`.
pub fn modules(log: &Arc<LogData>, placement: &Placement) -> BatchStream {
    let definitions = &log.survey().events.definitions;
    let mut table = modules::Builder::new();
    for (definition, id) in log.names().modules.iter().zip(placement.first.module..) {
        if let Some(image) = definitions.metadata.get(*definition) {
            table.push(id, &image.name, "managed", None);
        }
    }
    one_batch(table.finish())
}

/// Name of the function of methods that no event describes.
const UNKNOWN: &str = "(unknown method)";

/// Table `functions`: methods, the unknown method, native symbols, helpers.
pub fn functions(log: &Arc<LogData>, placement: &Placement) -> BatchStream {
    let names = log.names();
    let definitions = &log.survey().events.definitions;
    let mut table = functions::Builder::new();
    let mut id = placement.first.function;
    let mut push = |native_id, name: &str, module: Option<u32>| {
        let module = module.map(|module| placement.first.module.saturating_add(module));
        table.push(id, native_id, name, name, module, None, None, None);
        id = id.saturating_add(1);
    };
    for function in &names.functions {
        if let Some(method) = definitions.methods.get(function.definition) {
            push(Some(method.method), &method.name, function.module);
        }
    }
    push(None, UNKNOWN, None);
    for symbol in &names.symbols {
        push(Some(symbol.address), &symbol.name, None);
    }
    for helper in &definitions.helpers {
        push(Some(helper.code), &helper_title(log, helper), None);
    }
    one_batch(table.finish())
}

/// Index of the first helper among the functions.
pub fn first_helper(names: &LogNames) -> u32 {
    names.first_symbol().saturating_add(u32::try_from(names.symbols.len()).unwrap_or(u32::MAX))
}

/// Name of a helper: its kind, and its own name if it has one.
fn helper_title(log: &LogData, helper: &HelperRecord) -> String {
    let kind = helper_name(log.survey().dialect.version, helper.kind);
    match &*helper.name {
        "" => kind.to_owned(),
        name => format!("{kind} {name}"),
    }
}

/// A block of machine code.
pub enum MachineCode<'a> {
    /// Code of a method.
    Method(&'a MethodRecord),
    /// Code that the runtime generated for itself, and its index among those.
    Helper(&'a HelperRecord, u32),
}

/// Every block of machine code, methods first.
pub fn machine_code(log: &LogData) -> impl Iterator<Item = MachineCode<'_>> {
    let definitions = &log.survey().events.definitions;
    let methods = definitions.methods.iter().filter(|it| it.size > 0).map(MachineCode::Method);
    methods.chain(definitions.helpers.iter().zip(0..).map(|(helper, at)| MachineCode::Helper(helper, at)))
}

/// Whether code of a helper has no name. The runtime reports the code of compiled methods as that of helpers, too; where the
/// log has no address for the method, which the profiler then writes as 0, nothing in it names this code.
fn without_names(log: &LogData) -> impl Fn(&HelperRecord) -> bool {
    let survey = log.survey();
    let methods = survey.events.definitions.methods.iter().filter(|it| it.size > 0);
    let starts: FxHashSet<u64> = methods.map(|it| it.code).collect();
    move |helper| {
        helper_name(survey.dialect.version, helper.kind) == METHOD_HELPER
            && helper.name.is_empty()
            && !starts.contains(&helper.code)
    }
}

/// The time at which each block of code was overwritten. The runtime reports the code of some methods also as that of
/// a helper, so methods and helpers are processed separately.
fn code_ends(log: &LogData) -> Vec<Option<u64>> {
    let (mut methods, mut helpers) = (Vec::new(), Vec::new());
    for code in machine_code(log) {
        match code {
            MachineCode::Method(it) => {
                methods.push(CodeBlock { start: it.code, size: it.size, time: it.time })
            }
            MachineCode::Helper(it, _) => {
                helpers.push(CodeBlock { start: it.code, size: int_size(it.size), time: it.time });
            }
        }
    }
    let mut ends = overwrite_times(&methods);
    ends.extend(overwrite_times(&helpers));
    ends
}

/// Table `code_objects`.
pub fn code_objects(log: &Arc<LogData>, placement: &Placement) -> BatchStream {
    let names = log.names();
    let threads = ThreadKeys::new(log, placement);
    let mut identities = placement.identities.lock().unwrap_or_else(PoisonError::into_inner);
    let process = identities.process(process(log, placement));
    drop(identities);
    let (ends, is_unnamed) = (code_ends(log), without_names(log));
    let mut table = code_objects::Builder::new();
    for ((code, id), end) in machine_code(log).zip(placement.first.code_object..).zip(ends) {
        let (function, thread, kind, time, start, size, index, offset) = match code {
            MachineCode::Method(it) => {
                let function = names.function(it.method, it.time);
                let thread = Some(threads.of_buffer(log, it.buffer));
                (function, thread, "jit", it.time, it.code, it.size, it.method, it.offset)
            }
            MachineCode::Helper(it, at) => {
                let function = first_helper(names).saturating_add(at);
                let kind = if is_unnamed(it) { "unnamed" } else { "helper" };
                (function, None, kind, it.time, it.code, int_size(it.size), it.code, it.offset)
            }
        };
        table.push(
            id,
            placement.first.function.saturating_add(function),
            process,
            thread,
            kind,
            None,
            placement.clock.ns(time),
            end.map(|end| placement.clock.ns(end)),
            start,
            size,
            None,
            index,
            placement.source_id,
            offset,
        );
    }
    one_batch(table.finish())
}

/// Table `types`.
pub fn types(log: &Arc<LogData>, placement: &Placement) -> BatchStream {
    let definitions = &log.survey().events.definitions;
    let mut table = types::Builder::new();
    for (it, id) in log.names().types.iter().zip(placement.first.type_..) {
        if let Some(class) = definitions.metadata.get(it.definition) {
            let module = it.module.map(|module| placement.first.module.saturating_add(module));
            table.push(id, Some(class.pointer), &class.name, module, placement.source_id, class.offset);
        }
    }
    one_batch(table.finish())
}

/// Table `mappings`.
pub fn mappings(log: &Arc<LogData>, placement: &Placement) -> BatchStream {
    let mut identities = placement.identities.lock().unwrap_or_else(PoisonError::into_inner);
    let process = identities.process(process(log, placement));
    let mut table = mappings::Builder::new();
    for (it, id) in log.survey().events.definitions.binaries.iter().zip(placement.first.mapping..) {
        table.push(
            id,
            Some(process),
            Some(placement.clock.ns(it.time)),
            it.address,
            it.address.saturating_add(it.size),
            it.file_offset,
            &it.path,
            None,
            true,
            placement.source_id,
            it.offset,
        );
    }
    one_batch(table.finish())
}

/// Table `records`.
pub fn records(log: &Arc<LogData>, placement: &Placement) -> BatchStream {
    let placement = placement.clone();
    let counts = log.survey().first_indices();
    scan::scan_batches(log, KindSet::all(), move |log, group| {
        let mut table = records::Builder::new();
        let (mut buffer, mut index) = (usize::MAX, 0u64);
        scan::for_each_event(log, group, |at, _, event| {
            if at.buffer != buffer {
                (buffer, index) = (at.buffer, counts.get(at.buffer).copied().unwrap_or(0));
            }
            let kind = event.byte.name().unwrap_or_default();
            let time = event.time.map(|time| placement.clock.ns(time));
            table.push(placement.source_id, index, event.offset, event.size, kind, time);
            index = index.saturating_add(1);
        });
        table.finish()
    })
}

/// A block of machine code with the time of its creation.
#[derive(Clone, Copy, Debug)]
pub struct CodeBlock {
    pub start: u64,
    pub size: u64,
    pub time: u64,
}

/// The time at which each block was overwritten by a later one; `None` if it was not. No event reports the end of code.
pub fn overwrite_times(blocks: &[CodeBlock]) -> Vec<Option<u64>> {
    let mut times = vec![None; blocks.len()];
    let mut order: Vec<_> = blocks.iter().enumerate().collect();
    order.sort_by_key(|(_, block)| block.time);
    // Live blocks by address: they do not overlap.
    let mut live: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
    for (at, block) in order {
        let end = block.start.saturating_add(block.size);
        while let Some((&start, &(until, other))) =
            live.range(..end.max(block.start.saturating_add(1))).next_back()
        {
            if until <= block.start && start != block.start {
                break;
            }
            live.remove(&start);
            if let Some(ended) = times.get_mut(other) {
                *ended = Some(block.time);
            }
        }
        live.insert(block.start, (end, at));
    }
    times
}

#[cfg(test)]
mod tests {
    use super::{CodeBlock, overwrite_times};

    fn block(start: u64, size: u64, time: u64) -> CodeBlock {
        CodeBlock { start, size, time }
    }

    #[test]
    fn code_ends_when_it_is_overwritten() {
        let blocks =
            [block(100, 50, 1), block(150, 50, 2), block(120, 40, 7), block(300, 10, 3), block(100, 10, 9)];
        assert_eq!(overwrite_times(&blocks), [Some(7), Some(7), None, None, None]);
    }

    #[test]
    fn wrong_sizes_end_nothing_twice() {
        let blocks = [block(8, u64::MAX, 1), block(8, 0, 2), block(8, 0, 3), block(0, u64::MAX, 4)];
        assert_eq!(overwrite_times(&blocks), [Some(2), Some(3), Some(4), None]);
    }
}
