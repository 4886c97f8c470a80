//! Builds the index of a dump in one pass: counts records, collects code, pairs debug records with code, and determines the
//! producer, the skew of debug entries and when code was overwritten.

use std::collections::BTreeMap;

use perfuse_recording::Source;
use rustc_hash::FxHashMap;

use super::consts::RecordTag;
use super::functions::{FunctionTable, NO_INDEX};
use super::index::{
    CodeMove, DebugRecord, DumpIndex, LoadedCode, LostBytes, Pairing, RELEASE_BYTES, UnwindRecord,
};
use super::inline::{self, Extension, RecordSubject};
use super::layout::Move;
use super::names::is_java_method;
use super::producer::Producer;
use super::reader::{FileStart, RawRecord, Reader, ReaderStep};
use super::records::{DebugInfoRecord, LoadRecord, UnwindingInfoRecord};
use super::skew;

/// Reads all records of a file and builds its index.
#[must_use]
pub fn build_index(source: &Source, start: FileStart) -> DumpIndex {
    let mut builder = IndexBuilder::new(start);
    let mut released = 0u64;
    source.prepare(0..RELEASE_BYTES as usize);
    let mut reader = Reader::new(source, start.endian, start.first_record, 0);
    while let Some(step) = reader.next() {
        match step {
            ReaderStep::Record(record) => builder.add_record(&record),
            ReaderStep::Header(offset, header) => builder.index.later_headers.push((offset, header)),
            ReaderStep::Lost { offset, len, prefix, at_end } => {
                builder.index.lost.push(LostBytes { offset, len, prefix, at_end, index: reader.index() });
            }
        }
        if reader.offset().saturating_sub(released) > RELEASE_BYTES {
            source.release(released as usize..reader.offset() as usize);
            released = reader.offset();
            source.prepare(released as usize..released.saturating_add(RELEASE_BYTES) as usize);
        }
    }
    source.release(released as usize..source.len());
    builder.finish(source)
}

/// An index under construction, with the records that are not yet paired with code.
struct IndexBuilder {
    index: DumpIndex,
    /// Latest unpaired JIT_CODE_DEBUG_INFO by the address of its code.
    pending: FxHashMap<u64, u32>,
    /// The JIT_CODE_DEBUG_INFO since the last load, or `NO_INDEX`.
    last_debug: u32,
    /// The unwinding record that applies to the next code, or `NO_INDEX`.
    unwind: u32,
    /// Latest unpaired record of an inline dialect by the address of its code.
    pending_inline: FxHashMap<u64, u32>,
    /// Records of inline dialects since the last load that do not contain the start of their code.
    unaddressed_inline: Vec<(u32, RecordSubject)>,
    /// Tiers of code that is not loaded yet, by address.
    pending_tier: FxHashMap<u64, u32>,
    /// Latest code by the writer's number for it.
    by_code_index: FxHashMap<u64, u32>,
    /// Index of a kind in the counts.
    kinds: FxHashMap<RecordTag, usize>,
}

impl IndexBuilder {
    fn new(start: FileStart) -> Self {
        Self {
            index: DumpIndex {
                endian: start.endian,
                header: start.header,
                first_record: start.first_record,
                later_headers: Vec::new(),
                producer: Producer::Unknown,
                skew: 0,
                counts: Vec::new(),
                span: None,
                codes: Vec::new(),
                debug_records: Vec::new(),
                embedded_files: Vec::new(),
                unwind_records: Vec::new(),
                moves: Vec::new(),
                lost: Vec::new(),
                functions: FunctionTable::default(),
            },
            pending: FxHashMap::default(),
            last_debug: NO_INDEX,
            unwind: NO_INDEX,
            pending_inline: FxHashMap::default(),
            unaddressed_inline: Vec::new(),
            pending_tier: FxHashMap::default(),
            by_code_index: FxHashMap::default(),
            kinds: FxHashMap::default(),
        }
    }

    fn add_record(&mut self, record: &RawRecord<'_>) {
        let tag = inline::effective_tag(record);
        let next = self.index.counts.len();
        let kind = *self.kinds.entry(tag).or_insert(next);
        match self.index.counts.get_mut(kind) {
            Some((_, count)) => *count = count.saturating_add(1),
            None => self.index.counts.push((tag, 1)),
        }
        let at = record.prefix.timestamp;
        self.index.span = Some(self.index.span.map_or((at, at), |(a, b)| (a.min(at), b.max(at))));
        match record.tag() {
            RecordTag::JIT_CODE_LOAD => self.add_load(record),
            RecordTag::JIT_CODE_DEBUG_INFO => self.add_debug_info(record),
            RecordTag::JIT_CODE_MOVE => self.add_move(record),
            RecordTag::JIT_CODE_UNWINDING_INFO => self.add_unwinding_info(record),
            _ => self.add_extension(record),
        }
    }

    fn add_debug_info(&mut self, record: &RawRecord<'_>) {
        let Ok(info) = DebugInfoRecord::decode(record.cursor()) else { return };
        let id = self.add_debug_record(record, info.fixed.code_addr);
        self.last_debug = id;
        if let Some(replaced) = self.pending.insert(info.fixed.code_addr, id)
            && let Some(debug) = self.index.debug_records.get_mut(replaced as usize)
        {
            debug.pairing = Pairing::Replaced;
        }
    }

    /// Adds an unwinding record unless it contains no frames, like V8's without `--perf-prof-unwinding-info`.
    fn add_unwinding_info(&mut self, record: &RawRecord<'_>) {
        self.unwind = NO_INDEX;
        if UnwindingInfoRecord::decode(record.cursor()).is_ok_and(|info| !info.parts().1.is_empty()) {
            self.unwind = self.index.unwind_records.len() as u32;
            self.index.unwind_records.push(UnwindRecord {
                offset: record.offset,
                index: record.index,
                code: NO_INDEX,
            });
        }
    }

    fn add_extension(&mut self, record: &RawRecord<'_>) {
        let Some(extension) = inline::extension(record) else { return };
        extension.visit_inlined_functions(|function| {
            self.index.functions.declare(function);
        });
        match (extension.subject(), extension) {
            (Some(RecordSubject::Code(code_addr)), _) => {
                let id = self.add_inline_record(record, code_addr);
                if let Some(replaced) = self.pending_inline.insert(code_addr, id)
                    && let Some(debug) = self.index.debug_records.get_mut(replaced as usize)
                {
                    debug.pairing = Pairing::Replaced;
                }
            }
            (Some(subject), _) => {
                let id = self.add_inline_record(record, 0);
                self.unaddressed_inline.push((id, subject));
            }
            (None, Extension::Tier(tier)) => {
                let name = self.index.functions.intern_tier(&String::from_utf8_lossy(tier.name));
                self.pending_tier.insert(tier.code_addr, name);
            }
            (None, _) => self.index.embedded_files.push((record.offset, record.index)),
        }
    }

    fn add_inline_record(&mut self, record: &RawRecord<'_>, code_addr: u64) -> u32 {
        let id = self.add_debug_record(record, code_addr);
        if let Some(debug) = self.index.debug_records.get_mut(id as usize) {
            debug.inline = true;
        }
        id
    }

    /// Pairs code that is loaded now with its records of inline dialects. The result is the one that is used: one that
    /// contains its address, else the last one for the next load, else the first that contains an address within the code.
    fn pair_inline(&mut self, id: u32, start: u64, size: u64) -> u32 {
        let mut inline = self.pending_inline.remove(&start);
        let (mut next, mut within) = (None, None);
        for (debug, subject) in std::mem::take(&mut self.unaddressed_inline) {
            match subject {
                RecordSubject::Within(address) if address.wrapping_sub(start) < size => {
                    self.pair(debug, id, Pairing::Next);
                    within = within.or(Some(debug));
                }
                RecordSubject::Next => {
                    if let Some(replaced) = next.replace(debug) {
                        self.pair(replaced, id, Pairing::Replaced);
                    }
                    // A function may be described in several dialects: each record has its code.
                    self.pair(debug, id, Pairing::Next);
                }
                RecordSubject::Within(_) | RecordSubject::Code(_) => {}
            }
        }
        inline = inline.or(next).or(within);
        let inline = inline.unwrap_or(NO_INDEX);
        let load_before = self.index.codes.last().map_or(0, |code| code.index);
        let batched =
            self.index.debug_records.get(inline as usize).is_some_and(|debug| debug.index < load_before);
        self.pair(inline, id, if batched { Pairing::Address } else { Pairing::Next });
        inline
    }

    fn add_debug_record(&mut self, record: &RawRecord<'_>, code_addr: u64) -> u32 {
        let id = self.index.debug_records.len() as u32;
        let (offset, index) = (record.offset, record.index);
        self.index.debug_records.push(DebugRecord {
            offset,
            index,
            code_addr,
            code: NO_INDEX,
            inline: false,
            pairing: Pairing::Orphan,
        });
        id
    }

    fn add_load(&mut self, record: &RawRecord<'_>) {
        let Ok(load) = LoadRecord::decode(record.cursor()) else { return };
        let mut name = self.index.functions.intern(load.name);
        let id = self.index.codes.len() as u32;
        let start = if load.fixed.code_addr == 0 { load.fixed.vma } else { load.fixed.code_addr };
        let last = std::mem::replace(&mut self.last_debug, NO_INDEX);
        let (debug, pairing) = match self.pending.remove(&start) {
            Some(debug) if debug == last => (debug, Pairing::Next),
            Some(debug) => (debug, Pairing::Address),
            None => (NO_INDEX, Pairing::Orphan),
        };
        self.pair(debug, id, pairing);
        let inline = self.pair_inline(id, start, load.code.len() as u64);
        if let Some(tier) = self.pending_tier.remove(&start) {
            name.tier = tier;
        }
        self.by_code_index.insert(load.fixed.code_index, id);
        if let Some(unwind) =
            self.index.unwind_records.get_mut(self.unwind as usize).filter(|record| record.code == NO_INDEX)
        {
            unwind.code = id;
        }
        self.index.codes.push(LoadedCode {
            offset: record.offset,
            index: record.index,
            timestamp: record.prefix.timestamp,
            retired: u64::MAX,
            start,
            // Not `code_size`, which may be larger than the record: other code would be attributed to this function.
            size: load.code.len() as u64,
            code_index: load.fixed.code_index,
            pid: load.fixed.pid,
            tid: load.fixed.tid,
            name,
            debug,
            inline,
            unwind: self.unwind,
        });
    }

    /// Pairs a debug record with code. A debug record of `NO_INDEX` has no effect.
    fn pair(&mut self, debug: u32, code: u32, pairing: Pairing) {
        if let Some(debug) = self.index.debug_records.get_mut(debug as usize) {
            debug.code = code;
            debug.pairing = pairing;
        }
    }

    fn add_move(&mut self, record: &RawRecord<'_>) {
        let Ok(fixed) = Move::read(&mut record.cursor()) else { return };
        if let Some(&code) = self.by_code_index.get(&fixed.code_index) {
            let (old, new) = (fixed.old_code_addr, fixed.new_code_addr);
            let timestamp = record.prefix.timestamp;
            self.index.moves.push(CodeMove { offset: record.offset, timestamp, code, old, new });
        }
    }

    /// Pairs the remaining debug records and determines producer, skew and times of overwriting.
    fn finish(mut self, source: &Source) -> DumpIndex {
        self.pair_remaining();
        let index = &mut self.index;
        let vma_is_zero = zero_vmas(index, source);
        let functions = &index.functions;
        let names = index
            .codes
            .iter()
            .filter_map(|code| Some(&*functions.get(code.name.function)?.linkage_name))
            .take(200);
        index.producer = Producer::detect(
            &index.header,
            &source.path,
            names.zip(vma_is_zero.into_iter().chain(std::iter::repeat(false))),
        );
        if index.producer == Producer::OpenJdk {
            mark_stubs_of_the_jvm(index);
        }
        index.skew = skew::of_dump(index, source);
        retire_overwritten_code(index);
        self.index
    }

    /// Pairs debug records that no later load was paired with: with an earlier load at their address, else with the load
    /// that directly follows them.
    fn pair_remaining(&mut self) {
        let index = &mut self.index;
        let mut latest: FxHashMap<u64, u32> = FxHashMap::default();
        let mut next_code = 0usize;
        let orphans = index.debug_records.iter().enumerate();
        let orphans: Vec<usize> = orphans
            .filter(|(_, debug)| debug.pairing == Pairing::Orphan && debug.code_addr != 0 && !debug.inline)
            .map(|(i, _)| i)
            .collect();
        for orphan in orphans {
            let Some(debug) = index.debug_records.get_mut(orphan) else { continue };
            while let Some(code) = index.codes.get(next_code).filter(|code| code.index < debug.index) {
                latest.insert(code.start, next_code as u32);
                next_code = next_code.saturating_add(1);
            }
            let before = latest.get(&debug.code_addr).copied();
            let found = before.map(|code| (code, Pairing::Before)).or_else(|| {
                let next =
                    index.codes.get(next_code).filter(|code| code.index == debug.index.saturating_add(1))?;
                (next.debug == NO_INDEX).then_some((next_code as u32, Pairing::OrderOnly))
            });
            if let Some((id, pairing)) = found
                && let Some(code) = index.codes.get_mut(id as usize).filter(|code| code.debug == NO_INDEX)
            {
                code.debug = orphan as u32;
                debug.code = id;
                debug.pairing = pairing;
            }
        }
    }
}

/// Code of a JVM that is not a compiled method becomes a stub.
fn mark_stubs_of_the_jvm(index: &mut DumpIndex) {
    let tier = index.functions.intern_tier("stub");
    for code in &mut index.codes {
        let function = index.functions.get(code.name.function);
        if !code.name.stub && function.is_some_and(|function| !is_java_method(&function.linkage_name)) {
            code.name.stub = true;
            code.name.tier = tier;
        }
    }
}

/// For each of the first 200 loads, whether it has an address and a `vma` of 0.
fn zero_vmas(index: &DumpIndex, source: &Source) -> Vec<bool> {
    let loads = index.codes.iter().take(200);
    loads
        .map(|code| {
            let record = index.record_at(source, code.offset, code.index);
            let load = record.and_then(|record| LoadRecord::decode(record.cursor()).ok());
            load.is_some_and(|load| load.fixed.vma == 0 && load.fixed.code_addr != 0)
        })
        .collect()
}

/// Replays loads and moves in time order and sets `retired` of code that other code overwrites.
fn retire_overwritten_code(index: &mut DumpIndex) {
    let loads = index.codes.iter().zip(0u32..).map(|(code, id)| CodeEvent {
        timestamp: code.timestamp,
        offset: code.offset,
        id,
        old: None,
        new: code.start,
    });
    let moves = index.moves.iter().map(|m| CodeEvent {
        timestamp: m.timestamp,
        offset: m.offset,
        id: m.code,
        old: Some(m.old),
        new: m.new,
    });
    let mut events: Vec<CodeEvent> = loads.chain(moves).collect();
    if !events.is_sorted() {
        events.sort_unstable();
    }
    let mut live: BTreeMap<(u32, u64), (u64, u32)> = BTreeMap::new();
    for event in events {
        let Some(code) = index.codes.get(event.id as usize).copied() else { continue };
        if let Some(old) = event.old {
            live.remove(&(code.pid, old));
        }
        let end = event.new.saturating_add(code.size.max(1));
        while let Some((&key, &(live_end, id))) = live.range(..(code.pid, end)).next_back() {
            if key.0 != code.pid || live_end <= event.new {
                break;
            }
            live.remove(&key);
            if let Some(old) = index.codes.get_mut(id as usize).filter(|_| id != event.id) {
                old.retired = event.timestamp;
            }
        }
        live.insert((code.pid, event.new), (end, event.id));
    }
}

/// A load or a move; ordered by time, then by offset in the file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct CodeEvent {
    timestamp: u64,
    offset: u64,
    id: u32,
    old: Option<u64>,
    new: u64,
}
