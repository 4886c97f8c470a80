//! A file with the results of passes over its records, each computed once.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use linux_perf_data::Feature;
use perfuse_recording::Source;
use perfuse_wire::ParseError;

use super::consts::RecordType;
use super::feature_values::meta_info;
use super::features::{BuildIds, build_id_table};
use super::group_reads::has_counts;
use super::reader::RecordFile;
use super::records::MappingRecord;
use super::sched::ThreadState;
use super::survey::RecordSurvey;
use super::tasks::Tasks;
use super::tracepoints::{SWITCH, SWITCH_EVENT, Tracepoint, tracepoints};
use super::user_registers::UserRegisters;

/// A file with the results of passes over its records.
#[derive(Debug)]
pub struct PerfFile {
    records: RecordFile,
    survey: OnceLock<RecordSurvey>,
    tasks: OnceLock<Tasks>,
    user_registers: OnceLock<Vec<UserRegisters>>,
    has_low_kernel: OnceLock<bool>,
    tracepoints: OnceLock<Vec<Tracepoint>>,
    /// Set by `timed_passes`.
    pub(super) sched_states: OnceLock<Vec<ThreadState>>,
    /// Set by `timed_passes`.
    pub(super) num_incomplete: OnceLock<u64>,
}

impl Deref for PerfFile {
    type Target = RecordFile;

    fn deref(&self) -> &RecordFile {
        &self.records
    }
}

impl PerfFile {
    /// Reads the header, the attributes and the table of features.
    ///
    /// # Errors
    /// When the bytes are not a perf.data file, or end inside its header.
    pub fn open(source: Arc<Source>) -> Result<Self, ParseError> {
        Ok(Self {
            records: RecordFile::open(source)?,
            survey: OnceLock::new(),
            tasks: OnceLock::new(),
            user_registers: OnceLock::new(),
            has_low_kernel: OnceLock::new(),
            tracepoints: OnceLock::new(),
            sched_states: OnceLock::new(),
            num_incomplete: OnceLock::new(),
        })
    }

    /// Counts and facts from one pass over all records.
    pub fn survey(&self) -> &RecordSurvey {
        self.survey.get_or_init(|| RecordSurvey::new(&self.records))
    }

    /// Processes, threads and mappings, in time order.
    pub fn tasks(&self) -> &Tasks {
        self.tasks.get_or_init(|| Tasks::new(&self.records, self.survey()))
    }

    /// The tracepoints, with their formats.
    pub fn tracepoints(&self) -> &[Tracepoint] {
        self.tracepoints.get_or_init(|| tracepoints(&self.records))
    }

    /// The tracepoint of context switches, where switches were not recorded otherwise.
    pub fn switch_tracepoint(&self) -> Option<&Tracepoint> {
        let counts = &self.survey().counts;
        let switches = [RecordType::SWITCH, RecordType::SWITCH_CPU_WIDE];
        if switches.iter().any(|kind| counts.contains_key(kind)) {
            return None;
        }
        self.tracepoints().iter().find(|tracepoint| tracepoint.is_of_scheduler && tracepoint.name == SWITCH)
    }

    /// The event whose samples are all that states when threads left the processor: `simpleperf record --trace-offcpu` before it
    /// recorded context switches.
    pub fn switch_event(&self) -> Option<usize> {
        let counts = &self.survey().counts;
        let is_stated =
            [RecordType::SWITCH, RecordType::SWITCH_CPU_WIDE].iter().any(|kind| counts.contains_key(kind));
        if is_stated || self.switch_tracepoint().is_some() {
            return None;
        }
        let facts = self.features.cursor(Feature::SIMPLEPERF_META_INFO, &self.source, self.endian)?;
        let mut facts = meta_info(facts.rest());
        facts.find(|(name, value)| name == "trace_offcpu" && value == "true")?;
        self.attributes.list().iter().position(|attribute| attribute.name == SWITCH_EVENT)
    }

    /// Most rows that times off the processor, and counts of members of groups, add to the samples.
    pub fn max_added_rows(&self) -> u64 {
        let survey = self.survey();
        let count = |kind| survey.counts.get(&kind).copied().unwrap_or(0);
        let events = self.attributes.list();
        let members = events.len().saturating_sub(1) as u64;
        let grouped =
            if events.iter().any(has_counts) { survey.num_samples.saturating_mul(members) } else { 0 };
        let is_sampled = self.switch_tracepoint().is_some() || self.switch_event().is_some();
        let switches = if is_sampled { survey.num_samples } else { 0 };
        let records = count(RecordType::SWITCH).saturating_add(count(RecordType::SWITCH_CPU_WIDE));
        grouped.saturating_add(records).saturating_add(switches)
    }

    /// The user registers in samples, by index of the event.
    pub fn user_registers(&self) -> &[UserRegisters] {
        self.user_registers.get_or_init(|| {
            let arch = self.features.arch(&self.source, self.endian).map(|(name, _)| name);
            self.attributes.list().iter().map(|attribute| UserRegisters::of(attribute, arch)).collect()
        })
    }

    /// Whether the kernel is in the lower half of 64-bit addresses, where programs are too: on 32-bit machines and s390x. Where the
    /// machine is not recorded, the kernel's mapping shows it.
    pub fn has_low_kernel(&self) -> bool {
        *self.has_low_kernel.get_or_init(|| match self.features.arch(&self.source, self.endian) {
            Some((name, pointer_bytes)) => pointer_bytes == 4 || name == "s390x",
            None => self.tasks().mappings.iter().any(|row| {
                let record = self.at(row.mapping).filter(|_| row.pid == -1);
                let mapping = record.and_then(|record| MappingRecord::read(&record, self.endian));
                mapping.is_some_and(|mapping| {
                    let end = mapping.start_address.saturating_add(mapping.size);
                    mapping.is_kernel() && mapping.start_address != 0 && end <= 1 << 63
                })
            }),
        })
    }

    /// Build ids of files, from the feature section and from records.
    pub fn build_ids(&self) -> BuildIds {
        let mut ids = BuildIds::default();
        let table = self.features.cursor(Feature::BUILD_ID, &self.source, self.endian);
        table.into_iter().flat_map(build_id_table).for_each(|entry| ids.insert(entry));
        self.survey().build_ids.iter().cloned().for_each(|entry| ids.insert(entry));
        ids
    }
}
