//! The names of the methods, types, modules and threads that the addresses in a log stand for. Addresses are reused,
//! and names may follow their first use, so every look-up has a time.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::consts::{EventByte, metadata as mtypes};
use crate::survey::LogSurvey;
use crate::survey::definitions::{MetadataRecord, MethodRecord, SymbolRecord, ThreadRecord};

/// All names of a log.
#[derive(Debug)]
pub struct LogNames {
    /// Methods by index.
    pub functions: Vec<Function>,
    /// Classes by index.
    pub types: Vec<LogType>,
    /// Images by index, each as an index into [`Definitions::metadata`](crate::survey::definitions::Definitions).
    pub modules: Vec<usize>,
    /// Native symbols sorted by address, without duplicates.
    pub symbols: Vec<SymbolRecord>,
    /// Threads.
    pub threads: LogThreads,
    methods: AddressTimeline,
    classes: AddressTimeline,
    /// Indices of the calls of the runtime that compiled code makes by itself, such as those of allocators.
    runtime_calls: FxHashSet<u32>,
}

/// A method.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// Index of its first description in [`Definitions::methods`](crate::survey::definitions::Definitions).
    pub definition: usize,
    /// The image of its class, if known.
    pub module: Option<u32>,
}

/// A class.
#[derive(Clone, Copy, Debug)]
pub struct LogType {
    /// Index of its description in [`Definitions::metadata`](crate::survey::definitions::Definitions).
    pub definition: usize,
    /// Its image, if known.
    pub module: Option<u32>,
}

impl LogNames {
    /// Builds the tables from the definitions that a survey found.
    #[must_use]
    pub fn new(survey: &LogSurvey) -> Self {
        let metadata = &survey.events.definitions.metadata;
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
        let (functions, methods) = number_functions(&survey.events.definitions.methods, metadata, &types);
        let mut symbols = survey.events.definitions.symbols.clone();
        symbols.sort_by_key(|symbol| symbol.address);
        symbols.dedup_by_key(|symbol| symbol.address);
        let threads = LogThreads::new(survey);
        let name =
            |it: &Function| survey.events.definitions.methods.get(it.definition).map(|record| &*record.name);
        let numbered = functions.iter().zip(0u32..);
        let runtime_calls = numbered
            .filter(|(it, _)| name(it).is_some_and(is_runtime_call))
            .map(|(_, number)| number)
            .collect();
        Self { functions, types, modules, symbols, threads, methods, classes, runtime_calls }
    }

    /// A backtrace, outermost method first, without the calls of the runtime at its end: its last method is the one that
    /// creates the object.
    #[must_use]
    pub fn without_runtime_calls<'a>(&self, methods: &'a [u64], time: u64) -> &'a [u64] {
        let mut own = methods;
        while let Some((last, callers)) = own.split_last()
            && self.is_runtime_call(self.function(*last, time))
        {
            own = callers;
        }
        own
    }

    /// Whether a function is a call of the runtime that compiled code makes by itself.
    #[must_use]
    #[inline]
    pub fn is_runtime_call(&self, function: u32) -> bool {
        self.runtime_calls.contains(&function)
    }

    /// Index of the function of a method at a time; [`unknown_function`](Self::unknown_function) if it is never
    /// described.
    #[must_use]
    #[inline]
    pub fn function(&self, method: u64, time: u64) -> u32 {
        self.methods.at(method, time).unwrap_or(self.unknown_function())
    }

    /// Whether each method address always stands for the same method.
    #[must_use]
    #[inline]
    pub fn are_constant(&self, methods: &[u64]) -> bool {
        methods.iter().all(|method| self.methods.is_constant(*method))
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
    let mut indices = FxHashMap::default();
    let (mut first, mut entries) = (Vec::new(), Vec::new());
    for (definition, record) in metadata {
        let next = first.len() as u32;
        let number = *indices.entry((record.pointer, &*record.name)).or_insert(next);
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
    let mut indices = FxHashMap::default();
    let (mut functions, mut entries) = (Vec::new(), Vec::new());
    for (definition, method) in methods.iter().enumerate() {
        let next = functions.len() as u32;
        let number = *indices.entry((method.method, &*method.name)).or_insert(next);
        if number == next {
            let class = class_name(&method.name);
            functions.push(Function { definition, module: class.and_then(|name| *by_class.get(name)?) });
        }
        entries.push((method.method, method.time, number));
    }
    (functions, AddressTimeline::new(entries))
}

/// Whether a method is a call that compiled code makes of the runtime without being asked to: managed runtime_calls
/// (`(wrapper alloc)`), native ones, literals, initialization of classes.
fn is_runtime_call(method: &str) -> bool {
    const STRINGS: [&str; 2] = ["string:FastAllocateString ", "string:InternalAllocateStr "];
    if method.starts_with("(wrapper alloc) ") {
        return true;
    }
    let Some(native) = method.strip_prefix("(wrapper managed-to-native) ") else { return false };
    native.starts_with("object:__icall_wrapper_") || STRINGS.iter().any(|start| native.starts_with(start))
}

/// The class in `Ns.Class:Method (args)`; `None` for wrappers, which belong to no image.
fn class_name(method: &str) -> Option<&str> {
    let (class, _) = method.split_once(':')?;
    (!class.starts_with('(')).then_some(class)
}

/// A thread. Threads with the same id are distinguished by their start events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogThread {
    /// Its id.
    pub id: u64,
    /// Number of earlier threads with the same id.
    pub incarnation: u32,
    /// Its names, in the order of their assignment.
    pub names: Vec<Box<str>>,
    /// Time of its start, if recorded.
    pub start: Option<u64>,
    /// Time of its end, if recorded.
    pub end: Option<u64>,
    /// Time of the first known event of the thread.
    first_time: u64,
}

/// All threads of a log. Their ids are system addresses, which are reused.
#[derive(Debug, Default)]
pub struct LogThreads {
    /// In the order of their first buffers.
    pub list: Vec<LogThread>,
    /// Index of the thread of each buffer.
    buffers: Vec<u32>,
    /// Indices of the threads of each id.
    by_id: FxHashMap<u64, Vec<u32>>,
}

impl LogThreads {
    /// Assigns the buffers and METADATA events of a log to threads.
    pub(super) fn new(survey: &LogSurvey) -> Self {
        let mut all = Self::default();
        let mask = survey.dialect.pointer_mask();
        let mut definitions = survey.events.definitions.threads.iter().peekable();
        for (number, buffer) in survey.buffers.list.iter().enumerate() {
            let id = buffer.header.thread_id & mask;
            let mut current = all.latest(id).unwrap_or_else(|| all.add_thread(id, buffer.header.time_base));
            while let Some(record) = definitions.next_if(|record| record.buffer == number) {
                if record.own && record.what == EventByte::METADATA_END_LOAD {
                    current = all.add_start(current, record);
                } else if record.own {
                    all.add_name_or_end(current, record);
                }
            }
            all.buffers.push(current);
        }
        // Facts in the buffers of other threads need the complete list of threads.
        for record in survey.events.definitions.threads.iter().filter(|record| !record.own) {
            let thread = all
                .at(record.thread, record.time)
                .unwrap_or_else(|| all.add_thread(record.thread, record.time));
            if record.what == EventByte::METADATA_END_LOAD {
                all.add_start(thread, record);
            } else {
                all.add_name_or_end(thread, record);
            }
        }
        all
    }

    /// Index of the latest thread with an id.
    fn latest(&self, id: u64) -> Option<u32> {
        self.by_id.get(&id)?.last().copied()
    }

    /// Adds a thread; returns its index.
    fn add_thread(&mut self, id: u64, first_time: u64) -> u32 {
        let number = self.list.len() as u32;
        let before = self.by_id.entry(id).or_default();
        let incarnation = before.len() as u32;
        before.push(number);
        self.list.push(LogThread { id, incarnation, first_time, ..LogThread::default() });
        number
    }

    /// Handles a start event: of the current thread if that has neither start nor end, otherwise of a new thread with
    /// its id. Returns the index.
    fn add_start(&mut self, current: u32, record: &ThreadRecord) -> u32 {
        let is_new = self.get(current).is_some_and(|it| it.start.is_none() && it.end.is_none());
        let number = if is_new { current } else { self.add_thread(record.thread, record.time) };
        if let Some(thread) = self.list.get_mut(number as usize) {
            thread.start = Some(record.time);
            thread.first_time = thread.first_time.min(record.time);
        }
        number
    }

    /// Stores the name or the end of a thread.
    fn add_name_or_end(&mut self, number: u32, record: &ThreadRecord) {
        let Some(thread) = self.list.get_mut(number as usize) else { return };
        if record.what == EventByte::METADATA_NAME {
            thread.names.push(record.name.clone());
        } else {
            thread.end = Some(record.time);
        }
    }

    /// The thread of an index.
    fn get(&self, number: u32) -> Option<&LogThread> {
        self.list.get(number as usize)
    }

    /// Index of the thread of a buffer.
    #[must_use]
    #[inline]
    pub fn of_buffer(&self, buffer: usize) -> u32 {
        self.buffers.get(buffer).copied().unwrap_or(0)
    }

    /// Index of the thread that has an id at a time.
    #[must_use]
    pub fn at(&self, id: u64, time: u64) -> Option<u32> {
        let all = self.by_id.get(&id)?;
        let began =
            all.iter().rev().find(|&&number| self.get(number).is_some_and(|it| it.first_time <= time));
        began.or(all.first()).copied()
    }
}

/// What each address stands for over time.
#[derive(Debug, Default)]
pub struct AddressTimeline {
    map: FxHashMap<u64, AddressMeaning>,
    /// Start time and meaning of addresses with several meanings.
    meanings: Vec<(u64, u32)>,
}

/// The meaning of an address.
#[derive(Clone, Copy, Debug)]
enum AddressMeaning {
    /// The only meaning.
    Constant(u32),
    /// Index range in `meanings`.
    Varying(u32, u32),
}

impl AddressTimeline {
    /// Builds it from `(address, start time, meaning)`.
    pub fn new(mut entries: Vec<(u64, u64, u32)>) -> Self {
        entries.sort_by_key(|(address, time, _)| (*address, *time));
        let mut timeline = Self::default();
        for run in entries.chunk_by(|a, b| a.0 == b.0) {
            let Some((address, _, first)) = run.first().copied() else { continue };
            if run.iter().all(|(_, _, meaning)| *meaning == first) {
                timeline.map.insert(address, AddressMeaning::Constant(first));
                continue;
            }
            let start = timeline.meanings.len() as u32;
            timeline.meanings.extend(run.iter().map(|(_, time, meaning)| (*time, *meaning)));
            timeline.map.insert(address, AddressMeaning::Varying(start, timeline.meanings.len() as u32));
        }
        timeline
    }

    /// The meaning of an address at a time: the last one that had started, or else the first one.
    #[inline]
    pub fn at(&self, address: u64, time: u64) -> Option<u32> {
        match *self.map.get(&address)? {
            AddressMeaning::Constant(meaning) => Some(meaning),
            AddressMeaning::Varying(start, end) => {
                let all = self.meanings.get(start as usize..end as usize)?;
                let next = all.partition_point(|(since, _)| *since <= time);
                Some(all.get(next.saturating_sub(1))?.1)
            }
        }
    }

    /// Whether an address has at most one meaning.
    #[inline]
    pub fn is_constant(&self, address: u64) -> bool {
        !matches!(self.map.get(&address), Some(AddressMeaning::Varying(..)))
    }
}

#[cfg(test)]
mod tests {
    use super::AddressTimeline;

    #[test]
    fn an_address_has_its_latest_meaning() {
        let timeline = AddressTimeline::new(vec![(8, 20, 1), (8, 10, 0), (16, 5, 2), (16, 9, 2)]);
        assert_eq!([5, 10, 19, 20].map(|time| timeline.at(8, time)), [Some(0), Some(0), Some(0), Some(1)]);
        assert_eq!(timeline.at(16, 0), Some(2));
        assert_eq!(timeline.at(24, 0), None);
        assert!(timeline.is_constant(16) && !timeline.is_constant(8));
    }
}
