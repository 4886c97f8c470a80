use arrow_array::RecordBatch;
use arrow_array::types::UInt32Type;
use perfuse_tables::access::{ColumnError, numbers};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::lines::{CodeLines, Position};
use super::locate::{Located, Location};
use super::perf_maps::PerfMaps;
use super::places::Place;
use crate::mappings::{Mapping, Mappings};
use perfuse_binaries::symbolize::{Module, Resolved, SymbolFrame, Symbolizer};

/// Functions of JIT code, from table `code_objects`.
#[derive(Debug, Default)]
pub struct CodeNames {
    functions: FxHashMap<u32, u32>,
}

impl CodeNames {
    /// From table `code_objects`.
    ///
    /// # Errors
    /// When a batch is not of that table.
    pub fn new(code_objects: &[RecordBatch]) -> Result<Self, ColumnError> {
        let mut functions = FxHashMap::default();
        for batch in code_objects {
            let ids = numbers::<UInt32Type>(batch, "code_object_id")?;
            let function_ids = numbers::<UInt32Type>(batch, "function_id")?;
            functions.extend(ids.values().iter().copied().zip(function_ids.values().iter().copied()));
        }
        Ok(Self { functions })
    }
}

/// Who a frame's function is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Function {
    /// Known already, by key.
    Known(u32),
    /// A native one.
    Native {
        /// Index of its module.
        module: u32,
        /// Name in the symbol table.
        linkage_name: String,
        /// Name for people.
        name: String,
        /// Address of the symbol in the module's own terms.
        symbol_address: Option<u64>,
    },
    /// None.
    Unnamed(String),
}

/// One frame at a location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its function.
    pub function: Function,
    /// Where in its source.
    pub position: Position,
    /// Address within module or code.
    pub relative_address: Option<u64>,
}

/// All locations, named.
#[derive(Debug, Default)]
pub struct Resolution {
    /// By location: outermost frame first.
    pub frames: Vec<Vec<Frame>>,
}

/// What native code is named with.
#[derive(Debug)]
pub struct NativeNames<'a> {
    /// Names for mapped files and the kernel.
    pub symbolizer: &'a Symbolizer,
    /// Names for memory without a file.
    pub perf_maps: &'a PerfMaps,
}

/// Names every location once.
///
/// # Errors
/// When a batch is not of its table.
pub fn resolve(
    located: &Located,
    mappings: &Mappings,
    names: &CodeNames,
    lines: &CodeLines,
    native: &NativeNames<'_>,
) -> Result<Resolution, ColumnError> {
    let mut frames = vec![Vec::new(); located.locations.len()];
    let mut by_module: FxHashMap<(u32, Option<u64>), Vec<usize>> = FxHashMap::default();
    for (at, location) in located.locations.iter().enumerate() {
        match location.place {
            Place::Jit { code_object_id, code_offset } => {
                frames[at] = jit(location, code_object_id, code_offset, names, lines)?;
            }
            Place::Mapped { mapping } => {
                let row = &mappings.rows[mapping as usize];
                let reference = location.is_kernel().then_some(row.file_offset);
                by_module.entry((row.module, reference)).or_default().push(at);
            }
            Place::Anonymous { .. } | Place::Unmapped | Place::Kernel => {
                frames[at] = vec![bare(location, native.perf_maps)];
            }
        }
    }
    let answers: Vec<_> = by_module
        .into_par_iter()
        .map(|((id, reference), wanted)| {
            let recorded = &mappings.modules[id as usize];
            let build_id = recorded.build_id.as_deref();
            let module = match reference {
                Some(reference) => native.symbolizer.kernel(&recorded.path, build_id, Some(reference)),
                None => native.symbolizer.module(&recorded.path, build_id),
            };
            let position = |&at: &usize| position(&module, &located.locations[at], mappings);
            let positions: Vec<u64> = wanted.iter().map(position).collect();
            (id, wanted, module.resolve_many(&positions))
        })
        .collect();
    for (id, wanted, resolved) in answers {
        for (at, resolved) in wanted.into_iter().zip(resolved) {
            frames[at] = named(id, resolved);
        }
    }
    Ok(Resolution { frames })
}

fn position(module: &Module, location: &Location, mappings: &Mappings) -> u64 {
    let Place::Mapped { mapping } = location.place else { return 0 };
    let Mapping { start, file_offset, .. } = mappings.rows[mapping as usize];
    module.position(lookup(location), start, file_offset)
}

/// The address to look up: within the call for a return address.
fn lookup(location: &Location) -> u64 {
    location.address.wrapping_sub(u64::from(location.is_return))
}

fn jit(
    location: &Location,
    code_object_id: u32,
    code_offset: u64,
    names: &CodeNames,
    lines: &CodeLines,
) -> Result<Vec<Frame>, ColumnError> {
    let at = code_offset.saturating_sub(u64::from(location.is_return));
    let mut position = lines.line(code_object_id, at)?;
    let relative_address = Some(code_offset);
    // From the innermost out: a function's position is where it called the next one in.
    let mut frames = Vec::new();
    for (function, call) in lines.inlined(code_object_id, at)?.into_iter().rev() {
        let position = std::mem::replace(&mut position, call);
        frames.push(Frame { function: Function::Known(function), position, relative_address });
    }
    let function = match names.functions.get(&code_object_id) {
        Some(function) => Function::Known(*function),
        None => Function::Unnamed("the JIT code has no function".to_owned()),
    };
    frames.push(Frame { function, position, relative_address });
    frames.reverse();
    Ok(frames)
}

fn named(module: u32, resolved: Resolved) -> Vec<Frame> {
    let Resolved { frames, relative_address, symbol_address, unnamed_because } = resolved;
    if frames.is_empty() {
        let reason =
            unnamed_because.map_or_else(|| "no symbol covers this address".to_owned(), |r| r.to_string());
        let function = Function::Unnamed(reason);
        return vec![Frame { function, position: Position::default(), relative_address }];
    }
    let frame = |(depth, frame): (usize, SymbolFrame)| {
        let SymbolFrame { name, linkage_name, path, line, column } = frame;
        let linkage_name = linkage_name.unwrap_or_else(|| name.clone()).to_string();
        // The symbol is the outermost function's; what is inlined has none.
        let symbol_address = symbol_address.filter(|_| depth == 0);
        Frame {
            function: Function::Native { module, linkage_name, name: name.to_string(), symbol_address },
            position: Position { path: path.map(|path| path.to_string()), line, column },
            relative_address,
        }
    };
    frames.into_iter().enumerate().map(frame).collect()
}

/// Module index of names that belong to no file.
pub const NO_MODULE: u32 = u32::MAX;

fn bare(location: &Location, perf_maps: &PerfMaps) -> Frame {
    let named = match location.place {
        Place::Kernel => None,
        _ => perf_maps.find(location.process_id, lookup(location)),
    };
    let function = match (named, location.place) {
        (Some(name), _) => {
            Function::Native { module: NO_MODULE, linkage_name: name.clone(), name, symbol_address: None }
        }
        (None, Place::Kernel) => Function::Unnamed("no kernel mapping was recorded here".to_owned()),
        (None, Place::Anonymous { .. }) => {
            Function::Unnamed("anonymous memory where no dump knows code at that time".to_owned())
        }
        (None, _) => Function::Unnamed("no mapping holds this address".to_owned()),
    };
    Frame { function, position: Position::default(), relative_address: None }
}
