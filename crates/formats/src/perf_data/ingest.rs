//! Rows of the common tables.

use std::fmt::Write;
use std::sync::{Arc, PoisonError};

use arrow_array::RecordBatch;
use perfuse_tables::{callchains, mappings};
use rustc_hash::FxHashMap;

use super::consts::RecordType;
use super::features::{BuildIds, text};
use super::order::{Key, TimeOrder};
use super::reader::{File, Releaser};
use super::recording::PerfData;
use super::records::Mapping;
use super::tasks::TaskFactKind;
use super::user_registers::UserRegisters;
use crate::{BatchStream, Placement, TableRequest, one_batch};

/// Rows of a record batch.
const BATCH_ROWS: usize = 65_536;
/// A batch of deep call chains ends earlier, and so does one of copied stacks.
const BATCH_ADDRESSES: usize = 4 << 20;
const BATCH_STACK_BYTES: usize = 8 << 20;

/// The table of that name, where this format fills it.
pub fn table(
    perf: &PerfData,
    name: &str,
    placement: &Placement,
    request: &TableRequest,
) -> Option<BatchStream> {
    let file = perf.file();
    match name {
        "processes" | "threads" => {
            identify(file, placement);
            let identities = placement.identities.lock().unwrap_or_else(PoisonError::into_inner);
            Some(one_batch(if name == "threads" { identities.threads() } else { identities.processes() }))
        }
        "mappings" => {
            identify(file, placement);
            Some(Box::new(MappingRows {
                file: file.clone(),
                placement: placement.clone(),
                build_ids: file.build_ids(),
                next: 0,
            }))
        }
        "callchains" => {
            identify(file, placement);
            let order = TimeOrder::new(file, |record, _| record.record_type == RecordType::SAMPLE);
            let user_registers = |attribute| UserRegisters::of(attribute, perf.arch().map(|(name, _)| name));
            let attributes = file.attributes.list().iter();
            Some(Box::new(CallchainRows {
                file: file.clone(),
                placement: placement.clone(),
                order,
                threads: FxHashMap::default(),
                next_id: placement.first.sample,
                addresses: Vec::new(),
                user_registers: attributes.filter(|_| request.with_bytes).map(user_registers).collect(),
                pairs: Vec::new(),
                releaser: Releaser::default(),
            }))
        }
        _ => None,
    }
}

/// Adds what the file knows of processes and threads; doing so twice changes nothing.
fn identify(file: &File, placement: &Placement) {
    let tasks = file.tasks();
    let mut identities = placement.identities.lock().unwrap_or_else(PoisonError::into_inner);
    for fact in &tasks.facts {
        let ns = placement.clock.ns(fact.ts);
        match &fact.kind {
            TaskFactKind::Name(name) => identities.name(fact.pid, fact.tid, name),
            TaskFactKind::Start => identities.start(fact.pid, fact.tid, ns),
            TaskFactKind::End => identities.end(fact.pid, fact.tid, ns),
        }
    }
}

struct MappingRows {
    file: Arc<File>,
    placement: Placement,
    build_ids: BuildIds,
    next: usize,
}

impl Iterator for MappingRows {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        let Self { file, placement, build_ids, next } = self;
        let rows = file.tasks().mappings.get(*next..).filter(|rows| !rows.is_empty())?;
        let mut identities = placement.identities.lock().unwrap_or_else(PoisonError::into_inner);
        let mut table = mappings::Builder::new();
        let mut hex = String::new();
        for row in rows.iter().take(BATCH_ROWS) {
            let id = placement.first.mapping.saturating_add(u32::try_from(*next).unwrap_or(u32::MAX));
            *next = next.saturating_add(1);
            let Some(record) = file.at(row.mapping) else { continue };
            let Some(mapping) = Mapping::read(file, &record) else { continue };
            hex.clear();
            let build_id = mapping.build_id.or_else(|| build_ids.get(mapping.path, mapping.misc));
            for byte in build_id.unwrap_or_default() {
                let _ = write!(hex, "{byte:02x}");
            }
            let origin = row.fork.and_then(|fork| file.at(fork)).map_or(record.offset, |fork| fork.offset);
            table.push(
                id,
                (row.pid != -1).then(|| identities.process(row.pid)),
                (row.ts != 0).then(|| placement.clock.ns(row.ts)),
                mapping.start_address,
                mapping.start_address.saturating_add(mapping.size),
                mapping.file_offset,
                &text(mapping.path),
                (!hex.is_empty()).then_some(hex.as_str()),
                mapping.executable,
                placement.source_id,
                origin,
            );
        }
        Some(table.finish())
    }
}

struct CallchainRows {
    file: Arc<File>,
    placement: Placement,
    order: TimeOrder,
    /// Keys of the threads met so far, so that the shared table is asked once a thread.
    threads: FxHashMap<(i32, i32), (u32, u32)>,
    next_id: u64,
    addresses: Vec<u64>,
    /// By attribute; empty where no bytes are wanted.
    user_registers: Vec<UserRegisters>,
    pairs: Vec<u64>,
    releaser: Releaser,
}

impl CallchainRows {
    /// Adds a sample; returns how many addresses and bytes of stack it has.
    fn push(&mut self, key: Key, table: &mut callchains::Builder) -> Option<(usize, usize)> {
        let Self { file, placement, threads, addresses, pairs, .. } = self;
        let record = file.at(key.location)?;
        let (index, _) = file.attributes.of(record.record_type, record.body, file.endian)?;
        let attribute = file.attributes.list().get(index)?;
        let head = file.sample_head(&record)?;
        let (pid, tid) = (head.pid.unwrap_or(-1), head.tid.unwrap_or(-1));
        let (process_id, thread_id) = *threads.entry((pid, tid)).or_insert_with(|| {
            let mut identities = placement.identities.lock().unwrap_or_else(PoisonError::into_inner);
            (identities.process(pid), identities.thread(pid, tid))
        });
        addresses.clear();
        addresses.extend(head.callchain.iter().flat_map(|words| words.iter()));
        if addresses.is_empty() {
            addresses.extend(head.ip);
        }
        pairs.clear();
        let mut stack = None;
        if let Some(registers) = self.user_registers.get(index).filter(|registers| !registers.is_empty())
            && let Ok(sample) = file.sample(&record)
        {
            registers.pairs(sample.user_regs, pairs);
            stack = sample.user_stack.filter(|stack| !stack.is_empty() && !pairs.is_empty());
        }
        table.push(
            self.next_id,
            placement.clock.ns(head.time.unwrap_or(0)),
            process_id,
            thread_id,
            head.cpu,
            head.period.unwrap_or_else(|| attribute.fixed_period()).max(1),
            &attribute.name,
            addresses,
            pairs,
            stack,
            placement.source_id,
            record.offset,
        );
        self.next_id = self.next_id.saturating_add(1);
        Some((self.addresses.len(), stack.map_or(0, <[u8]>::len)))
    }
}

impl Iterator for CallchainRows {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        let mut table = callchains::Builder::new();
        let (mut num_addresses, mut stack_bytes) = (0usize, 0usize);
        let file = self.file.clone();
        while table.len() < BATCH_ROWS && num_addresses < BATCH_ADDRESSES && stack_bytes < BATCH_STACK_BYTES {
            let Some(key) = self.order.next(&file) else { break };
            let (addresses, bytes) = self.push(key, &mut table).unwrap_or_default();
            num_addresses = num_addresses.saturating_add(addresses);
            stack_bytes = stack_bytes.saturating_add(bytes);
        }
        self.releaser.done_before(&file, self.order.oldest());
        (!table.is_empty()).then(|| table.finish())
    }
}
