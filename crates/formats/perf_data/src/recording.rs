//! An open perf.data file, as every recording is and with what only this format knows.

use std::any::Any;
use std::io;
use std::sync::Arc;

use linux_perf_data::Feature;
use perfuse_tables::{Offsets, UserStack};
use perfuse_wire::{Diagnostics, Endian, ParseError, RecordView, Value};

use super::consts::{CLOCK_MONOTONIC, clock_name};
use super::layout::{ClockData, FileHeader, TimeConv};
use super::order::TimeOrder;
use super::reader::{File, Location};
use super::sample::Sample;
use super::survey::{JitMarker, PidNamespace};
use super::tasks::Exec;
use super::{FORMAT, check, ingest, repair};
use perfuse_recording::{
    BatchStream, CodeMarker, Format, Placement, Position, Recording, Repaired, SamplingFacts, Source,
    Summary, TableRequest,
};

/// An open perf.data file. Cheap to clone.
#[derive(Clone, Debug)]
pub struct PerfData {
    file: Arc<File>,
}

impl PerfData {
    /// Opens a file or a pipe-mode stream; records are read when asked for.
    ///
    /// # Errors
    /// Where the bytes are not a perf.data file or end inside its header.
    pub fn open(source: Arc<Source>) -> Result<Self, ParseError> {
        Ok(Self { file: Arc::new(File::open(source)?) })
    }

    pub(super) fn file(&self) -> &Arc<File> {
        &self.file
    }

    fn feature(&self, feature: Feature) -> Option<String> {
        self.file.features.string(feature, &self.file.source, self.file.endian)
    }

    /// perf's own command line, argument by argument: `perf record -g -- node x.js`.
    #[must_use]
    pub fn command_line(&self) -> Option<Vec<String>> {
        self.file.features.command_line(&self.file.source, self.file.endian)
    }

    /// Name of the recorded machine.
    #[must_use]
    pub fn hostname(&self) -> Option<String> {
        self.feature(Feature::HOSTNAME)
    }

    /// Its kernel's release.
    #[must_use]
    pub fn os_release(&self) -> Option<String> {
        self.feature(Feature::OSRELEASE)
    }

    /// Name of its processor.
    #[must_use]
    pub fn cpu_description(&self) -> Option<String> {
        self.feature(Feature::CPUDESC)
    }

    /// Processes that were sampled.
    #[must_use]
    pub fn sampled_pids(&self) -> Vec<i32> {
        self.file.survey().sampled.keys().copied().collect()
    }

    /// Version of perf that recorded.
    #[must_use]
    pub fn perf_version(&self) -> Option<String> {
        self.feature(Feature::VERSION)
    }

    /// `clockid_t` that `-k` chose, where it was given for every event; `None` for perf's own clock.
    #[must_use]
    pub fn clockid(&self) -> Option<i32> {
        let mut clocks = self.file.attributes.list().iter().map(|attribute| attribute.clockid());
        let first = clocks.next()??;
        clocks.all(|clock| clock == Some(first)).then_some(first)
    }

    /// Whether times are those of `CLOCK_MONOTONIC` (`perf record -k mono`), which runtimes use in JITDUMP.
    #[must_use]
    pub fn clock_is_monotonic(&self) -> bool {
        self.clockid() == Some(CLOCK_MONOTONIC)
    }

    /// One moment on the recording's clock and on the wall clock; only with `-k`, from perf 5.10.
    #[must_use]
    pub fn clock_data(&self) -> Option<ClockData> {
        self.file.features.clock_data(&self.file.source, self.file.endian)
    }

    /// How processor time stamps become perf's, for JITDUMP files with `ARCH_TIMESTAMP`.
    #[must_use]
    pub fn time_conv(&self) -> Option<TimeConv> {
        self.file.survey().time_conv
    }

    /// Mappings of files named `jit-*.dump`, by which runtimes tell where their dumps are.
    #[must_use]
    pub fn jit_markers(&self) -> &[JitMarker] {
        &self.file.survey().jit_markers
    }

    /// The pid namespaces of threads, where recorded with `--namespaces`.
    #[must_use]
    pub fn namespaces(&self) -> &[PidNamespace] {
        &self.file.survey().namespaces
    }

    /// Processes that replaced their program, in time order: their earlier mappings ended then.
    #[must_use]
    pub fn execs(&self) -> &[Exec] {
        &self.file.tasks().execs
    }

    /// Samples the kernel or the hardware dropped, as far as they were counted as samples.
    #[must_use]
    pub fn lost_samples(&self) -> u64 {
        self.file.survey().lost_samples
    }

    /// Records of any kind, samples mostly, that the kernel had no room for.
    #[must_use]
    pub fn lost_records(&self) -> u64 {
        self.file.survey().lost_records
    }

    /// Samples with user registers or a copy of the user stack, which nobody unwound yet.
    #[must_use]
    pub fn num_user_stacks(&self) -> u64 {
        self.file.survey().num_user_stacks
    }

    /// Byte order of the recorded machine.
    #[must_use]
    pub fn endian(&self) -> Endian {
        self.file.endian
    }

    /// The copy of a user stack, by its number in `callchains`, and into `registers` numbers and values in turn, DWARF's
    /// numbers, the program counter last. `None` for a kernel thread, a 32-bit program, and where the sample cannot be read.
    #[must_use]
    pub fn user_stack(&self, number: u64, registers: &mut Vec<u64>) -> Option<&[u8]> {
        let record = self.file.at(Location::numbered(number))?;
        let (index, _) = self.file.attributes.of(record.record_type, record.body, self.file.endian)?;
        let sample = self.file.sample(&record).ok()?;
        self.file.user_registers().get(index)?.pairs(sample.user_regs, registers);
        sample.user_stack.filter(|_| !registers.is_empty())
    }

    /// Calls `each` with every sample, whole, in time order: the n-th is row n of `callchains`.
    pub fn for_each_sample(&self, mut each: impl FnMut(u64, &Sample<'_>)) {
        let mut order = TimeOrder::samples(&self.file);
        let mut index = 0u64;
        while let Some(key) = order.next(&self.file) {
            let Some(record) = self.file.at(key.location) else { continue };
            let Some(head) = self.file.sample_head(&record) else { continue };
            // A sample whose later fields are cut still has its row.
            let sample = self.file.sample(&record).unwrap_or(Sample { head, ..Sample::default() });
            each(index, &sample);
            index = index.saturating_add(1);
        }
    }

    fn clock(&self) -> &'static str {
        self.clockid().map_or("perf", clock_name)
    }

    fn header(&self) -> Vec<(&'static str, Value<'static>)> {
        let FileHeader { size, attr_size, attrs_offset, attrs_size, data_offset, data_size, .. } =
            self.file.header;
        let mut fields = vec![("size", Value::Unsigned(size))];
        if !self.file.pipe {
            fields.extend([
                ("attr_size", Value::Unsigned(attr_size)),
                ("attrs_offset", Value::Hex(attrs_offset)),
                ("attrs_size", Value::Unsigned(attrs_size)),
                ("data_offset", Value::Hex(data_offset)),
                ("data_size", Value::Unsigned(data_size)),
            ]);
        }
        let names: Vec<_> = self.file.attributes.list().iter().map(|it| it.name.clone()).collect();
        fields.push(("events", Value::Text(names.join(", ").into())));
        let features: Vec<_> = self.file.features.iter().map(|(feature, _)| feature.to_string()).collect();
        fields.push(("features", Value::Text(features.join(" ").into())));
        let texts = [
            ("HEADER_HOSTNAME", self.hostname()),
            ("HEADER_OSRELEASE", self.os_release()),
            ("HEADER_ARCH", self.feature(Feature::ARCH)),
            ("HEADER_CPUDESC", self.feature(Feature::CPUDESC)),
            ("HEADER_CMDLINE", self.command_line().map(|arguments| arguments.join(" "))),
        ];
        fields.extend(texts.into_iter().filter_map(|(name, text)| Some((name, Value::Text(text?.into())))));
        fields
    }
}

impl Recording for PerfData {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn source(&self) -> &Arc<Source> {
        &self.file.source
    }

    fn summary(&self) -> Summary {
        let survey = self.file.survey();
        let mut counts: Vec<_> = survey.counts.iter().map(|(&kind, &count)| (kind, count)).collect();
        counts.sort_unstable();
        let arch = self.file.features.arch(&self.file.source, self.file.endian);
        Summary {
            version: Some("2".to_owned()),
            endian: self.file.endian,
            pointer_bytes: arch.map(|(_, bytes)| bytes),
            arch: arch.map(|(name, _)| name),
            producer: if self.file.features.has(Feature::SIMPLEPERF_META_INFO) {
                Some("simpleperf".to_owned())
            } else {
                self.perf_version().map(|version| format!("perf {version}"))
            },
            clock: self.clock(),
            span: survey.span,
            counts: counts.into_iter().map(|(kind, count)| (kind.name().into_owned(), count)).collect(),
            header: self.header(),
        }
    }

    fn next_record<'a>(&'a self, at: &mut Position) -> Option<RecordView<'a>> {
        let record = self.file.next(at).ok()?;
        Some(self.file.view(&record))
    }

    fn check(&self, sink: &mut Diagnostics) {
        check::check(self, sink);
    }

    fn repair(&self, out: &mut std::fs::File) -> io::Result<Repaired> {
        repair::repair(self, out)
    }

    fn sampling_facts(&self) -> Option<SamplingFacts> {
        let marker = |marker: &JitMarker| CodeMarker {
            pid: marker.pid,
            tid: marker.tid,
            ts: marker.ts,
            path: marker.path.clone(),
            record_offset: marker.record_offset,
        };
        let conversion = |it: TimeConv| (it.time_shift, it.time_mult, it.time_zero);
        Some(SamplingFacts {
            command_line: self.command_line(),
            hostname: self.hostname(),
            os_release: self.os_release(),
            cpu: self.cpu_description(),
            time_conversion: self.time_conv().map(conversion),
            pids: self.sampled_pids(),
            markers: self.jit_markers().iter().map(marker).collect(),
        })
    }

    fn extent(&self) -> Offsets {
        Offsets {
            source: 1,
            mapping: u32::try_from(self.file.tasks().mappings.len()).unwrap_or(u32::MAX),
            sample: self.file.survey().num_samples,
            ..Offsets::default()
        }
    }

    fn table(&self, name: &str, placement: &Placement, _request: &TableRequest) -> Option<BatchStream> {
        ingest::table(&self.file, name, placement)
    }

    fn num_user_stacks(&self) -> u64 {
        Self::num_user_stacks(self)
    }

    fn user_stack(&self, number: u64, registers: &mut Vec<u64>) -> Option<UserStack<'_>> {
        let bytes = Self::user_stack(self, number, registers)?;
        Some(UserStack { bytes, big_endian: self.endian() == Endian::Big })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
