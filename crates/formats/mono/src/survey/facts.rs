//! What a log says of the program: methods and their code, classes, images, threads, native symbols, counters.

use crate::consts::{EventByte, metadata as mtypes};
use crate::reader::Buffer;
use crate::records::{Body, Event, Metadata};

/// Facts in file order.
#[derive(Debug, Default)]
pub struct Facts {
    /// Methods that were compiled.
    pub methods: Vec<Method>,
    /// Code the runtime made for itself.
    pub helpers: Vec<Helper>,
    /// Classes, images, assemblies, domains, contexts and vtables that were loaded, unloaded or named.
    pub things: Vec<Thing>,
    /// Starts, ends and names of threads.
    pub threads: Vec<ThreadFact>,
    /// Native symbols.
    pub symbols: Vec<Symbol>,
    /// Mapped native binaries.
    pub binaries: Vec<Binary>,
    /// Counters.
    pub counters: Vec<Counter>,
    /// Heap shots that begin and end.
    pub shots: Vec<ShotMark>,
    /// Memory that holds roots, registered and given back.
    pub roots: Vec<RootFact>,
    /// Frames of all backtraces and samples, and instruction pointers.
    pub num_frames: u64,
    /// Thread of the buffer that is read, and its number.
    buffer: (u64, usize),
    /// Time of the last timed event of it.
    time: u64,
}

/// A method and, where it has some, its code.
#[derive(Clone, Debug)]
pub struct Method {
    /// The method.
    pub method: u64,
    /// Address of its code.
    pub code: u64,
    /// Size of its code; 0 where it has none of its own.
    pub size: u64,
    /// Its name.
    pub name: Box<str>,
    /// When.
    pub time: u64,
    /// Thread of its buffer.
    pub thread: u64,
    /// Number of its buffer.
    pub buffer: usize,
    /// Offset of its event.
    pub offset: u64,
}

/// Code the runtime made for itself.
#[derive(Clone, Debug)]
pub struct Helper {
    /// What it is for.
    pub kind: u64,
    /// Its address.
    pub code: u64,
    /// Its size.
    pub size: u64,
    /// Its name, where it has one.
    pub name: Box<str>,
    /// When.
    pub time: u64,
    /// Offset of its event.
    pub offset: u64,
}

/// A class, image, assembly, domain, context or vtable.
#[derive(Clone, Debug)]
pub struct Thing {
    /// What it is.
    pub mtype: u64,
    /// Whether it was named, loaded or unloaded.
    pub what: EventByte,
    /// Its address or id.
    pub pointer: u64,
    /// Class, assembly: its image.
    pub image: u64,
    /// Context, vtable: its domain.
    pub domain: u64,
    /// Vtable: its class.
    pub class: u64,
    /// Its name.
    pub name: Box<str>,
    /// When.
    pub time: u64,
    /// Offset of its event.
    pub offset: u64,
}

/// Something about a thread.
#[derive(Clone, Debug)]
pub struct ThreadFact {
    /// The thread.
    pub thread: u64,
    /// Whether it was named, started or ended.
    pub what: EventByte,
    /// Its name.
    pub name: Box<str>,
    /// When.
    pub time: u64,
    /// Number of the buffer that says so.
    pub buffer: usize,
    /// Whether that is a buffer of the thread itself.
    pub own: bool,
}

/// A native symbol.
#[derive(Clone, Debug)]
pub struct Symbol {
    /// Its address.
    pub address: u64,
    /// Its size; 0 unknown.
    pub size: u64,
    /// Its name.
    pub name: Box<str>,
}

/// A mapped native binary.
#[derive(Clone, Debug)]
pub struct Binary {
    /// Address it is mapped at.
    pub address: u64,
    /// Offset in the file.
    pub file_offset: u64,
    /// Size in bytes.
    pub size: u64,
    /// Its path.
    pub path: Box<str>,
    /// When.
    pub time: u64,
    /// Offset of its event.
    pub offset: u64,
}

/// A heap shot begins or ends.
#[derive(Clone, Copy, Debug)]
pub struct ShotMark {
    /// Whether it begins.
    pub begins: bool,
    /// Thread that makes it.
    pub thread: u64,
    /// When.
    pub time: u64,
    /// Offset of its event.
    pub offset: u64,
}

/// Memory that holds roots was registered, or given back.
#[derive(Clone, Debug)]
pub struct RootFact {
    /// Its first address.
    pub start: u64,
    /// Its size; `None` where it is given back.
    pub size: Option<u64>,
    /// Where it comes from.
    pub source: u64,
    /// Whose it is.
    pub key: u64,
    /// What it is called.
    pub name: Box<str>,
    /// When.
    pub time: u64,
}

/// A counter.
#[derive(Clone, Debug)]
pub struct Counter {
    /// Its number in the file.
    pub index: u64,
    /// Section.
    pub section: u64,
    /// Category, of performance counters.
    pub category: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// Type of its values.
    pub kind: u64,
    /// Unit and variance.
    pub unit: u64,
    /// How its values behave.
    pub variance: u64,
    /// Offset of its event.
    pub offset: u64,
}

fn text(bytes: &[u8]) -> Box<str> {
    String::from_utf8_lossy(bytes).into()
}

impl Facts {
    pub(super) fn append(&mut self, other: Self) {
        self.methods.extend(other.methods);
        self.helpers.extend(other.helpers);
        self.things.extend(other.things);
        self.threads.extend(other.threads);
        self.symbols.extend(other.symbols);
        self.binaries.extend(other.binaries);
        self.counters.extend(other.counters);
        self.shots.extend(other.shots);
        self.roots.extend(other.roots);
        self.num_frames = self.num_frames.saturating_add(other.num_frames);
    }

    pub(super) fn begin(&mut self, number: usize, buffer: &Buffer, mask: u64) {
        self.buffer = (buffer.header.thread_id & mask, number);
        self.time = buffer.header.time_base;
    }

    /// Goes on to a time, over events that tell nothing else.
    #[inline]
    pub(super) fn pass_to(&mut self, time: u64) {
        self.time = time;
    }

    /// Whether the buffer that is read says something of its own thread.
    pub(super) fn tell_of_own_thread(&self) -> bool {
        let (_, number) = self.buffer;
        self.threads.iter().rev().take_while(|fact| fact.buffer == number).any(|fact| fact.own)
    }

    /// Time of the last timed event.
    pub(super) fn time(&self) -> u64 {
        self.time
    }

    #[inline]
    pub(super) fn note(&mut self, event: &Event<'_>) {
        if let Some(time) = event.time {
            self.time = time;
        }
        let (time, offset) = (self.time, event.offset);
        let (thread, buffer) = self.buffer;
        self.num_frames = self.num_frames.wrapping_add(event.frames.len() as u64);
        match &event.body {
            Body::Alloc { .. } | Body::Call { .. } | Body::HeapObject(_) | Body::GcMove => {}
            Body::SampleHit { .. } => {
                self.num_frames = self.num_frames.wrapping_add(event.addresses.len() as u64);
            }
            Body::HeapMark => {
                let begins = event.byte == EventByte::HEAP_START;
                self.shots.push(ShotMark { begins, thread, time, offset });
            }
            Body::RootRegister { start, size, source, key, name } => {
                let (start, size, source, key) = (*start, Some(*size), *source, *key);
                self.roots.push(RootFact { start, size, source, key, name: text(name), time });
            }
            Body::RootUnregister { start } => {
                let start = *start;
                self.roots.push(RootFact { start, size: None, source: 0, key: 0, name: text(b""), time });
            }
            Body::Jit { method, code, size, name } => self.methods.push(Method {
                method: *method,
                code: *code,
                size: *size,
                name: text(name),
                time,
                thread,
                buffer,
                offset,
            }),
            Body::JitHelper { kind, code, size, name } => {
                let name = text(name);
                self.helpers.push(Helper { kind: *kind, code: *code, size: *size, name, time, offset });
            }
            Body::Metadata(it) => self.metadata(event.byte, it, time, offset),
            Body::SampleUsym { address, size, name } => {
                self.symbols.push(Symbol { address: *address, size: *size, name: text(name) });
            }
            Body::SampleUbin { address, offset: file_offset, size, name } => self.binaries.push(Binary {
                address: *address,
                file_offset: *file_offset,
                size: *size,
                path: text(name),
                time,
                offset,
            }),
            Body::CountersDesc => self.counters.extend(event.descriptions.iter().map(|it| Counter {
                index: it.index,
                section: it.section,
                category: text(it.category),
                name: text(it.name),
                kind: it.kind,
                unit: it.unit,
                variance: it.variance,
                offset,
            })),
            _ => {}
        }
    }

    fn metadata(&mut self, what: EventByte, it: &Metadata<'_>, time: u64, offset: u64) {
        let (thread, buffer) = self.buffer;
        if it.mtype == mtypes::THREAD {
            let own = thread == it.pointer;
            self.threads.push(ThreadFact {
                thread: it.pointer,
                what,
                name: text(it.name),
                time,
                buffer,
                own,
            });
            return;
        }
        self.things.push(Thing {
            mtype: it.mtype,
            what,
            pointer: it.pointer,
            image: it.image,
            domain: it.domain,
            class: it.class,
            name: text(it.name),
            time,
            offset,
        });
    }
}
