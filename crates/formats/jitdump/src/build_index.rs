//! Builds the index of a dump in one pass: counts records, collects code, pairs debug records with code, and determines the
//! producer, the skew of debug entries and when code was overwritten.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rustc_hash::FxHashMap;

use super::consts::RecordTag;
use super::functions::{FunctionTable, InternedName, NO_INDEX};
use super::index::{CodeMove, DebugRecord, DumpIndex, LoadedCode, LostBytes, Pairing, UnwindRecord};
use super::inline::{self, Extension, RecordSubject};
use super::layout::Move;
use super::names::is_java_method;
use super::producer::Producer;
use super::reader::{FileStart, RawRecord, ReaderStep};
use super::records::{DebugInfoRecord, LoadRecord, UnwindingInfoRecord};
use super::skew;

/// An index under construction, with the records that are not yet paired with code.
///
/// [`settle`](Self::settle) determines what depends on all records so far. More records may be added after it: what it assumed
/// is then withdrawn, so that the index is the same however often it was settled.
#[derive(Debug)]
pub struct IndexBuilder {
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
    /// Debug records that were paired with code because no later load had their address so far: record and code.
    assumed_pairs: Vec<(u32, u32)>,
    /// Code that was marked as a stub of the JVM, with its name before that: the producer may turn out to be another.
    marked_stubs: Vec<(u32, InternedName)>,
    /// Number of pieces of code whose stubs are marked.
    num_marked: usize,
    is_producer_final: bool,
    is_skew_final: bool,
    replay: Replay,
}

/// Number of loads that the producer is determined from.
const LOADS_OF_PRODUCER: usize = 200;
/// Number of loads after which that of the whole file is estimated.
#[cfg(feature = "tables")]
const LOADS_OF_ESTIMATE: usize = 4096;
/// Most rows of a table that memory is reserved for.
#[cfg(feature = "tables")]
const MOST_RESERVED: usize = 1 << 18;

impl IndexBuilder {
    /// An index without records.
    pub fn new(start: FileStart) -> Self {
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
            assumed_pairs: Vec::new(),
            marked_stubs: Vec::new(),
            num_marked: 0,
            is_producer_final: false,
            is_skew_final: false,
            replay: Replay::default(),
        }
    }

    /// The index as it was settled last.
    pub fn index(&self) -> &DumpIndex {
        &self.index
    }

    /// Whether debug records are paired with code only as long as no later load has their address.
    pub fn has_assumed_pairs(&self) -> bool {
        !self.assumed_pairs.is_empty()
    }

    /// Adds what a reader found; `next_index` is the index of the record after it.
    pub fn add(&mut self, step: &ReaderStep<'_>, next_index: u64) {
        if let ReaderStep::Header(..) = step {
            // The records after the last header may be those of another program.
            (self.is_producer_final, self.is_skew_final) = (false, false);
        }
        self.withdraw_assumptions();
        match *step {
            ReaderStep::Record(record) => self.add_record(&record),
            ReaderStep::Header(offset, header) => self.index.later_headers.push((offset, header)),
            ReaderStep::Lost { offset, len, prefix, at_end } => {
                self.index.lost.push(LostBytes { offset, len, prefix, at_end, index: next_index });
            }
        }
    }

    /// Reserves memory for the rest of a file of a given length, once enough of it was read to estimate it: vectors that grow are
    /// copied, to memory that the kernel has to clear. Returns whether it did.
    #[cfg(feature = "tables")]
    pub fn reserve_for(&mut self, len: usize) -> bool {
        let index = &mut self.index;
        let Some(last) = index.codes.last().filter(|_| index.codes.len() >= LOADS_OF_ESTIMATE) else {
            return false;
        };
        let (read, rest) = (last.offset, (len as u64).saturating_sub(last.offset));
        let expected = |num: usize| {
            let expected = (num as u64).saturating_mul(rest).checked_div(read).unwrap_or(0);
            usize::try_from(expected).unwrap_or(usize::MAX).min(MOST_RESERVED)
        };
        let (num_codes, num_functions) =
            (expected(index.codes.len()), expected(index.functions.rows().len()));
        index.debug_records.reserve_exact(expected(index.debug_records.len()));
        index.codes.reserve_exact(num_codes);
        index.functions.reserve(num_functions);
        self.by_code_index.reserve(num_codes);
        true
    }

    /// The index of all records.
    #[cfg(feature = "tables")]
    pub fn finish(mut self, data: &[u8], path: &str) -> DumpIndex {
        self.settle(data, path);
        self.index
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

    /// Pairs the remaining debug records and determines producer, skew and times of overwriting. Returns how the life of code
    /// changed.
    pub fn settle(&mut self, data: &[u8], path: &str) -> LifeChanges {
        self.withdraw_assumptions();
        self.pair_remaining();
        let index = &mut self.index;
        if !self.is_producer_final {
            let (begin, header) = index.later_headers.last().copied().unwrap_or((0, index.header));
            let first = index.codes.partition_point(|code| code.offset < begin);
            let latest = index.codes.get(first..).unwrap_or_default();
            // Before the first load after a header, the earlier ones are all that is known.
            let codes = if latest.is_empty() { &index.codes } else { latest };
            let loads = codes.iter().take(LOADS_OF_PRODUCER).filter_map(|code| {
                let name = &*index.functions.get(code.name.function)?.linkage_name;
                Some((name, has_no_vma(index, data, code)))
            });
            let producer = Producer::detect(&header, path, loads);
            self.is_producer_final = latest.len() >= LOADS_OF_PRODUCER;
            index.producer = producer;
        }
        if index.producer == Producer::OpenJdk {
            self.mark_stubs_of_the_jvm();
        }
        if !self.is_skew_final || !self.assumed_pairs.is_empty() {
            let (skew, is_final) = skew::of_dump(&self.index, data, path);
            self.index.skew = skew;
            self.is_skew_final = is_final && self.assumed_pairs.is_empty() && self.is_producer_final;
        }
        self.replay.advance(&mut self.index)
    }

    fn withdraw_assumptions(&mut self) {
        for (debug, code) in self.assumed_pairs.drain(..) {
            if let Some(debug) = self.index.debug_records.get_mut(debug as usize) {
                debug.code = NO_INDEX;
                debug.pairing = Pairing::Orphan;
            }
            if let Some(code) = self.index.codes.get_mut(code as usize) {
                code.debug = NO_INDEX;
            }
        }
        if self.is_producer_final {
            return;
        }
        for (code, name) in self.marked_stubs.drain(..) {
            if let Some(code) = self.index.codes.get_mut(code as usize) {
                code.name = name;
            }
        }
        self.num_marked = 0;
    }

    /// Pairs debug records that no later load was paired with: with an earlier load at their address, else with the load
    /// that directly follows them.
    fn pair_remaining(&mut self) {
        let index = &mut self.index;
        let mut latest: FxHashMap<u64, u32> = FxHashMap::default();
        let mut next_code = 0usize;
        let mut orphans: Vec<u32> = self.pending.values().copied().collect();
        orphans.sort_unstable();
        for orphan in orphans {
            let Some(debug) = index.debug_records.get_mut(orphan as usize) else { continue };
            if debug.pairing != Pairing::Orphan || debug.code_addr == 0 {
                continue;
            }
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
                code.debug = orphan;
                debug.code = id;
                debug.pairing = pairing;
                self.assumed_pairs.push((orphan, id));
            }
        }
    }

    /// Code of a JVM that is not a compiled method becomes a stub.
    fn mark_stubs_of_the_jvm(&mut self) {
        let index = &mut self.index;
        let tier = index.functions.intern_tier("stub");
        for (id, code) in (0u32..).zip(&mut index.codes).skip(self.num_marked) {
            let function = index.functions.get(code.name.function);
            if !code.name.stub && function.is_some_and(|function| !is_java_method(&function.linkage_name)) {
                self.marked_stubs.push((id, code.name));
                code.name.stub = true;
                code.name.tier = tier;
            }
        }
        if self.is_producer_final {
            self.num_marked = index.codes.len();
        }
    }
}

/// Whether the `vma` of code is 0, and its address is not.
fn has_no_vma(index: &DumpIndex, data: &[u8], code: &LoadedCode) -> bool {
    let record = index.record_at(data, code.offset, code.index);
    let load = record.and_then(|record| LoadRecord::decode(record.cursor()).ok());
    load.is_some_and(|load| load.fixed.vma == 0 && load.fixed.code_addr != 0)
}

/// How the life of code changed when an index was settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LifeChanges {
    /// Code was added at the end, and earlier code was overwritten.
    Added {
        /// Index of the first piece of code that was added.
        first: u32,
        /// Indexes of earlier code that was overwritten since.
        overwritten: Vec<u32>,
    },
    /// Records were not in order of time, or code moved: any code may have changed.
    Any,
}

/// Replays loads and moves in time order and sets `retired` of code that other code overwrites.
///
/// Code that moves after other code took its place was not overwritten: a collector that compacts code states its moves
/// afterwards, in any order.
#[derive(Debug, Default)]
struct Replay {
    /// End and code by process and start of what is there now.
    live: BTreeMap<(u32, u64), (u64, u32)>,
    /// Where code that moved is now. The old address that a move states may be another.
    moved: FxHashMap<u32, u64>,
    last: Option<CodeEvent>,
    num_codes: usize,
    num_moves: usize,
}

impl Replay {
    /// Replays what was added to the index; from the beginning where that is earlier than what was replayed.
    fn advance(&mut self, index: &mut DumpIndex) -> LifeChanges {
        let mut events = events(index, self.num_codes, self.num_moves);
        let is_in_order = events.first().is_none_or(|first| self.last.is_none_or(|last| last <= *first));
        let has_moved = index.moves.len() > self.num_moves;
        let first = self.num_codes as u32;
        if !is_in_order {
            self.live.clear();
            self.moved.clear();
            index.codes.iter_mut().for_each(|code| code.retired = u64::MAX);
            events = self::events(index, 0, 0);
        }
        let mut overwritten = Vec::new();
        for event in &events {
            self.replay(event, index, |id| {
                if id < first {
                    overwritten.push(id);
                }
            });
        }
        self.last = events.last().copied().or(self.last);
        (self.num_codes, self.num_moves) = (index.codes.len(), index.moves.len());
        if is_in_order && !has_moved { LifeChanges::Added { first, overwritten } } else { LifeChanges::Any }
    }

    fn replay(&mut self, event: &CodeEvent, index: &mut DumpIndex, mut overwritten: impl FnMut(u32)) {
        let Some(code) = index.codes.get_mut(event.id as usize) else { return };
        if event.is_move {
            let start = self.moved.insert(event.id, event.new).unwrap_or(code.start);
            if let Entry::Occupied(there) = self.live.entry((code.pid, start))
                && there.get().1 == event.id
            {
                there.remove();
            }
            code.retired = u64::MAX;
        }
        let code = *code;
        let end = event.new.saturating_add(code.size.max(1));
        while let Some((&key, &(live_end, id))) = self.live.range(..(code.pid, end)).next_back() {
            if key.0 != code.pid || live_end <= event.new {
                break;
            }
            self.live.remove(&key);
            if let Some(old) = index.codes.get_mut(id as usize).filter(|_| id != event.id) {
                old.retired = event.timestamp;
                overwritten(id);
            }
        }
        self.live.insert((code.pid, event.new), (end, event.id));
    }
}

/// Loads and moves from these indexes on, in order of time.
fn events(index: &DumpIndex, first_code: usize, first_move: usize) -> Vec<CodeEvent> {
    let loads = index.codes.iter().zip(0u32..).skip(first_code).map(|(code, id)| CodeEvent {
        timestamp: code.timestamp,
        offset: code.offset,
        id,
        is_move: false,
        new: code.start,
    });
    let moves = index.moves.iter().skip(first_move).map(|m| CodeEvent {
        timestamp: m.timestamp,
        offset: m.offset,
        id: m.code,
        is_move: true,
        new: m.new,
    });
    let mut events: Vec<CodeEvent> = loads.chain(moves).collect();
    if !events.is_sorted() {
        events.sort_unstable();
    }
    events
}

/// A load or a move; ordered by time, then by offset in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CodeEvent {
    timestamp: u64,
    offset: u64,
    id: u32,
    is_move: bool,
    new: u64,
}
