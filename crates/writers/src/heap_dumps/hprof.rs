//! HPROF: heap dumps of Java, for Eclipse MAT, `VisualVM` and other readers.
//!
//! The layout is that of the JDK's `src/hotspot/share/services/heapDumper.cpp`. All numbers are big-endian.

use std::collections::BTreeMap;
use std::io::Write;

use perfuse_engine::heap::SnapshotRoot;
use rustc_hash::FxHashMap;

use super::classes::{ClassLayout, Words};
use super::{HeapDump, go_on};
use crate::{Error, Progress, Spool};

/// Tags of records.
mod record {
    pub const STRING: u8 = 0x01;
    pub const LOAD_CLASS: u8 = 0x02;
    pub const STACK_TRACE: u8 = 0x05;
    pub const HEAP_DUMP_SEGMENT: u8 = 0x1c;
    pub const HEAP_DUMP_END: u8 = 0x2c;
}

/// Tags within a heap dump.
mod dumped {
    pub const ROOT_UNKNOWN: u8 = 0xff;
    pub const ROOT_JNI_GLOBAL: u8 = 0x01;
    pub const ROOT_JAVA_FRAME: u8 = 0x03;
    pub const ROOT_STICKY_CLASS: u8 = 0x05;
    pub const ROOT_THREAD_BLOCK: u8 = 0x06;
    pub const CLASS: u8 = 0x20;
    pub const INSTANCE: u8 = 0x21;
    pub const OBJECT_ARRAY: u8 = 0x22;
}

/// Types of fields.
const OBJECT: u8 = 2;
const BYTE: u8 = 8;
const SHORT: u8 = 9;
const INT: u8 = 10;
const LONG: u8 = 11;

/// The only stack trace, which has no frames.
const TRACE: u32 = 1;

/// Size of a segment, in bytes.
const SEGMENT: usize = 1 << 20;

/// Classes that readers look for, each with the index of the class above it.
const JAVA: [(&str, usize); 7] = [
    ("java/lang/Object", 0),
    ("java/lang/Class", 0),
    ("java/lang/ref/Reference", 0),
    ("java/lang/ref/WeakReference", REFERENCE),
    ("java/lang/ref/SoftReference", REFERENCE),
    ("java/lang/ref/FinalReference", REFERENCE),
    ("java/lang/ref/PhantomReference", REFERENCE),
];

/// The one of them that has a field.
const REFERENCE: usize = 2;

/// Writes a snapshot; `pointer_bytes` is 4 or 8, `time_ms` its time since 1970.
///
/// Objects of one size are instances, whose fields are called by their offsets; others are arrays of references, so that
/// readers compute the recorded sizes. Static fields belong to their classes. Weak roots have no form in HPROF.
///
/// # Errors
/// [`Error`]
pub fn write_hprof(
    dump: &HeapDump<'_>,
    pointer_bytes: u32,
    time_ms: u64,
    out: impl Write + Send + 'static,
    progress: &mut Progress<'_>,
) -> Result<(), Error> {
    let words = Words { pointer_bytes };
    let layouts = ClassLayout::all(dump, words);
    let mut writer = HprofWriter {
        dump,
        words,
        layouts,
        spool: Spool::new(out),
        segment: Vec::with_capacity(SEGMENT * 2),
        strings: FxHashMap::default(),
        class_ids: Vec::new(),
        statics: BTreeMap::new(),
    };
    let result = writer.write(time_ms, progress);
    let failed = writer.spool.failed();
    let written = writer.spool.finish();
    if !failed {
        result?;
    }
    Ok(written?)
}

struct HprofWriter<'a> {
    dump: &'a HeapDump<'a>,
    words: Words,
    layouts: Vec<ClassLayout>,
    spool: Spool,
    /// What is dumped and not yet written.
    segment: Vec<u8>,
    /// Numbers of texts.
    strings: FxHashMap<Box<str>, u64>,
    /// Ids of classes: those of [`JAVA`], then those of the objects.
    class_ids: Vec<u64>,
    /// Static fields by the type they belong to: the class and the objects.
    statics: BTreeMap<u32, StaticFields>,
}

#[derive(Default)]
struct StaticFields {
    class: Option<usize>,
    roots: Vec<SnapshotRoot>,
}

/// What the record of a class contains; texts are numbers.
struct DescribedClass {
    statics: Vec<(u64, u64)>,
    fields: Vec<(u64, u8)>,
    above: u64,
    size_bytes: u32,
}

impl HprofWriter<'_> {
    fn write(&mut self, time_ms: u64, progress: &mut Progress<'_>) -> Result<(), Error> {
        let out = self.spool.buffer();
        out.extend_from_slice(b"JAVA PROFILE 1.0.2\0");
        out.extend_from_slice(&self.words.pointer_bytes.to_be_bytes());
        out.extend_from_slice(&time_ms.to_be_bytes());
        let trace = [TRACE.to_be_bytes(), 0u32.to_be_bytes(), 0u32.to_be_bytes()].concat();
        self.record(record::STACK_TRACE, &trace);
        self.classes();
        self.roots();
        self.objects(progress)?;
        self.end_segment();
        self.record(record::HEAP_DUMP_END, &[]);
        Ok(())
    }

    fn record(&mut self, tag: u8, body: &[u8]) {
        let out = self.spool.buffer();
        out.push(tag);
        out.extend_from_slice(&0u32.to_be_bytes());
        out.extend_from_slice(&(body.len() as u32).to_be_bytes());
        out.extend_from_slice(body);
        self.spool.flush_if_full();
    }

    fn end_segment(&mut self) {
        if !self.segment.is_empty() {
            let mut segment = std::mem::take(&mut self.segment);
            self.record(record::HEAP_DUMP_SEGMENT, &segment);
            segment.clear();
            self.segment = segment;
        }
    }

    /// Number of a text, after its record.
    fn text(&mut self, text: &str) -> u64 {
        if let Some(&id) = self.strings.get(text) {
            return id;
        }
        let id = self.strings.len() as u64 + 1;
        self.strings.insert(text.into(), id);
        let mut body = Vec::new();
        push_id(&mut body, self.words, id);
        body.extend_from_slice(text.as_bytes());
        self.record(record::STRING, &body);
        id
    }

    /// Names and describes all classes.
    fn classes(&mut self) {
        let dump = self.dump;
        for root in dump.heap.roots().list() {
            if let Some(owner) = root.owner_type_id.filter(|_| dump.heap.roots().kind(root) == "static") {
                self.statics.entry(owner).or_default().roots.push(root.clone());
            }
        }
        let mut names: Vec<String> = JAVA.iter().map(|(name, _)| (*name).to_owned()).collect();
        names.extend(dump.class_names().map(java_name));
        for (number, of) in (JAVA.len()..).zip(dump.heap.objects().types()) {
            if let Some(fields) = of.and_then(|of| self.statics.get_mut(&of)) {
                fields.class = Some(number);
            }
        }
        for (of, fields) in &mut self.statics {
            // A class without objects.
            if fields.class.is_none() {
                fields.class = Some(names.len());
                names.push(java_name(dump.types.get(of).map_or(super::UNKNOWN_TYPE, String::as_str)));
            }
        }
        // Ids that are of no object.
        let free = (1u64..).map(|number| number * 16).filter(|id| dump.heap.objects().find(*id).is_none());
        self.class_ids = free.take(names.len()).collect();
        for (serial, name) in (1u32..).zip(&names) {
            let name = self.text(name);
            let mut body = serial.to_be_bytes().to_vec();
            push_id(&mut body, self.words, self.class_ids[serial as usize - 1]);
            body.extend_from_slice(&TRACE.to_be_bytes());
            push_id(&mut body, self.words, name);
            self.record(record::LOAD_CLASS, &body);
        }
        let statics = std::mem::take(&mut self.statics);
        let mut of_class: FxHashMap<usize, &[SnapshotRoot]> = FxHashMap::default();
        for fields in statics.values() {
            if let Some(class) = fields.class {
                of_class.insert(class, &fields.roots);
            }
        }
        // VisualVM takes what is between the first segment and the last for heap dumps, so all texts precede them.
        let described: Vec<_> = (0..names.len())
            .map(|class| self.described(class, of_class.get(&class).copied().unwrap_or_default()))
            .collect();
        for (class, about) in described.iter().enumerate() {
            self.class(class, about);
        }
        self.statics = statics;
    }

    /// The fields of a class, whose names get records.
    fn described(&mut self, class: usize, statics: &[SnapshotRoot]) -> DescribedClass {
        let words = self.words;
        let layout = class.checked_sub(JAVA.len()).and_then(|number| self.layouts.get(number));
        let layout = layout.filter(|layout| !layout.is_array).cloned().unwrap_or_default();
        let mut fields: Vec<_> = layout
            .fields(words)
            .into_iter()
            .map(|(offset, size)| match size {
                None => (self.text(&format!("+{offset}")), OBJECT),
                Some(size) => (self.text(&format!("+{offset} (not recorded)")), kind_of(size)),
            })
            .collect();
        if class == REFERENCE {
            fields.push((self.text("referent"), OBJECT));
        }
        let above = JAVA.get(class).map_or(0, |(_, above)| *above);
        let referents = u32::from(class == REFERENCE || above == REFERENCE) * words.pointer_bytes;
        let statics = (0..).zip(statics).take(u16::MAX.into()).map(|(number, root): (u32, _)| {
            let name = root
                .slot_address
                .map_or_else(|| format!("static {number}"), |at| format!("static at {at:#x}"));
            (self.text(&name), self.dump.heap.objects().address(root.object))
        });
        DescribedClass {
            statics: statics.collect(),
            fields,
            above: if class == 0 { 0 } else { self.class_ids[above] },
            // Where `java.lang.Object` has a size, readers that guess the size of headers take those of classes as they are.
            size_bytes: words.header() + layout.fields_bytes(words) + referents,
        }
    }

    /// Describes a class, which is a root as long as it has static fields.
    fn class(&mut self, class: usize, about: &DescribedClass) {
        let (words, id) = (self.words, self.class_ids[class]);
        let DescribedClass { statics, fields, above, size_bytes } = about;
        let out = &mut self.segment;
        out.push(dumped::CLASS);
        push_id(out, words, id);
        out.extend_from_slice(&TRACE.to_be_bytes());
        push_id(out, words, *above);
        // Loader, signers, protection domain and two that are reserved.
        (0..5).for_each(|_| push_id(out, words, 0));
        out.extend_from_slice(&size_bytes.to_be_bytes());
        out.extend_from_slice(&0u16.to_be_bytes());
        out.extend_from_slice(&(statics.len() as u16).to_be_bytes());
        for &(name, object) in statics {
            push_id(out, words, name);
            out.push(OBJECT);
            push_id(out, words, object);
        }
        out.extend_from_slice(&(fields.len() as u16).to_be_bytes());
        for &(name, kind) in fields {
            push_id(out, words, name);
            out.push(kind);
        }
        out.push(dumped::ROOT_STICKY_CLASS);
        push_id(out, words, id);
        if out.len() >= SEGMENT {
            self.end_segment();
        }
    }

    /// Roots other than static fields; where the file has none, the objects that stand for them.
    fn roots(&mut self) {
        let (words, heap) = (self.words, self.dump.heap);
        let roots = heap.roots();
        let mut num_statics: FxHashMap<u32, usize> = FxHashMap::default();
        for root in roots.list() {
            let (kind, object) = (roots.kind(root), heap.objects().address(root.object));
            if let Some(owner) = root.owner_type_id.filter(|_| kind == "static") {
                let num = num_statics.entry(owner).or_default();
                *num += 1;
                if *num <= u16::MAX.into() {
                    continue;
                }
            }
            let out = &mut self.segment;
            match (kind, root.owner_thread_id) {
                ("gc_handle", _) => {
                    out.push(dumped::ROOT_JNI_GLOBAL);
                    push_id(out, words, object);
                    push_id(out, words, root.slot_address.unwrap_or_default());
                }
                ("stack", Some(thread)) => {
                    out.push(dumped::ROOT_JAVA_FRAME);
                    push_id(out, words, object);
                    out.extend_from_slice(&thread.saturating_add(1).to_be_bytes());
                    // No frame.
                    out.extend_from_slice(&u32::MAX.to_be_bytes());
                }
                (_, Some(thread)) => {
                    out.push(dumped::ROOT_THREAD_BLOCK);
                    push_id(out, words, object);
                    out.extend_from_slice(&thread.saturating_add(1).to_be_bytes());
                }
                _ => {
                    out.push(dumped::ROOT_UNKNOWN);
                    push_id(out, words, object);
                }
            }
            if out.len() >= SEGMENT {
                self.end_segment();
            }
        }
        if heap.has_roots() {
            return;
        }
        for &entry in heap.unreachable_entries() {
            self.segment.push(dumped::ROOT_UNKNOWN);
            push_id(&mut self.segment, words, heap.objects().address(entry));
            if self.segment.len() >= SEGMENT {
                self.end_segment();
            }
        }
    }

    fn objects(&mut self, progress: &mut Progress<'_>) -> Result<(), Error> {
        let objects = self.dump.heap.objects();
        for object in 0..objects.len() as u32 {
            let class = objects.class(object) as usize;
            match self.layouts.get(class) {
                Some(layout) if !layout.is_array => {
                    let num_bytes = layout.fields_bytes(self.words);
                    self.instance(object, class, num_bytes);
                }
                _ => self.array(object, class),
            }
            if self.segment.len() >= SEGMENT {
                self.end_segment();
            }
            go_on(&mut self.spool, object.into(), progress)?;
        }
        Ok(())
    }

    /// An instance has its references where they are in the object.
    fn instance(&mut self, object: u32, class: usize, num_bytes: u32) {
        let Self { dump, words, segment: out, class_ids, .. } = self;
        let objects = dump.heap.objects();
        out.push(dumped::INSTANCE);
        push_id(out, *words, objects.address(object));
        out.extend_from_slice(&TRACE.to_be_bytes());
        push_id(out, *words, class_ids[JAVA.len() + class]);
        out.extend_from_slice(&num_bytes.to_be_bytes());
        let start = out.len();
        out.resize(start + num_bytes as usize, 0);
        for (target, offset) in dump.heap.references_from(object) {
            let at = start + (offset.unwrap_or_default() - words.header()) as usize;
            put_id(&mut out[at..], *words, objects.address(target));
        }
    }

    /// An array has its references where they are in the object, as far as that is known.
    fn array(&mut self, object: u32, class: usize) {
        let Self { dump, words, segment: out, class_ids, .. } = self;
        let objects = dump.heap.objects();
        let references = dump.heap.references_from(object);
        let (head, word) = (u64::from(words.array_header()), u64::from(words.pointer_bytes));
        let num_words = (objects.size(object).saturating_sub(head) / word).max(references.len() as u64);
        out.push(dumped::OBJECT_ARRAY);
        push_id(out, *words, objects.address(object));
        out.extend_from_slice(&TRACE.to_be_bytes());
        out.extend_from_slice(&(num_words as u32).to_be_bytes());
        push_id(out, *words, class_ids[JAVA.len() + class]);
        let (start, width) = (out.len(), words.pointer_bytes as usize);
        out.resize(start + num_words as usize * width, 0);
        let slots = &mut out[start..];
        let mut free = 0;
        for (target, offset) in references {
            let recorded = offset.and_then(|offset| u64::from(offset).checked_sub(head));
            let recorded = recorded.map(|offset| (offset / word) as usize * width);
            let is_free = |slots: &[u8], at: usize| {
                slots.get(at..at + width).is_some_and(|slot| slot.iter().all(|byte| *byte == 0))
            };
            let at = recorded.filter(|&at| is_free(slots, at)).unwrap_or_else(|| {
                while !is_free(slots, free) && free < slots.len() {
                    free += width;
                }
                free
            });
            if at < slots.len() {
                put_id(&mut slots[at..], *words, objects.address(target));
            }
        }
    }
}

/// The name of a class as the virtual machine of Java spells it; readers spell it as it was again.
fn java_name(name: &str) -> String {
    let mut element = name;
    let mut dimensions = String::new();
    while let Some(rest) = element.strip_suffix("[]") {
        element = rest;
        dimensions.push('[');
    }
    if dimensions.is_empty() { element.to_owned() } else { format!("{dimensions}L{element};") }
}

fn kind_of(size: u32) -> u8 {
    match size {
        8 => LONG,
        4 => INT,
        2 => SHORT,
        _ => BYTE,
    }
}

#[inline]
fn push_id(out: &mut Vec<u8>, words: Words, id: u64) {
    if words.pointer_bytes == 8 {
        out.extend_from_slice(&id.to_be_bytes());
    } else {
        out.extend_from_slice(&(id as u32).to_be_bytes());
    }
}

#[inline]
fn put_id(out: &mut [u8], words: Words, id: u64) {
    if words.pointer_bytes == 8 {
        out[..8].copy_from_slice(&id.to_be_bytes());
    } else {
        out[..4].copy_from_slice(&(id as u32).to_be_bytes());
    }
}
