//! Tables of the program: modules, functions, code objects, types, mappings; and table `records`.

use std::sync::{Arc, PoisonError};

use perfuse_tables::{code_objects, functions, mappings, modules, records, types};

use super::lifetime::{self, Piece};
use super::threads::{ThreadKeys, pid};
use crate::consts::{KindSet, helper_name};
use crate::names::Names;
use crate::recording::Shared;
use crate::records::int_size;
use crate::survey::facts::{Helper, Method};
use perfuse_recording::{BatchStream, Placement, one_batch};

use super::pass;

/// Table `modules`.
pub fn modules(log: &Arc<Shared>, placement: &Placement) -> BatchStream {
    let facts = &log.survey().facts;
    let mut table = modules::Builder::new();
    for (fact, id) in log.names().modules.iter().zip(placement.first.module..) {
        if let Some(image) = facts.things.get(*fact) {
            table.push(id, &image.name, "managed", None);
        }
    }
    one_batch(table.finish())
}

/// Name of the function of methods that no event describes.
const UNKNOWN: &str = "(unknown method)";

/// Table `functions`: methods, the unknown method, native symbols, helpers.
pub fn functions(log: &Arc<Shared>, placement: &Placement) -> BatchStream {
    let names = log.names();
    let facts = &log.survey().facts;
    let mut table = functions::Builder::new();
    let mut id = placement.first.function;
    let mut push = |native_id, name: &str, module: Option<u32>| {
        let module = module.map(|module| placement.first.module.saturating_add(module));
        table.push(id, native_id, name, name, module, None, None, None);
        id = id.saturating_add(1);
    };
    for function in &names.functions {
        if let Some(method) = facts.methods.get(function.fact) {
            push(Some(method.method), &method.name, function.module);
        }
    }
    push(None, UNKNOWN, None);
    for symbol in &names.symbols {
        push(Some(symbol.address), &symbol.name, None);
    }
    for helper in &facts.helpers {
        push(Some(helper.code), &helper_title(log, helper), None);
    }
    one_batch(table.finish())
}

/// Index of the first helper among the functions.
pub fn first_helper(names: &Names) -> u32 {
    names.first_symbol().saturating_add(u32::try_from(names.symbols.len()).unwrap_or(u32::MAX))
}

/// Name of a helper: its kind, and its own name if it has one.
fn helper_title(log: &Shared, helper: &Helper) -> String {
    let kind = helper_name(log.survey().dialect.version, helper.kind);
    match &*helper.name {
        "" => kind.to_owned(),
        name => format!("{kind} {name}"),
    }
}

/// A block of machine code.
pub enum Code<'a> {
    /// Code of a method.
    Method(&'a Method),
    /// Code that the runtime generated for itself, and its index among those.
    Helper(&'a Helper, u32),
}

/// Every block of machine code, methods first.
pub fn code_facts(log: &Shared) -> impl Iterator<Item = Code<'_>> {
    let facts = &log.survey().facts;
    let methods = facts.methods.iter().filter(|it| it.size > 0).map(Code::Method);
    methods.chain(facts.helpers.iter().zip(0..).map(|(helper, at)| Code::Helper(helper, at)))
}

/// The time at which each block of code was overwritten. The runtime reports the code of some methods also as that of
/// a helper, so methods and helpers are processed separately.
fn code_ends(log: &Shared) -> Vec<Option<u64>> {
    let (mut methods, mut helpers) = (Vec::new(), Vec::new());
    for code in code_facts(log) {
        match code {
            Code::Method(it) => methods.push(Piece { start: it.code, size: it.size, time: it.time }),
            Code::Helper(it, _) => {
                helpers.push(Piece { start: it.code, size: int_size(it.size), time: it.time });
            }
        }
    }
    let mut ends = lifetime::ends(&methods);
    ends.extend(lifetime::ends(&helpers));
    ends
}

/// Table `code_objects`.
pub fn code_objects(log: &Arc<Shared>, placement: &Placement) -> BatchStream {
    let names = log.names();
    let threads = ThreadKeys::new(log, placement);
    let mut identities = placement.identities.lock().unwrap_or_else(PoisonError::into_inner);
    let process = identities.process(pid(log, placement));
    drop(identities);
    let ends = code_ends(log);
    let mut table = code_objects::Builder::new();
    for ((code, id), end) in code_facts(log).zip(placement.first.code_object..).zip(ends) {
        let (function, thread, kind, time, start, size, index, offset) = match code {
            Code::Method(it) => {
                let function = names.function(it.method, it.time);
                let thread = Some(threads.of_buffer(log, it.buffer));
                (function, thread, "jit", it.time, it.code, it.size, it.method, it.offset)
            }
            Code::Helper(it, at) => {
                let function = first_helper(names).saturating_add(at);
                (function, None, "helper", it.time, it.code, int_size(it.size), it.code, it.offset)
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
pub fn types(log: &Arc<Shared>, placement: &Placement) -> BatchStream {
    let facts = &log.survey().facts;
    let mut table = types::Builder::new();
    for (it, id) in log.names().types.iter().zip(placement.first.type_..) {
        if let Some(class) = facts.things.get(it.fact) {
            let module = it.module.map(|module| placement.first.module.saturating_add(module));
            table.push(id, Some(class.pointer), &class.name, module, placement.source_id, class.offset);
        }
    }
    one_batch(table.finish())
}

/// Table `mappings`.
pub fn mappings(log: &Arc<Shared>, placement: &Placement) -> BatchStream {
    let mut identities = placement.identities.lock().unwrap_or_else(PoisonError::into_inner);
    let process = identities.process(pid(log, placement));
    let mut table = mappings::Builder::new();
    for (it, id) in log.survey().facts.binaries.iter().zip(placement.first.mapping..) {
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
pub fn records(log: &Arc<Shared>, placement: &Placement) -> BatchStream {
    let placement = placement.clone();
    let counts = log.survey().first_indices();
    pass::batches(log, KindSet::all(), move |log, group| {
        let mut table = records::Builder::new();
        let (mut buffer, mut index) = (usize::MAX, 0u64);
        pass::each(log, group, |at, _, event| {
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
