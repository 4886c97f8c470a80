//! perf.data: recordings of Linux's `perf record`. See the README of this folder.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::panic
    )
)]

mod attribute;
mod bit_fields;
mod branches;
pub mod check;
pub mod consts;
mod counter_read;
mod damage;
mod deferred;
mod directory;
mod feature_table;
mod feature_values;
mod features;
mod file_lists;
mod file_symbols;
mod group_reads;
mod guests;
mod header;
mod ingest;
pub mod layout;
mod machine_tables;
mod memory;
mod off_cpu;
mod order;
mod perf_data;
mod perf_file;
mod reader;
mod record;
mod recorded_programs;
mod records;
mod repair;
mod resume;
mod rounds;
pub mod rules;
mod sample;
mod sample_chain;
mod sample_rows;
mod sched;
mod survey;
mod tasks;
mod thread_counts;
mod timed_passes;
mod tracepoint_fields;
mod tracepoints;
mod tracing_data;
mod unpacked;
mod user_registers;
mod view;
mod view_bodies;
mod wake_ups;
pub mod writer;

#[cfg(test)]
mod tests;

use std::any::Any;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use linux_perf_data::Feature;
use perfuse_addresses::recorded_symbols::RecordedFile;
use perfuse_tables::{Alignment, Offsets, UserStack};
use perfuse_wire::{Diagnostics, Endian, ParseError, RecordView, Value};

use perfuse_recording::{
    BatchStream, Capabilities, ClockPolicy, CodeMarker, Format, Placement, Position, RecordedPrograms,
    Recording, RecordingDirectory, Repaired, Role, SamplingFacts, Sniff, Source, Summary, TableRequest,
    WallClockTime,
};

use consts::{MAGIC_VERSION_1, clock_name};
use layout::FileHeader;

pub use layout::{ClockData, TimeConv};
pub use perf_data::PerfData;
pub use sample::{EventWords, SampleHead, SampleRecord, SampleRegisters, UserState};
pub use survey::{JitMarker, PidNamespace};
pub use tasks::Exec;
pub use writer::{InjectError, InjectedBuildId, InjectedMmap, Injection, inject};

/// The format's entry in the registry.
pub static FORMAT: Format = Format {
    name: "perf_data",
    title: "perf.data",
    about: "What Linux's perf record writes: samples with call chains, mappings, threads and their names.",
    role: Role::Samples,
    report: "profile",
    clock: ClockPolicy {
        kinds: &["perf", "monotonic", "monotonic_raw", "realtime", "boottime", "tai", "unknown"],
        alignments: &[Alignment::SameClock],
        start_field: None,
    },
    process_field: None,
    files: &["perf.data", "*.perf.data"],
    directory: Some(RecordingDirectory { main_file: directory::MAIN_FILE, read: directory::read }),
    capabilities: Capabilities { writer: true, repair: true },
    sniff: |head| Sniff::by_magic(consts::byte_order(head).is_some()),
    open,
    refused: None,
    rules: rules::RULES,
    layouts: layout::LAYOUTS,
    tables: &[
        "processes",
        "threads",
        "thread_names",
        "mappings",
        "callchains",
        "branches",
        "memory_accesses",
        "tracepoint_fields",
        "sched_states",
        "wake_ups",
        "thread_counts",
        "cgroups",
        "namespaces",
        "text_pokes",
        "kernel_symbols",
    ],
};

fn open(source: Arc<Source>) -> Result<Arc<dyn Recording>, ParseError> {
    Ok(Arc::new(PerfData::open(source)?))
}

impl Recording for PerfData {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn source(&self) -> &Arc<Source> {
        &self.file().source
    }

    fn summary(&self) -> Summary {
        let survey = self.file().survey();
        let mut counts: Vec<_> = survey.counts.iter().map(|(&kind, &count)| (kind, count)).collect();
        counts.sort_unstable();
        let arch = self.file().features.arch(&self.file().source, self.file().endian);
        Summary {
            version: Some(if self.file().source.starts_with(MAGIC_VERSION_1) { "1" } else { "2" }.to_owned()),
            endian: self.file().endian,
            pointer_bytes: arch.map(|(_, bytes)| bytes),
            arch: arch.map(|(name, _)| name),
            producer: if self.file().features.has(Feature::SIMPLEPERF_META_INFO) {
                Some("simpleperf".to_owned())
            } else {
                self.perf_version().map(|version| format!("perf {version}"))
            },
            clock: self.clockid().map_or("perf", clock_name),
            span: survey.span,
            counts: counts.into_iter().map(|(kind, count)| (kind.name().into_owned(), count)).collect(),
            header: header_fields(self),
        }
    }

    fn read_record<'a>(&'a self, at: &mut Position, wanted: &dyn Fn(&str) -> bool) -> Option<RecordView<'a>> {
        let record = self.file().next(at).ok()?;
        Some(self.file().view(&record, wanted))
    }

    fn check(&self, sink: &mut Diagnostics) {
        check::check(self, sink);
    }

    fn repair(&self, out: &mut std::fs::File) -> io::Result<Repaired> {
        repair::repair(self, out)
    }

    fn wall_clock_time(&self) -> Option<WallClockTime> {
        let data = self.clock_data().filter(|data| Some(data.clockid) == self.clockid())?;
        Some(WallClockTime { ticks: data.clockid_time_ns, realtime_ns: data.wall_clock_ns.try_into().ok()? })
    }

    fn sampling_facts(&self) -> Option<SamplingFacts> {
        let marker = |marker: &JitMarker| CodeMarker {
            pid: marker.pid,
            tid: marker.tid,
            ts: marker.ts,
            path: marker.path.clone(),
            record_offset: marker.record_offset,
        };
        let conversion = |conv: TimeConv| (conv.time_shift, conv.time_mult, conv.time_zero);
        Some(SamplingFacts {
            command_line: self.recorded_command(),
            hostname: self.hostname(),
            os_release: self.os_release(),
            cpu: self.cpu_description(),
            time_conversion: self.time_conv().map(conversion),
            pids: self.sampled_pids(),
            markers: self.jit_markers().iter().map(marker).collect(),
            address_spaces: self.file().tasks().address_spaces(),
        })
    }

    fn recorded_programs(&self) -> RecordedPrograms {
        recorded_programs::recorded_programs(self)
    }

    fn recorded_symbols(&self) -> Vec<RecordedFile> {
        file_symbols::recorded_symbols(self.file())
    }

    fn extent(&self) -> Offsets {
        Offsets {
            source: 1,
            mapping: u32::try_from(self.file().tasks().mappings.len()).unwrap_or(u32::MAX),
            sample: self.file().survey().num_samples.saturating_add(self.file().max_added_rows()),
            ..Offsets::default()
        }
    }

    fn fills(&self, table: &str) -> bool {
        FORMAT.tables.contains(&table) && ingest::fills(self.file(), table)
    }

    fn table(&self, name: &str, placement: &Placement, _request: &TableRequest) -> Option<BatchStream> {
        ingest::table(self.file(), name, placement)
    }

    fn num_user_stacks(&self) -> u64 {
        Self::num_user_stacks(self)
    }

    fn has_link_registers(&self) -> bool {
        let mut events = self.file().user_registers().iter();
        events.any(|registers| !registers.is_empty() && !registers.have_stack)
    }

    fn user_stack(&self, number: u64, registers: &mut Vec<u64>) -> Option<UserStack<'_>> {
        let bytes = Self::user_stack(self, number, registers)?;
        Some(UserStack { bytes, big_endian: self.endian() == Endian::Big })
    }

    fn omissible_bytes(&self, _keep_code: &dyn Fn(u32) -> bool) -> Vec<Range<u64>> {
        self.stack_copies()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Fields of the header, names of events and features, and facts about the machine.
fn header_fields(perf: &PerfData) -> Vec<(&'static str, Value<'static>)> {
    let FileHeader { size, attr_size, attrs_offset, attrs_size, data_offset, data_size, .. } =
        perf.file().header;
    let mut fields = vec![("size", Value::Unsigned(size))];
    if !perf.file().pipe {
        fields.extend([
            ("attr_size", Value::Unsigned(attr_size)),
            ("attrs_offset", Value::Hex(attrs_offset)),
            ("attrs_size", Value::Unsigned(attrs_size)),
            ("data_offset", Value::Hex(data_offset)),
            ("data_size", Value::Unsigned(data_size)),
        ]);
    }
    let names: Vec<_> =
        perf.file().attributes.list().iter().map(|attribute| attribute.name.clone()).collect();
    fields.push(("events", Value::Text(names.join(", ").into())));
    let file = &**perf.file();
    let features: Vec<_> = file.features.iter().map(|(Feature(bit), _)| feature_values::name(bit)).collect();
    fields.push(("features", Value::Text(features.join(" ").into())));
    for (feature, section) in file.features.iter() {
        let Some(cursor) = file.features.cursor(feature, &file.source, file.endian) else { continue };
        match feature_values::field_name(feature.0) {
            Some(name) => {
                fields.push((name, Value::Text(feature_values::describe(feature.0, cursor).into())))
            }
            None => {
                let text = format!("{} bytes at offset {:#x}", section.size, section.offset);
                fields.push(("HEADER_UNKNOWN", Value::Text(format!("feature {}: {text}", feature.0).into())));
            }
        }
    }
    fields
}
