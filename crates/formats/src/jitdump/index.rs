//! One pass over a dump: what code there was, where, when, and which debug records are about it.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use perfuse_wire::Endian;

use super::consts::{ELF32_HEADER_SKEW, ELF64_HEADER_SKEW, RecordTag};
use super::functions::{Function, Functions, Named};
use super::inline::{self, Extension, Subject};
use super::layout::{FileHeader, Move, RecordPrefix};
use super::lines::Target;
use super::producer::Producer;
use super::reader::{self, Reader, Step};
use super::records::{DebugInfo, Load, RawRecord};
use crate::{Source, machine_pointer_bytes};

/// No partner.
pub const NONE: u32 = u32::MAX;

/// A JIT_CODE_LOAD, as far as look-ups need it.
#[derive(Clone, Copy, Debug)]
pub struct Code {
    /// Offset of the record.
    pub offset: u64,
    /// Index of the record.
    pub index: u64,
    /// Time stamp, as written.
    pub timestamp: u64,
    /// When other code took its place, as written; `u64::MAX` for never.
    pub retired: u64,
    /// Address it was loaded at.
    pub start: u64,
    /// Size in bytes.
    pub size: u64,
    /// The writer's number.
    pub code_index: u64,
    /// Process, as the process sees itself.
    pub pid: u32,
    /// Thread that made it.
    pub tid: u32,
    /// Name, function and tier.
    pub named: Named,
    /// Index of its debug record, or `NONE`.
    pub debug: u32,
    /// Index of its inline-aware debug record, or `NONE`.
    pub inline: u32,
}

/// A record that tells about code: JIT_CODE_DEBUG_INFO or one of the inline dialects.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Offset of the record.
    pub offset: u64,
    /// Index of the record.
    pub index: u64,
    /// Code it says it is about; 0 where the dialect has no address.
    pub code_addr: u64,
    /// Index of the code it was paired with, or `NONE`.
    pub code: u32,
    /// Whether it is of an inline dialect.
    pub inline: bool,
    /// How it was paired.
    pub pairing: Pairing,
}

/// How a debug record found its code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pairing {
    /// The next load, at the same address: the specification's order.
    #[default]
    Next,
    /// A later load, at the same address: written in batches.
    Address,
    /// The next load, at another address.
    OrderOnly,
    /// An earlier load, at the same address.
    Before,
    /// None.
    Orphan,
    /// A later record for the same code came before the load.
    Replaced,
}

/// A JIT_CODE_MOVE that could be followed.
#[derive(Clone, Copy, Debug)]
pub struct Moved {
    /// Offset of the record.
    pub offset: u64,
    /// Time stamp, as written.
    pub timestamp: u64,
    /// Index of the code that moved.
    pub code: u32,
    /// Address before.
    pub old: u64,
    /// Address after.
    pub new: u64,
}

/// Bytes that were no record.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// Where they begin.
    pub offset: u64,
    /// How many; 0 where a record's size is a lie and reading went on inside it.
    pub len: u64,
    /// The prefix that could not be believed.
    pub prefix: Option<RecordPrefix>,
    /// Whether nothing readable follows.
    pub at_end: bool,
    /// Index of the record that would stand there.
    pub index: u64,
}

/// What one pass over a dump finds.
#[derive(Debug)]
pub struct Index {
    /// Byte order.
    pub endian: Endian,
    /// The header.
    pub header: FileHeader,
    /// Offset of the first record.
    pub first_record: u64,
    /// Further headers in the middle of the file.
    pub later_headers: Vec<(u64, FileHeader)>,
    /// Who wrote it.
    pub producer: Producer,
    /// What the producer adds to every debug entry's address.
    pub skew: u64,
    /// Records by kind, in order of first appearance.
    pub counts: Vec<(RecordTag, u64)>,
    /// First and last time stamp.
    pub span: Option<(u64, u64)>,
    /// Loads, in file order.
    pub codes: Vec<Code>,
    /// Debug and inline records, in file order.
    pub abouts: Vec<About>,
    /// Offset and index of records that hold a source text.
    pub embedded: Vec<(u64, u64)>,
    /// Moves, in file order.
    pub moves: Vec<Moved>,
    /// Records that are not whole or not of the format.
    pub losses: Vec<Loss>,
    /// Functions by name.
    pub functions: Functions,
}

/// Pages behind a pass are given back this often.
pub const RELEASE: u64 = 32 << 20;

impl Index {
    /// Reads a source whose header was found good.
    #[must_use]
    pub fn build(source: &Source, start: reader::Start) -> Self {
        let mut pass = Pass::new(start);
        let mut released = 0u64;
        let mut reader = Reader::new(source, start.endian, start.first_record, 0);
        while let Some(step) = reader.next() {
            match step {
                Step::Record(record) => pass.record(&record),
                Step::Header(offset, header) => pass.index.later_headers.push((offset, header)),
                Step::Lost { offset, len, prefix, at_end } => {
                    pass.index.losses.push(Loss { offset, len, prefix, at_end, index: reader.index() });
                }
            }
            if reader.offset().saturating_sub(released) > RELEASE {
                source.release(released as usize..reader.offset() as usize);
                released = reader.offset();
            }
        }
        source.release(released as usize..source.len());
        pass.finish(source)
    }

    /// The debug record of a piece of code, decoded as far as its fixed fields.
    #[must_use]
    pub fn debug_info<'a>(&self, data: &'a [u8], code: &Code) -> Option<(About, DebugInfo<'a>)> {
        let about = *self.abouts.get(code.debug as usize)?;
        let record = self.record_at(data, about.offset, about.index)?;
        Some((about, DebugInfo::decode(record.cursor()).ok()?))
    }

    /// The record at an offset the pass has seen.
    #[must_use]
    pub fn record_at<'a>(&self, data: &'a [u8], offset: u64, index: u64) -> Option<RawRecord<'a>> {
        match Reader::new(data, self.endian, offset, index).next()? {
            Step::Record(record) => Some(record),
            _ => None,
        }
    }

    /// How the lines of a piece of code are to be read.
    #[must_use]
    pub fn target<'a>(&'a self, code: &Code) -> Target<'a> {
        Target {
            start: code.start,
            size: code.size,
            skew: self.skew,
            may_be_corrupt: self.producer == Producer::V8,
            path: self.functions.get(code.named.function).and_then(Function::path).map(str::as_bytes),
        }
    }
}

struct Pass {
    index: Index,
    /// Latest undelivered debug record by address, and by order alone.
    pending: FxHashMap<u64, u32>,
    last_debug: u32,
    /// Latest undelivered inline record by the address of its code.
    pending_inline: FxHashMap<u64, u32>,
    /// Inline records since the last load that do not say where their code starts.
    loose_inline: Vec<(u32, Subject)>,
    /// Tiers of code to come, by address.
    pending_tier: FxHashMap<u64, u32>,
    by_code_index: FxHashMap<u64, u32>,
    /// Where a kind stands in the counts.
    kinds: FxHashMap<RecordTag, usize>,
}

impl Pass {
    fn new(start: reader::Start) -> Self {
        Self {
            index: Index {
                endian: start.endian,
                header: start.header,
                first_record: start.first_record,
                later_headers: Vec::new(),
                producer: Producer::Unknown,
                skew: 0,
                counts: Vec::new(),
                span: None,
                codes: Vec::new(),
                abouts: Vec::new(),
                embedded: Vec::new(),
                moves: Vec::new(),
                losses: Vec::new(),
                functions: Functions::default(),
            },
            pending: FxHashMap::default(),
            last_debug: NONE,
            pending_inline: FxHashMap::default(),
            loose_inline: Vec::new(),
            pending_tier: FxHashMap::default(),
            by_code_index: FxHashMap::default(),
            kinds: FxHashMap::default(),
        }
    }

    fn record(&mut self, record: &RawRecord<'_>) {
        let tag = inline::shown_tag(record);
        let next = self.index.counts.len();
        let kind = *self.kinds.entry(tag).or_insert(next);
        match self.index.counts.get_mut(kind) {
            Some((_, count)) => *count = count.saturating_add(1),
            None => self.index.counts.push((tag, 1)),
        }
        let at = record.prefix.timestamp;
        self.index.span = Some(self.index.span.map_or((at, at), |(a, b)| (a.min(at), b.max(at))));
        match record.tag() {
            RecordTag::JIT_CODE_LOAD => self.load(record),
            RecordTag::JIT_CODE_DEBUG_INFO => self.debug(record),
            RecordTag::JIT_CODE_MOVE => self.moved(record),
            _ => self.extension(record),
        }
    }

    fn debug(&mut self, record: &RawRecord<'_>) {
        let Ok(info) = DebugInfo::decode(record.cursor()) else { return };
        let id = self.about(record, info.fixed.code_addr);
        self.last_debug = id;
        if let Some(replaced) = self.pending.insert(info.fixed.code_addr, id)
            && let Some(about) = self.index.abouts.get_mut(replaced as usize)
        {
            about.pairing = Pairing::Replaced;
        }
    }

    fn extension(&mut self, record: &RawRecord<'_>) {
        let Some(extension) = inline::extension(record) else { return };
        inline::inlined(&extension, |function| {
            self.index.functions.declare(function);
        });
        match (extension.subject(), extension) {
            (Some(Subject::Code(code_addr)), _) => {
                let id = self.about_inline(record, code_addr);
                if let Some(replaced) = self.pending_inline.insert(code_addr, id)
                    && let Some(about) = self.index.abouts.get_mut(replaced as usize)
                {
                    about.pairing = Pairing::Replaced;
                }
            }
            (Some(subject), _) => {
                let id = self.about_inline(record, 0);
                self.loose_inline.push((id, subject));
            }
            (None, Extension::Tier(tier)) => {
                let name = self.index.functions.tier_id(&String::from_utf8_lossy(tier.name));
                self.pending_tier.insert(tier.code_addr, name);
            }
            (None, _) => self.index.embedded.push((record.offset, record.index)),
        }
    }

    fn about_inline(&mut self, record: &RawRecord<'_>, code_addr: u64) -> u32 {
        let id = self.about(record, code_addr);
        if let Some(about) = self.index.abouts.get_mut(id as usize) {
            about.inline = true;
        }
        id
    }

    /// The inline record of code that loads now: one that gives its address, else one for the next load, else the first
    /// of those that give addresses within it.
    fn inline_of(&mut self, id: u32, start: u64, size: u64) -> u32 {
        let mut inline = self.pending_inline.remove(&start);
        let (mut next, mut within) = (None, None);
        for (about, subject) in std::mem::take(&mut self.loose_inline) {
            match subject {
                Subject::Within(address) if address.wrapping_sub(start) < size => {
                    self.deliver(about, id, Pairing::Next);
                    within = within.or(Some(about));
                }
                Subject::Next => next = Some(about),
                Subject::Within(_) | Subject::Code(_) => {}
            }
        }
        inline = inline.or(next).or(within);
        let inline = inline.unwrap_or(NONE);
        let load_before = self.index.codes.last().map_or(0, |code| code.index);
        let batched = self.index.abouts.get(inline as usize).is_some_and(|about| about.index < load_before);
        self.deliver(inline, id, if batched { Pairing::Address } else { Pairing::Next });
        inline
    }

    fn about(&mut self, record: &RawRecord<'_>, code_addr: u64) -> u32 {
        let id = self.index.abouts.len() as u32;
        let (offset, index) = (record.offset, record.index);
        self.index.abouts.push(About {
            offset,
            index,
            code_addr,
            code: NONE,
            inline: false,
            pairing: Pairing::Orphan,
        });
        id
    }

    fn load(&mut self, record: &RawRecord<'_>) {
        let Ok(load) = Load::decode(record.cursor()) else { return };
        let mut named = self.index.functions.intern(load.name);
        let id = self.index.codes.len() as u32;
        let start = if load.fixed.code_addr == 0 { load.fixed.vma } else { load.fixed.code_addr };
        let last = std::mem::replace(&mut self.last_debug, NONE);
        let (debug, pairing) = match self.pending.remove(&start) {
            Some(debug) if debug == last => (debug, Pairing::Next),
            Some(debug) => (debug, Pairing::Address),
            None => (NONE, Pairing::Orphan),
        };
        self.deliver(debug, id, pairing);
        let inline = self.inline_of(id, start, load.code.len() as u64);
        if let Some(tier) = self.pending_tier.remove(&start) {
            named.tier = tier;
        }
        self.by_code_index.insert(load.fixed.code_index, id);
        self.index.codes.push(Code {
            offset: record.offset,
            index: record.index,
            timestamp: record.prefix.timestamp,
            retired: u64::MAX,
            start,
            // A size larger than its record is not believed: neighbours would be named after it.
            size: load.code.len() as u64,
            code_index: load.fixed.code_index,
            pid: load.fixed.pid,
            tid: load.fixed.tid,
            named,
            debug,
            inline,
        });
    }

    fn deliver(&mut self, about: u32, code: u32, pairing: Pairing) {
        if let Some(about) = self.index.abouts.get_mut(about as usize) {
            about.code = code;
            about.pairing = pairing;
        }
    }

    fn moved(&mut self, record: &RawRecord<'_>) {
        let Ok(fixed) = Move::read(&mut record.cursor()) else { return };
        if let Some(&code) = self.by_code_index.get(&fixed.code_index) {
            let (old, new) = (fixed.old_code_addr, fixed.new_code_addr);
            let timestamp = record.prefix.timestamp;
            self.index.moves.push(Moved { offset: record.offset, timestamp, code, old, new });
        }
    }

    fn finish(mut self, source: &Source) -> Index {
        self.pair_leftovers();
        let index = &mut self.index;
        let vma_is_zero = first_vmas(index, source);
        let functions = &index.functions;
        let names = index
            .codes
            .iter()
            .filter_map(|code| Some(&*functions.get(code.named.function)?.linkage_name))
            .take(200);
        index.producer = Producer::tell(
            &index.header,
            &source.path,
            names.zip(vma_is_zero.into_iter().chain(std::iter::repeat(false))),
        );
        index.skew = skew(index, source);
        retire(index);
        self.index
    }

    /// Debug records that no later load took: an earlier load at that address, else the load right behind them.
    fn pair_leftovers(&mut self) {
        let index = &mut self.index;
        let mut latest: FxHashMap<u64, u32> = FxHashMap::default();
        let mut next_code = 0usize;
        let orphans = index.abouts.iter().enumerate();
        let orphans: Vec<usize> = orphans
            .filter(|(_, a)| a.pairing == Pairing::Orphan && a.code_addr != 0 && !a.inline)
            .map(|(i, _)| i)
            .collect();
        for orphan in orphans {
            let Some(about) = index.abouts.get_mut(orphan) else { continue };
            while let Some(code) = index.codes.get(next_code).filter(|code| code.index < about.index) {
                latest.insert(code.start, next_code as u32);
                next_code = next_code.saturating_add(1);
            }
            let before = latest.get(&about.code_addr).copied();
            let found = before.map(|code| (code, Pairing::Before)).or_else(|| {
                let next =
                    index.codes.get(next_code).filter(|code| code.index == about.index.saturating_add(1))?;
                (next.debug == NONE).then_some((next_code as u32, Pairing::OrderOnly))
            });
            if let Some((id, pairing)) = found
                && let Some(code) = index.codes.get_mut(id as usize).filter(|code| code.debug == NONE)
            {
                code.debug = orphan as u32;
                about.code = id;
                about.pairing = pairing;
            }
        }
    }
}

fn first_vmas(index: &Index, source: &Source) -> Vec<bool> {
    let loads = index.codes.iter().take(200);
    loads
        .map(|code| {
            let record = index.record_at(source, code.offset, code.index);
            let load = record.and_then(|record| Load::decode(record.cursor()).ok());
            load.is_some_and(|load| load.fixed.vma == 0 && load.fixed.code_addr != 0)
        })
        .collect()
}

/// Whether the producer adds the size of an ELF header to its entries' addresses: no record's first entry lies before
/// that (later ones may be unreadable in V8's corrupted records), and either the producer is known for it, or entries lie past
/// the end of their code, or most records begin exactly there.
fn skew(index: &Index, source: &Source) -> u64 {
    let pointer = machine_pointer_bytes(index.header.elf_mach);
    let skew = if pointer == Some(4) { ELF32_HEADER_SKEW } else { ELF64_HEADER_SKEW };
    let (mut records, mut exact, mut past) = (0u32, 0u32, false);
    for code in index.codes.iter().filter(|code| code.debug != NONE && code.size > 0).take(256) {
        let Some((_, info)) = index.debug_info(source, code) else { continue };
        let mut entries = info.walk().map_while(Result::ok);
        let Some(first) = entries.next() else { continue };
        let offset = first.fixed.code_addr.wrapping_sub(code.start);
        if !(skew..=code.size.saturating_add(skew)).contains(&offset) {
            return 0;
        }
        records = records.saturating_add(1);
        exact = exact.saturating_add(u32::from(offset == skew));
        let end = code.start.saturating_add(code.size);
        past |= entries.any(|entry| entry.fixed.code_addr > end && entry.fixed.line > 0);
    }
    let known = index.producer == Producer::V8 || source.path.contains("llvm-IR-jit-");
    if records > 0 && (known || past || exact.saturating_mul(2) >= records) { skew } else { 0 }
}

/// Replays loads and moves in time order: code that other code is laid over is retired.
fn retire(index: &mut Index) {
    let loads = index.codes.iter().zip(0u32..).map(|(code, id)| Event {
        at: code.timestamp,
        offset: code.offset,
        id,
        old: None,
        new: code.start,
    });
    let moves = index.moves.iter().map(|m| Event {
        at: m.timestamp,
        offset: m.offset,
        id: m.code,
        old: Some(m.old),
        new: m.new,
    });
    let mut events: Vec<Event> = loads.chain(moves).collect();
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
                old.retired = event.at;
            }
        }
        live.insert((code.pid, event.new), (end, event.id));
    }
}

/// A load or a move; ordered by time, then by place in the file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    at: u64,
    offset: u64,
    id: u32,
    old: Option<u64>,
    new: u64,
}
