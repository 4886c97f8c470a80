//! The pass over the records: counts, code, and which debug record is about which code.

use rustc_hash::FxHashMap;

use super::{About, Code, Index, Moved, NONE, Pairing, Unwind, retire, skew};
use crate::consts::RecordTag;
use crate::functions::Functions;
use crate::inline::{self, Extension, Subject};
use crate::layout::Move;
use crate::producer::Producer;
use crate::reader;
use crate::records::{DebugInfo, Load, RawRecord, UnwindingInfo};
use perfuse_recording::Source;

/// The pass, with what waits for its partner.
pub(super) struct Pass {
    pub(super) index: Index,
    /// Latest undelivered debug record by address, and by order alone.
    pending: FxHashMap<u64, u32>,
    last_debug: u32,
    /// The unwinding record that code to come has.
    unwind: u32,
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
    pub(super) fn new(start: reader::Start) -> Self {
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
                unwinds: Vec::new(),
                moves: Vec::new(),
                losses: Vec::new(),
                functions: Functions::default(),
            },
            pending: FxHashMap::default(),
            last_debug: NONE,
            unwind: NONE,
            pending_inline: FxHashMap::default(),
            loose_inline: Vec::new(),
            pending_tier: FxHashMap::default(),
            by_code_index: FxHashMap::default(),
            kinds: FxHashMap::default(),
        }
    }

    pub(super) fn record(&mut self, record: &RawRecord<'_>) {
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
            RecordTag::JIT_CODE_UNWINDING_INFO => self.unwinding(record),
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

    /// Most say that there is nothing to say: V8's, unless it is asked for more.
    fn unwinding(&mut self, record: &RawRecord<'_>) {
        self.unwind = NONE;
        if UnwindingInfo::decode(record.cursor()).is_ok_and(|info| !info.parts().1.is_empty()) {
            self.unwind = self.index.unwinds.len() as u32;
            self.index.unwinds.push(Unwind { offset: record.offset, index: record.index, code: NONE });
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
        if let Some(unwind) = self.index.unwinds.get_mut(self.unwind as usize).filter(|it| it.code == NONE) {
            unwind.code = id;
        }
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
            unwind: self.unwind,
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

    pub(super) fn finish(mut self, source: &Source) -> Index {
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
        index.skew = skew::of(index, source);
        retire::replay(index);
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

/// Whether the first loads have an address and no virtual address.
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
