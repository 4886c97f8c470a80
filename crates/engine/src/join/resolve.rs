use arrow_array::RecordBatch;
use arrow_array::types::UInt32Type;
use perfuse_tables::access::{ColumnError, numbers};
use rustc_hash::FxHashMap;

use super::lines::{CodeLines, Position};
use super::locate::{Located, Location, Place};
use crate::mappings::{Mappings, Module};

/// A function of native code at an address, as a symbolizer tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NativeFrame {
    /// Demangled name.
    pub name: String,
    /// Name in the symbol table.
    pub linkage_name: String,
    /// Where in its source the address is.
    pub position: Position,
}

/// What a symbolizer knows of an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NativeAnswer {
    /// Outermost function first, then what is inlined into it.
    pub frames: Vec<NativeFrame>,
    /// Address in the module's own terms.
    pub relative_address: Option<u64>,
    /// Why there is no frame.
    pub unnamed_because: Option<String>,
}

/// Names addresses in mapped files.
pub trait NativeSymbols: Sync {
    /// Answers for offsets in a module's file, in their order; addresses for the kernel.
    fn resolve(&self, module: &Module, is_kernel: bool, offsets: &[u64]) -> Vec<NativeAnswer>;

    /// Names an address in memory without a file, from what a runtime wrote beside its recording.
    fn anonymous(&self, process_id: u32, address: u64) -> Option<NativeFrame>;
}

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
    /// A native one, by module index, linkage name and name.
    Native(u32, String, String),
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

/// Names every location once.
///
/// # Errors
/// When a batch is not of its table.
pub fn resolve(
    located: &Located,
    mappings: &Mappings,
    names: &CodeNames,
    lines: &CodeLines,
    symbols: &dyn NativeSymbols,
) -> Result<Resolution, ColumnError> {
    let mut frames = vec![Vec::new(); located.locations.len()];
    let mut by_module: FxHashMap<(u32, bool), Vec<(u64, usize)>> = FxHashMap::default();
    for (at, location) in located.locations.iter().enumerate() {
        match location.place {
            Place::Jit { code_object_id, code_offset } => {
                frames[at] = jit(location, code_object_id, code_offset, names, lines)?;
            }
            Place::Mapped { mapping } => {
                let row = &mappings.rows[mapping as usize];
                let is_kernel = location.address >> 63 == 1;
                let offset = lookup(location).wrapping_sub(row.start).wrapping_add(row.file_offset);
                let offset = if is_kernel { lookup(location) } else { offset };
                by_module.entry((row.module, is_kernel)).or_default().push((offset, at));
            }
            Place::Anonymous { .. } | Place::Unmapped | Place::Kernel => frames[at] = bare(location, symbols),
        }
    }
    for ((module, is_kernel), wanted) in by_module {
        let offsets: Vec<u64> = wanted.iter().map(|(offset, _)| *offset).collect();
        let answers = symbols.resolve(&mappings.modules[module as usize], is_kernel, &offsets);
        for ((_, at), answer) in wanted.into_iter().zip(answers) {
            frames[at] = native(module, answer);
        }
    }
    Ok(Resolution { frames })
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

fn native(module: u32, answer: NativeAnswer) -> Vec<Frame> {
    let relative_address = answer.relative_address;
    if answer.frames.is_empty() {
        let reason = answer.unnamed_because.unwrap_or_else(|| "no symbol covers this address".to_owned());
        let function = Function::Unnamed(reason);
        return vec![Frame { function, position: Position::default(), relative_address }];
    }
    let frame = |frame: NativeFrame| Frame {
        function: Function::Native(module, frame.linkage_name, frame.name),
        position: frame.position,
        relative_address,
    };
    answer.frames.into_iter().map(frame).collect()
}

/// Module index of names that belong to no file.
pub const NO_MODULE: u32 = u32::MAX;

fn bare(location: &Location, symbols: &dyn NativeSymbols) -> Vec<Frame> {
    let named = match location.place {
        Place::Kernel => None,
        _ => symbols.anonymous(location.process_id, lookup(location)),
    };
    let function = match (named, location.place) {
        (Some(frame), _) => Function::Native(NO_MODULE, frame.linkage_name, frame.name),
        (None, Place::Kernel) => Function::Unnamed("no kernel mapping was recorded here".to_owned()),
        (None, Place::Anonymous { .. }) => {
            Function::Unnamed("anonymous memory where no dump knows code at that time".to_owned())
        }
        (None, _) => Function::Unnamed("no mapping holds this address".to_owned()),
    };
    vec![Frame { function, position: Position::default(), relative_address: None }]
}
