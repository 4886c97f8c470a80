//! Rows of the common tables: processes, threads, mappings and call chains.

use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::{Arc, PoisonError};

use arrow_array::RecordBatch;
use linux_perf_event_reader::constants as abi;
use perfuse_tables::{BATCH_ROWS, callchains, mappings};
use perfuse_wire::Endian;
use rustc_hash::FxHashMap;

use super::attribute::EventAttribute;
use super::branches::BranchRows;
use super::features::{BuildIds, text};
use super::group_reads::{GroupReads, MemberCount};
use super::machine_tables;
use super::memory::{MemoryRows, has_accesses};
use super::off_cpu::time_within;
use super::order::TimeOrder;
use super::perf_file::PerfFile;
use super::reader::RecordPages;
use super::record::RecordLocation;
use super::records::MappingRecord;
use super::rounds::TimedRecord;
use super::sample_chain::push_chain;
use super::sample_rows::SampleRowBatches;
use super::tasks::TaskFactKind;
use super::timed_passes::sched_states;
use super::tracepoint_fields::TracepointFieldRows;
use super::wake_ups::unknown_threads;
use perfuse_recording::{BatchStream, Placement, Position, one_batch};

/// Name of the event whose samples are times off the processor, between context switches.
const OFF_CPU_EVENT: &str = "off-cpu";
/// Largest number of stacks to unwind in a batch; unwinding them is expensive.
const BATCH_STACKS: usize = 1024;
/// Number of batches whose stacks remain in memory, because unwinding reads them later.
const RETAINED_BATCHES: usize = 16;
/// Largest number of addresses of a batch: half a megabyte, which stays in a processor's own cache until it is joined.
const BATCH_ADDRESSES: usize = 1 << 16;

/// The table with a name; `None` for a table that this format does not fill.
pub fn table(file: &Arc<PerfFile>, name: &str, placement: &Placement) -> Option<BatchStream> {
    match name {
        "processes" | "threads" | "thread_names" => {
            add_identities(file, placement);
            let identities = placement.identities.lock().unwrap_or_else(PoisonError::into_inner);
            identities.table(name).map(one_batch)
        }
        "mappings" => {
            add_identities(file, placement);
            Some(Box::new(MappingBatches {
                file: file.clone(),
                placement: placement.clone(),
                build_ids: file.build_ids(),
                next: 0,
            }))
        }
        "callchains" => {
            add_identities(file, placement);
            let order = TimeOrder::samples(file);
            let batches = CallchainBatches {
                file: file.clone(),
                placement: placement.clone(),
                order,
                threads: FxHashMap::default(),
                next_id: placement.first.sample,
                addresses: Vec::new(),
                retained: VecDeque::new(),
                pages: RecordPages::default(),
                reads: GroupReads::default(),
                next_member: 0,
                next_state: 0,
            };
            Some(Box::new(batches))
        }
        "branches" => {
            add_identities(file, placement);
            Some(Box::new(SampleRowBatches::new(file, placement, BranchRows::new(file))))
        }
        "memory_accesses" => {
            add_identities(file, placement);
            let rows = MemoryRows::new(file.endian == Endian::Big);
            Some(Box::new(SampleRowBatches::new(file, placement, rows)))
        }
        "tracepoint_fields" => {
            add_identities(file, placement);
            Some(Box::new(SampleRowBatches::new(file, placement, TracepointFieldRows::new(file))))
        }
        "sched_states" | "wake_ups" | "thread_counts" | "namespaces" => {
            add_identities(file, placement);
            machine_tables::table(file, name, placement)
        }
        _ => machine_tables::table(file, name, placement),
    }
}

/// Whether a table has rows of a file, as far as that is known without decoding its samples.
pub fn fills(file: &PerfFile, name: &str) -> bool {
    let has = |condition: fn(&EventAttribute) -> bool| file.attributes.list().iter().any(condition);
    match name {
        "branches" => has(|attribute| attribute.layout.has(abi::PERF_SAMPLE_BRANCH_STACK)),
        "memory_accesses" => has(has_accesses),
        "tracepoint_fields" => !file.tracepoints().is_empty(),
        _ => machine_tables::fills(file, name).unwrap_or(true),
    }
}

/// Adds names, starts and ends of processes and threads to the identities of the profile. A second call changes nothing.
fn add_identities(file: &PerfFile, placement: &Placement) {
    let tasks = file.tasks();
    let unknown = unknown_threads(file);
    let states = sched_states(file);
    let mut identities = placement.identities.lock().unwrap_or_else(PoisonError::into_inner);
    for tid in unknown {
        identities.thread(placement.process(-1), tid);
    }
    for fact in &tasks.facts {
        let ns = placement.clock.ns(fact.ts);
        let process = file.guests.identity(placement, fact.pid);
        match &fact.kind {
            TaskFactKind::Name(name) => {
                identities.name(process, fact.tid, name, (fact.ts != 0).then_some(ns));
            }
            TaskFactKind::Start => identities.start(process, fact.tid, ns),
            TaskFactKind::End => identities.end(process, fact.tid, ns),
            TaskFactKind::Mentioned => {
                identities.thread(process, fact.tid);
            }
        }
    }
    for state in states {
        identities.thread(file.guests.identity(placement, state.pid), state.tid);
    }
}

/// Batches of mappings.
struct MappingBatches {
    file: Arc<PerfFile>,
    placement: Placement,
    build_ids: BuildIds,
    next: usize,
}

impl Iterator for MappingBatches {
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
            let Some(mapping) = MappingRecord::read(&record, file.endian) else { continue };
            hex.clear();
            let build_id = mapping.build_id.or_else(|| build_ids.get(mapping.path, mapping.misc));
            for byte in build_id.unwrap_or_default() {
                let _ = write!(hex, "{byte:02x}");
            }
            let origin = row.fork.and_then(|fork| file.at(fork)).map_or(record.offset, |fork| fork.offset);
            table.push(
                id,
                (row.pid != -1).then(|| identities.process(file.guests.identity(placement, row.pid))),
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

/// Batches of call chains.
struct CallchainBatches {
    file: Arc<PerfFile>,
    placement: Placement,
    order: TimeOrder,
    /// Process and thread keys of threads so far, so that the shared identities are locked once for each thread.
    threads: FxHashMap<(i32, i32), (u32, u32)>,
    next_id: u64,
    addresses: Vec<u64>,
    /// Position in the file from which data is needed, after each of the latest batches with stacks.
    retained: VecDeque<Position>,
    pages: RecordPages,
    /// Counts of groups of events.
    reads: GroupReads,
    /// Number of counts of their members that were read; they follow the samples.
    next_member: usize,
    /// Number of states of threads that were read, whose times off the processor follow the samples.
    next_state: usize,
}

impl CallchainBatches {
    /// Adds a row for the next time that a thread was off the processor: with the chain of its last sample before, if there is one
    /// since it was put on the processor. Returns whether there is such a row.
    fn push_off_cpu(&mut self, table: &mut callchains::Builder) -> bool {
        let file = self.file.clone();
        let rows = sched_states(&file).get(self.next_state..).unwrap_or_default();
        for state in rows {
            self.next_state = self.next_state.saturating_add(1);
            let Some(duration) = state.off_cpu() else { continue };
            let (process_id, thread_id) = self.task(state.pid, state.tid);
            let user_stack = self.set_chain(&file, state.sample.map(|(_, location)| location));
            table.push(
                self.next_id,
                self.placement.clock.ns(state.start),
                process_id,
                thread_id,
                state.cpu,
                duration,
                OFF_CPU_EVENT,
                &self.addresses,
                user_stack,
                self.placement.source_id,
                file.at(state.location).map_or(0, |record| record.offset),
            );
            self.next_id = self.next_id.saturating_add(1);
            return true;
        }
        false
    }

    /// Adds a row for the next count of a member of a group, with the chain of its leader's sample. Returns whether there is one.
    fn push_member(&mut self, table: &mut callchains::Builder) -> bool {
        let file = self.file.clone();
        while let Some(&MemberCount { location, event, count }) = self.reads.members.get(self.next_member) {
            self.next_member = self.next_member.saturating_add(1);
            let Some(attribute) = file.attributes.list().get(event) else { continue };
            let Some(record) = file.at(location) else { continue };
            let Some(head) = file.sample_head(&record) else { continue };
            let (process_id, thread_id) = self.task(head.pid.unwrap_or(-1), head.tid.unwrap_or(-1));
            let user_stack = self.set_chain(&file, Some(location));
            table.push(
                self.next_id,
                self.placement.clock.ns(head.time.unwrap_or(0)),
                process_id,
                thread_id,
                head.cpu,
                count,
                &attribute.name,
                &self.addresses,
                user_stack,
                self.placement.source_id,
                record.offset,
            );
            self.next_id = self.next_id.saturating_add(1);
            return true;
        }
        false
    }

    /// Sets the addresses to those of a sample; to none without one. Returns the number of its copied stack.
    fn set_chain(&mut self, file: &PerfFile, sample: Option<RecordLocation>) -> Option<u64> {
        self.addresses.clear();
        let location = sample?;
        let record = file.at(location)?;
        let head = file.sample_head(&record)?;
        let (index, _) = file.attributes.find(record.record_type, record.body, file.endian)?;
        let is_unwound = push_chain(file, &record, &head, index, &mut self.addresses);
        is_unwound.then_some(location.number())
    }

    /// Process and thread keys.
    fn task(&mut self, pid: i32, tid: i32) -> (u32, u32) {
        let Self { file, placement, threads, .. } = self;
        *threads.entry((pid, tid)).or_insert_with(|| {
            let mut identities = placement.identities.lock().unwrap_or_else(PoisonError::into_inner);
            (
                identities.process(file.guests.identity(placement, pid)),
                identities.thread(file.guests.identity(placement, pid), tid),
            )
        })
    }

    /// Adds a sample. Returns its number of addresses, and whether it is unwound.
    fn push(&mut self, timed: TimedRecord, table: &mut callchains::Builder) -> Option<(usize, bool)> {
        let Self { file, placement, threads, addresses, reads, .. } = self;
        let record = file.at(timed.location)?;
        let (index, _) = file.attributes.find(record.record_type, record.body, file.endian)?;
        let attribute = file.attributes.list().get(index)?;
        let head = file.sample_head(&record)?;
        let (pid, tid) = (head.pid.unwrap_or(-1), head.tid.unwrap_or(-1));
        let (process_id, thread_id) = *threads.entry((pid, tid)).or_insert_with(|| {
            let mut identities = placement.identities.lock().unwrap_or_else(PoisonError::into_inner);
            (
                identities.process(file.guests.identity(placement, pid)),
                identities.thread(file.guests.identity(placement, pid), tid),
            )
        });
        let count = reads.add(file, &head, index, timed.location);
        // Of some events, such as the output of BPF programs, the kernel never states how much a sample stands for.
        let period = head.period.filter(|_| file.survey().has_periods.get(index) == Some(&true));
        addresses.clear();
        let is_unwound = push_chain(file, &record, &head, index, addresses);
        table.push(
            self.next_id,
            placement.clock.ns(time_within(head.time.unwrap_or(0), file.survey().span)),
            process_id,
            thread_id,
            head.cpu,
            count.or(period).unwrap_or_else(|| attribute.fixed_period()),
            &attribute.name,
            addresses,
            is_unwound.then_some(timed.location.number()),
            placement.source_id,
            record.offset,
        );
        self.next_id = self.next_id.saturating_add(1);
        Some((self.addresses.len(), is_unwound))
    }
}

impl Iterator for CallchainBatches {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        let mut table = callchains::Builder::new();
        let (mut num_addresses, mut num_stacks) = (0usize, 0usize);
        let file = self.file.clone();
        while table.len() < BATCH_ROWS && num_stacks < BATCH_STACKS && num_addresses < BATCH_ADDRESSES {
            let Some(timed) = self.order.next(&file) else {
                if self.push_member(&mut table) || self.push_off_cpu(&mut table) {
                    continue;
                }
                break;
            };
            let (addresses, has_stack) = self.push(timed, &mut table).unwrap_or_default();
            num_addresses = num_addresses.saturating_add(addresses);
            num_stacks = num_stacks.saturating_add(has_stack.into());
        }
        self.retained.push_back(self.order.oldest());
        let num_retained = if num_stacks > 0 { RETAINED_BATCHES } else { 0 };
        while self.retained.len() > num_retained
            && let Some(position) = self.retained.pop_front()
        {
            self.pages.release_before(&file, position);
        }
        (!table.is_empty()).then(|| table.finish())
    }
}
