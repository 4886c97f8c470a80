//! Definitions in a log: methods and their code, classes, images, threads, native symbols, counters and so on.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::consts::{EventByte, metadata as mtypes};
use crate::reader::EventBuffer;
use crate::records::{Event, EventBody, Metadata};

/// Definitions in file order.
#[derive(Debug, Default)]
pub struct Definitions {
    /// Compiled methods.
    pub methods: Vec<MethodRecord>,
    /// Code that the runtime generated for itself.
    pub helpers: Vec<HelperRecord>,
    /// Loads, unloads and names of classes, images, assemblies, domains, contexts and vtables.
    pub metadata: Vec<MetadataRecord>,
    /// Starts, ends and names of threads.
    pub threads: Vec<ThreadRecord>,
    /// Native symbols.
    pub symbols: Vec<SymbolRecord>,
    /// Mapped native binaries.
    pub binaries: Vec<BinaryRecord>,
    /// Descriptions of counters.
    pub counters: Vec<CounterRecord>,
    /// Starts and ends of heapshots.
    pub heapshots: Vec<HeapshotBoundary>,
    /// Registrations and unregistrations of root memory.
    pub roots: Vec<RootRecord>,
    /// Number of frames and instruction pointers in all backtraces and samples.
    pub num_frames: u64,
    /// Thread and index of the current buffer.
    buffer: (u64, usize),
    /// Time of the last timed event in it.
    time: u64,
}

/// A METHOD_JIT event.
#[derive(Clone, Debug)]
pub struct MethodRecord {
    /// The method.
    pub method: u64,
    /// Address of its code.
    pub code: u64,
    /// Size of its code in bytes; 0 if it has none of its own.
    pub size: u64,
    /// Its name.
    pub name: Box<str>,
    /// Time of the event.
    pub time: u64,
    /// Thread of the buffer.
    pub thread: u64,
    /// Index of the buffer.
    pub buffer: usize,
    /// File offset of the event.
    pub offset: u64,
}

/// A JITHELPER event.
#[derive(Clone, Debug)]
pub struct HelperRecord {
    /// Purpose of the code.
    pub kind: u64,
    /// Address of the code.
    pub code: u64,
    /// Size in bytes, as stored.
    pub size: u64,
    /// Its own name; empty if it has none.
    pub name: Box<str>,
    /// Time of the event.
    pub time: u64,
    /// File offset of the event.
    pub offset: u64,
}

/// A METADATA event of a class, image, assembly, domain, context or vtable.
#[derive(Clone, Debug)]
pub struct MetadataRecord {
    /// Kind of the subject, see [`metadata`](mtypes).
    pub mtype: u64,
    /// Event byte: name, load or unload.
    pub what: EventByte,
    /// Address or id of the subject.
    pub pointer: u64,
    /// For a class or assembly: its image.
    pub image: u64,
    /// For a context or vtable: its domain.
    pub domain: u64,
    /// For a vtable: its class.
    pub class: u64,
    /// Its name.
    pub name: Box<str>,
    /// Time of the event.
    pub time: u64,
    /// File offset of the event.
    pub offset: u64,
}

/// A METADATA event of a thread.
#[derive(Clone, Debug)]
pub struct ThreadRecord {
    /// Id of the thread.
    pub thread: u64,
    /// Event byte: name, start or end.
    pub what: EventByte,
    /// Name of the thread, for a name event.
    pub name: Box<str>,
    /// Time of the event.
    pub time: u64,
    /// Index of the buffer.
    pub buffer: usize,
    /// Whether the buffer is of the same thread.
    pub own: bool,
}

/// A SAMPLE_USYM event: a native symbol.
#[derive(Clone, Debug)]
pub struct SymbolRecord {
    /// Its address.
    pub address: u64,
    /// Its size in bytes; 0 if unknown.
    pub size: u64,
    /// Its name.
    pub name: Box<str>,
}

/// A SAMPLE_UBIN event: a mapped native binary.
#[derive(Clone, Debug)]
pub struct BinaryRecord {
    /// Address of the mapping.
    pub address: u64,
    /// Offset in the file.
    pub file_offset: u64,
    /// Size in bytes.
    pub size: u64,
    /// Its path.
    pub path: Box<str>,
    /// Time of the event.
    pub time: u64,
    /// File offset of the event.
    pub offset: u64,
}

/// A HEAP_START or HEAP_END event.
#[derive(Clone, Copy, Debug)]
pub struct HeapshotBoundary {
    /// Whether it is the start.
    pub is_start: bool,
    /// Thread of the buffer.
    pub thread: u64,
    /// Time of the event.
    pub time: u64,
    /// File offset of the event.
    pub offset: u64,
}

/// A HEAP_ROOT_REGISTER or HEAP_ROOT_UNREGISTER event.
#[derive(Clone, Debug)]
pub struct RootRecord {
    /// First address of the memory.
    pub start: u64,
    /// Size in bytes; `None` for the end of a registration.
    pub size: Option<u64>,
    /// Source, see [`root_source_name`](crate::consts::root_source_name).
    pub source: u64,
    /// Address of the owner: a vtable, a thread or a domain.
    pub key: u64,
    /// Description in words.
    pub name: Box<str>,
    /// Time of the event.
    pub time: u64,
}

/// A description of a counter in a COUNTERS_DESC event.
#[derive(Clone, Debug)]
pub struct CounterRecord {
    /// Index of the counter.
    pub index: u64,
    /// Section.
    pub section: u64,
    /// Category of a performance counter.
    pub category: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// Type of its values.
    pub kind: u64,
    /// Unit, in bits 24 to 27.
    pub unit: u64,
    /// Variance, in bits 28 to 30.
    pub variance: u64,
    /// File offset of the event.
    pub offset: u64,
}

/// Text with invalid UTF-8 replaced.
fn text(bytes: &[u8]) -> Box<str> {
    String::from_utf8_lossy(bytes).into()
}

impl Definitions {
    /// Adds the definitions of the following buffers.
    pub(super) fn append(&mut self, other: Self) {
        self.methods.extend(other.methods);
        self.helpers.extend(other.helpers);
        self.metadata.extend(other.metadata);
        self.threads.extend(other.threads);
        self.symbols.extend(other.symbols);
        self.binaries.extend(other.binaries);
        self.counters.extend(other.counters);
        self.heapshots.extend(other.heapshots);
        self.roots.extend(other.roots);
        self.num_frames = self.num_frames.saturating_add(other.num_frames);
    }

    /// Starts a buffer.
    pub(super) fn begin_buffer(&mut self, number: usize, buffer: &EventBuffer, mask: u64) {
        self.buffer = (buffer.header.thread_id & mask, number);
        self.time = buffer.header.time_base;
    }

    /// Advances the time over events that define nothing.
    #[inline]
    pub(super) fn advance_to(&mut self, time: u64) {
        self.time = time;
    }

    /// Whether the current buffer has a METADATA event about its own thread.
    pub(super) fn has_own_thread_event(&self) -> bool {
        let (_, number) = self.buffer;
        self.threads.iter().rev().take_while(|record| record.buffer == number).any(|record| record.own)
    }

    /// Time of the last timed event in the current buffer.
    pub(super) fn time(&self) -> u64 {
        self.time
    }

    /// Stores what an event defines.
    #[inline]
    pub(super) fn add_event(&mut self, event: &Event<'_>) {
        if let Some(time) = event.time {
            self.time = time;
        }
        let (time, offset) = (self.time, event.offset);
        let (thread, buffer) = self.buffer;
        self.num_frames = self.num_frames.wrapping_add(event.frames.len() as u64);
        match &event.body {
            EventBody::Alloc { .. }
            | EventBody::Call { .. }
            | EventBody::HeapObject(_)
            | EventBody::GcMove => {}
            EventBody::SampleHit { .. } => {
                self.num_frames = self.num_frames.wrapping_add(event.addresses.len() as u64);
            }
            EventBody::HeapshotBoundary => {
                let is_start = event.byte == EventByte::HEAP_START;
                self.heapshots.push(HeapshotBoundary { is_start, thread, time, offset });
            }
            EventBody::RootRegister { start, size, source, key, name } => {
                let (start, size, source, key) = (*start, Some(*size), *source, *key);
                self.roots.push(RootRecord { start, size, source, key, name: text(name), time });
            }
            EventBody::RootUnregister { start } => {
                let start = *start;
                self.roots.push(RootRecord { start, size: None, source: 0, key: 0, name: text(b""), time });
            }
            EventBody::Jit { method, code, size, name } => self.methods.push(MethodRecord {
                method: *method,
                code: *code,
                size: *size,
                name: text(name),
                time,
                thread,
                buffer,
                offset,
            }),
            EventBody::JitHelper { kind, code, size, name } => {
                let name = text(name);
                self.helpers.push(HelperRecord { kind: *kind, code: *code, size: *size, name, time, offset });
            }
            EventBody::Metadata(it) => self.add_metadata(event.byte, it, time, offset),
            EventBody::SampleUsym { address, size, name } => {
                self.symbols.push(SymbolRecord { address: *address, size: *size, name: text(name) });
            }
            EventBody::SampleUbin { address, offset: file_offset, size, name } => {
                self.binaries.push(BinaryRecord {
                    address: *address,
                    file_offset: *file_offset,
                    size: *size,
                    path: text(name),
                    time,
                    offset,
                })
            }
            EventBody::CountersDesc => {
                self.counters.extend(event.descriptions.iter().map(|it| CounterRecord {
                    index: it.index,
                    section: it.section,
                    category: text(it.category),
                    name: text(it.name),
                    kind: it.kind,
                    unit: it.unit,
                    variance: it.variance,
                    offset,
                }))
            }
            _ => {}
        }
    }

    /// Stores a METADATA event.
    fn add_metadata(&mut self, what: EventByte, it: &Metadata<'_>, time: u64, offset: u64) {
        let (thread, buffer) = self.buffer;
        if it.mtype == mtypes::THREAD {
            let own = thread == it.pointer;
            self.threads.push(ThreadRecord {
                thread: it.pointer,
                what,
                name: text(it.name),
                time,
                buffer,
                own,
            });
            return;
        }
        self.metadata.push(MetadataRecord {
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

/// Size that the code of no method has.
const MAX_CODE_BYTES: u64 = 1 << 22;
/// Addresses that can contain code: neither the first page nor beyond 48 bits.
const PLAUSIBLE: std::ops::Range<u64> = 0x1000..1 << 48;
/// Upper halves of pointers into the heap, stacks and libraries of a 64-bit program; as a size, 4 KiB to 64 KiB.
const UPPER_HALVES: std::ops::Range<u64> = 0x1000..0x1_0000;
/// A region of memory of this size contains either code or none.
const REGION_BITS: u32 = 28;
/// Upper halves of addresses where neither programs nor libraries are, so that a few methods alone there are none.
const EMPTY_HALVES: std::ops::Range<u64> = 1..UPPER_HALVES.start;
/// A region there with so few of so many methods contains none.
const FEW_OF_MANY: (u64, usize) = (2, 100);
/// Size from which on code is invalid that is alone in its region or contains the starts of others; less may be code of a program,
/// or of a domain that was unloaded.
const LARGE_CODE_BYTES: u64 = 1 << 16;

/// Sets the size of methods without code of their own to 0.
///
/// Profiler 3.0 reports wrong addresses and sizes for some of them: it writes the description of a method when its
/// buffer is flushed, and by then the memory it reads may have been freed and reused. Most often the size then is the
/// upper half of a pointer; the address may be two small numbers, far from all code, and the size that of code of others, too.
pub fn clear_invalid_sizes(methods: &mut [MethodRecord]) {
    for method in methods.iter_mut() {
        if !PLAUSIBLE.contains(&method.code) || method.size >= MAX_CODE_BYTES {
            method.size = 0;
        }
    }
    let halves: FxHashSet<u64> =
        methods.iter().map(|it| it.code >> 32).filter(|half| UPPER_HALVES.contains(half)).collect();
    // For each region: the number of methods in it, and the number of those whose size is the upper half of a
    // pointer.
    let mut regions = FxHashMap::<u64, (u64, u64)>::default();
    for method in methods.iter().filter(|it| it.size > 0) {
        let (all, num_invalid) = regions.entry(method.code >> REGION_BITS).or_default();
        *all = all.saturating_add(1);
        *num_invalid = num_invalid.saturating_add(u64::from(halves.contains(&method.size)));
    }
    for method in methods.iter_mut() {
        let (all, num_invalid) = regions.get(&(method.code >> REGION_BITS)).copied().unwrap_or_default();
        if halves.contains(&method.size) || num_invalid.saturating_mul(2) > all {
            method.size = 0;
        }
    }
    clear_stray_code(methods);
}

/// Sets the size of code to 0 that is far from all other code, or that contains others'. Code of a byte is what
/// `perfuse convert` writes for methods of other recordings.
fn clear_stray_code(methods: &mut [MethodRecord]) {
    let starts: BTreeSet<u64> = methods.iter().filter(|it| it.size > 0).map(|it| it.code).collect();
    let (few, many) = FEW_OF_MANY;
    let mut regions = FxHashMap::<u64, u64>::default();
    for start in &starts {
        let num = regions.entry(start >> REGION_BITS).or_default();
        *num = num.saturating_add(1);
    }
    let contains_others = |it: &MethodRecord| {
        let inside = it.code.saturating_add(1)..it.code.saturating_add(it.size);
        it.size >= LARGE_CODE_BYTES && starts.range(inside).nth(1).is_some()
    };
    for method in methods.iter_mut().filter(|it| it.size > 1) {
        let is_alone =
            starts.len() >= many && regions.get(&(method.code >> REGION_BITS)).is_some_and(|&num| num <= few);
        let is_odd = EMPTY_HALVES.contains(&(method.code >> 32))
            || (method.code >> 32 == 0 && method.size >= LARGE_CODE_BYTES);
        if (is_alone && is_odd) || contains_others(method) {
            method.size = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(code: &[(u64, u64)]) -> Vec<u64> {
        let method = |&(code, size): &(u64, u64)| MethodRecord {
            method: 0,
            code,
            size,
            name: "".into(),
            time: 0,
            thread: 0,
            buffer: 0,
            offset: 0,
        };
        let mut methods: Vec<_> = code.iter().map(method).collect();
        clear_invalid_sizes(&mut methods);
        methods.iter().map(|it| it.size).collect()
    }

    #[test]
    fn implausible_addresses_and_sizes_are_cleared() {
        let all_ones = u64::MAX;
        assert_eq!(
            sizes(&[(0x4000_1000, 40), (0, 40), (0x4000_2000, all_ones), (all_ones, 7)]),
            [40, 0, 0, 0]
        );
    }

    #[test]
    fn halves_of_pointers_are_not_sizes() {
        let (heap, library) = (0x5563_c543_0000, 0x7f89_0c00_0000);
        let code = [
            (0x4000_1000, 250),
            (library, 42),
            (library + 0x100, 63),
            (library + 0xa57, 0x7f89),
            (heap, 0x5563),
            (heap + 16, 0x7f89),
            (heap + 32, 256),
            (0x4000_2000, 0x5563),
        ];
        assert_eq!(sizes(&code), [250, 42, 63, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn code_far_from_others_or_with_others_in_it_is_cleared() {
        let near: Vec<_> = (0..100).map(|at| (0x4000_1000 + at * 0x100, 0x80)).collect();
        let valid = [
            (0x7f52_406c_2040, 16),
            (0x40_1000, 90),
            (0x1_ffff_fff0, 1),
            (0x4100_0000, 0x2_0000),
            (0x4002_0000, 0x100_000),
        ];
        let stray =
            [(0x36e_0010, 1_069_096), (0x4_0000_0004, 4), (0x6_5e00_0001, 1637), (0x4000_1080, 351_028)];
        let found = sizes(&[&near[..], &valid, &stray].concat());
        assert_eq!(found[..100], [0x80; 100]);
        assert_eq!(found[100..], [16, 90, 1, 0x2_0000, 0x100_000, 0, 0, 0, 0]);
        assert_eq!(sizes(&[near[0], stray[1]]), [0x80, 4], "too few to state where code is");
    }

    #[test]
    fn code_on_the_heap_is_retained() {
        // An interpreter allocates its methods on the heap.
        let heap = 0x5563_c543_0000;
        assert_eq!(
            sizes(&[(heap, 69), (heap + 128, 20), (heap + 256, 0x5563), (heap + 384, 13)]),
            [69, 20, 0, 13]
        );
    }
}
