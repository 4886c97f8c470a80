//! The names of the methods, types, modules and threads that the addresses in a log stand for. Addresses are reused,
//! and names may follow their first use, so every look-up has a time.

mod threads;
mod timeline;

use rustc_hash::FxHashMap;

pub use self::threads::{LogThread, LogThreads};
pub use self::timeline::AddressTimeline;
use super::consts::{EventByte, metadata as mtypes};
use super::survey::LogSurvey;
use super::survey::facts::{MetadataRecord, MethodRecord, SymbolRecord};

/// All names of a log.
#[derive(Debug)]
pub struct LogNames {
    /// Methods by index.
    pub functions: Vec<Function>,
    /// Classes by index.
    pub types: Vec<LogType>,
    /// Images by index, each as an index into [`Definitions::metadata`](super::survey::facts::Definitions).
    pub modules: Vec<usize>,
    /// Native symbols sorted by address, without duplicates.
    pub symbols: Vec<SymbolRecord>,
    /// Threads.
    pub threads: LogThreads,
    methods: AddressTimeline,
    classes: AddressTimeline,
}

/// A method.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// Index of its first description in [`Definitions::methods`](super::survey::facts::Definitions).
    pub definition: usize,
    /// The image of its class, if known.
    pub module: Option<u32>,
}

/// A class.
#[derive(Clone, Copy, Debug)]
pub struct LogType {
    /// Index of its description in [`Definitions::metadata`](super::survey::facts::Definitions).
    pub definition: usize,
    /// Its image, if known.
    pub module: Option<u32>,
}

impl LogNames {
    /// Builds the tables from the definitions that a survey found.
    #[must_use]
    pub fn new(survey: &LogSurvey) -> Self {
        let metadata = &survey.definitions.metadata;
        let of = |mtype| {
            let loads = metadata.iter().enumerate().filter(|(_, it)| it.what == EventByte::METADATA_END_LOAD);
            loads.filter(move |(_, it)| it.mtype == mtype)
        };
        let (modules, images) = number_records(of(mtypes::IMAGE));
        let (type_facts, mut classes) = number_records(of(mtypes::CLASS));
        let types: Vec<_> =
            type_facts.into_iter().map(|definition| LogType { definition, module: None }).collect();
        let with_module = types.into_iter().map(|it| {
            let module = metadata.get(it.definition).and_then(|record| images.at(record.image, record.time));
            LogType { module, ..it }
        });
        let types: Vec<_> = with_module.collect();
        if survey.dialect.has_vtables() {
            let vtables = of(mtypes::VTABLE);
            let entries =
                vtables.filter_map(|(_, it)| Some((it.pointer, it.time, classes.at(it.class, it.time)?)));
            classes = AddressTimeline::new(entries.collect());
        }
        let (functions, methods) = number_functions(&survey.definitions.methods, metadata, &types);
        let mut symbols = survey.definitions.symbols.clone();
        symbols.sort_by_key(|symbol| symbol.address);
        symbols.dedup_by_key(|symbol| symbol.address);
        let threads = LogThreads::new(survey);
        Self { functions, types, modules, symbols, threads, methods, classes }
    }

    /// Index of the function of a method at a time; [`unknown_function`](Self::unknown_function) if it is never
    /// described.
    #[must_use]
    #[inline]
    pub fn function(&self, method: u64, time: u64) -> u32 {
        self.methods.at(method, time).unwrap_or(self.unknown_function())
    }

    /// Whether a method address always stands for the same method.
    #[must_use]
    #[inline]
    pub fn is_constant(&self, method: u64) -> bool {
        self.methods.is_constant(method)
    }

    /// Index of the function that stands for methods without a description.
    #[must_use]
    #[inline]
    pub fn unknown_function(&self) -> u32 {
        self.functions.len() as u32
    }

    /// Index of the function of the first native symbol.
    #[must_use]
    pub fn first_symbol(&self) -> u32 {
        self.unknown_function().saturating_add(1)
    }

    /// Index of the function of the native symbol that contains an address.
    #[must_use]
    pub fn symbol(&self, address: u64) -> Option<u32> {
        /// The profiler looks symbols up by sampled address and writes no size: an address belongs to the preceding
        /// symbol unless it is this far away.
        const FAR: u64 = 1 << 16;
        let at = self.symbols.partition_point(|symbol| symbol.address <= address).checked_sub(1)?;
        let symbol = self.symbols.get(at)?;
        let size = if symbol.size == 0 { FAR } else { symbol.size };
        let inside = address.wrapping_sub(symbol.address) < size;
        inside.then(|| self.first_symbol().saturating_add(u32::try_from(at).unwrap_or(u32::MAX)))
    }

    /// Whether the address of a class or vtable always stands for the same type.
    #[must_use]
    pub fn is_constant_type(&self, class: u64) -> bool {
        self.classes.is_constant(class)
    }

    /// Index of the type of an object, by its class or vtable.
    #[must_use]
    #[inline]
    pub fn object_type(&self, class: u64, time: u64) -> Option<u32> {
        self.classes.at(class, time)
    }
}

/// Numbers the definitions by address and name, in file order. Returns the first definition of each index.
fn number_records<'a>(
    metadata: impl Iterator<Item = (usize, &'a MetadataRecord)>,
) -> (Vec<usize>, AddressTimeline) {
    let mut known = FxHashMap::default();
    let (mut first, mut entries) = (Vec::new(), Vec::new());
    for (definition, record) in metadata {
        let next = first.len() as u32;
        let number = *known.entry((record.pointer, &*record.name)).or_insert(next);
        if number == next {
            first.push(definition);
        }
        entries.push((record.pointer, record.time, number));
    }
    (first, AddressTimeline::new(entries))
}

/// Numbers the methods by address and name, in file order.
fn number_functions(
    methods: &[MethodRecord],
    metadata: &[MetadataRecord],
    types: &[LogType],
) -> (Vec<Function>, AddressTimeline) {
    let mut by_class = FxHashMap::default();
    for it in types {
        if let Some(record) = metadata.get(it.definition) {
            by_class.entry(&*record.name).or_insert(it.module);
        }
    }
    let mut known = FxHashMap::default();
    let (mut functions, mut entries) = (Vec::new(), Vec::new());
    for (definition, method) in methods.iter().enumerate() {
        let next = functions.len() as u32;
        let number = *known.entry((method.method, &*method.name)).or_insert(next);
        if number == next {
            let class = class_name(&method.name);
            functions.push(Function { definition, module: class.and_then(|name| *by_class.get(name)?) });
        }
        entries.push((method.method, method.time, number));
    }
    (functions, AddressTimeline::new(entries))
}

/// The class in `Ns.Class:Method (args)`; `None` for wrappers, which belong to no image.
fn class_name(method: &str) -> Option<&str> {
    let (class, _) = method.split_once(':')?;
    (!class.starts_with('(')).then_some(class)
}
