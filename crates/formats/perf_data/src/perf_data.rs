//! An open perf.data file, with the facts that other formats do not have.

use std::ops::Range;
use std::sync::Arc;

use linux_perf_data::Feature;
use perfuse_wire::{Endian, ParseError};

use super::consts::{CLOCK_MONOTONIC, RecordType};
use super::features::text;
use super::layout::{ClockData, TimeConv};
use super::order::TimeOrder;
use super::perf_file::PerfFile;
use super::record::RecordLocation;
use super::records::MappingRecord;
use super::sample::SampleRecord;
use super::survey::{JitMarker, PidNamespace};
use super::tasks::Exec;
use super::user_registers::ABI_NONE;
use perfuse_recording::{Position, Source};

/// An open perf.data file. Clones share their data.
#[derive(Clone, Debug)]
pub struct PerfData {
    file: Arc<PerfFile>,
}

impl PerfData {
    /// Opens a file or a pipe-mode stream. Records are read on demand.
    ///
    /// # Errors
    /// When the bytes are not a perf.data file, or end inside its header.
    pub fn open(source: Arc<Source>) -> Result<Self, ParseError> {
        Ok(Self { file: Arc::new(PerfFile::open(source)?) })
    }

    pub(super) fn file(&self) -> &Arc<PerfFile> {
        &self.file
    }

    /// The content of a feature section that is one string.
    pub(super) fn feature(&self, feature: Feature) -> Option<String> {
        self.file.features.string(feature, &self.file.source, self.file.endian)
    }

    /// Arguments of perf's own command line, such as `perf record -g -- node x.js`.
    #[must_use]
    pub fn command_line(&self) -> Option<Vec<String>> {
        self.file.features.command_line(&self.file.source, self.file.endian)
    }

    /// perf's command line with what it recorded. perf 7 stores only its own path: then the path of the first program that was
    /// started, without its arguments, which no record contains.
    #[must_use]
    pub fn recorded_command(&self) -> Option<Vec<String>> {
        match self.command_line() {
            Some(arguments) if arguments.len() > 1 => Some(arguments),
            _ => self.first_program().map(|program| vec![program]),
        }
    }

    /// Path of the first program that a recorded process started.
    fn first_program(&self) -> Option<String> {
        let tasks = self.file.tasks();
        let exec = tasks.execs.first()?;
        // The kernel maps the program first, then its loader.
        let rows = tasks.mappings.iter().filter(|row| row.pid == exec.pid && row.ts >= exec.ts);
        let mut paths = rows.filter_map(|row| {
            let record = self.file.at(row.mapping)?;
            let mapping = MappingRecord::read(&record, self.file.endian)?;
            let is_file = mapping.executable && mapping.path.starts_with(b"/") && !mapping.is_anonymous();
            is_file.then(|| text(mapping.path).into_owned())
        });
        paths.next()
    }

    /// Name of the recorded machine.
    #[must_use]
    pub fn hostname(&self) -> Option<String> {
        self.feature(Feature::HOSTNAME)
    }

    /// Release of its kernel.
    #[must_use]
    pub fn os_release(&self) -> Option<String> {
        self.feature(Feature::OSRELEASE)
    }

    /// Description of its processor.
    #[must_use]
    pub fn cpu_description(&self) -> Option<String> {
        self.feature(Feature::CPUDESC)
    }

    /// Processes with samples.
    #[must_use]
    pub fn sampled_pids(&self) -> Vec<i32> {
        self.file.survey().sampled.keys().copied().filter(|&pid| pid >= -1).collect()
    }

    /// Version of the recording perf.
    #[must_use]
    pub fn perf_version(&self) -> Option<String> {
        self.feature(Feature::VERSION)
    }

    /// `clockid_t` of the option `-k`, where all events use it; `None` for perf's default clock.
    #[must_use]
    pub fn clockid(&self) -> Option<i32> {
        let mut clocks = self.file.attributes.list().iter().map(|attribute| attribute.clockid());
        let first = clocks.next()??;
        clocks.all(|clock| clock == Some(first)).then_some(first)
    }

    /// Whether times are of `CLOCK_MONOTONIC` (`perf record -k mono`), which runtimes use in JITDUMP.
    #[must_use]
    pub fn clock_is_monotonic(&self) -> bool {
        self.clockid() == Some(CLOCK_MONOTONIC)
    }

    /// Simultaneous times of the recording's clock and of the wall clock. perf 5.10 and later record them with `-k`.
    #[must_use]
    pub fn clock_data(&self) -> Option<ClockData> {
        self.file.features.clock_data(&self.file.source, self.file.endian)
    }

    /// Conversion of processor time stamps to perf's times, for JITDUMP files with `ARCH_TIMESTAMP`.
    #[must_use]
    pub fn time_conv(&self) -> Option<TimeConv> {
        self.file.survey().time_conv
    }

    /// Mappings of files named `jit-*.dump`, with which runtimes record the paths of their dumps.
    #[must_use]
    pub fn jit_markers(&self) -> &[JitMarker] {
        &self.file.survey().jit_markers
    }

    /// Pid namespaces of threads; recorded with `--namespaces`.
    #[must_use]
    pub fn namespaces(&self) -> &[PidNamespace] {
        &self.file.survey().namespaces
    }

    /// Processes that replaced their program (exec), in time order. This ends their earlier mappings.
    #[must_use]
    pub fn execs(&self) -> &[Exec] {
        &self.file.tasks().execs
    }

    /// Number of samples that the kernel or the hardware dropped, in LOST_SAMPLES records.
    #[must_use]
    pub fn lost_samples(&self) -> u64 {
        self.file.survey().lost_samples
    }

    /// Number of records of any kind, mostly samples, for which the kernel had no space.
    #[must_use]
    pub fn lost_records(&self) -> u64 {
        self.file.survey().lost_records
    }

    /// Number of samples with a copy of the user stack, which must be unwound.
    #[must_use]
    pub fn num_user_stacks(&self) -> u64 {
        self.file.survey().num_user_stacks
    }

    /// Ranges of the file that are copies of user stacks, in the order of the file; without those in compressed records.
    #[must_use]
    pub fn stack_copies(&self) -> Vec<Range<u64>> {
        let mut found = Vec::new();
        if self.num_user_stacks() == 0 {
            return found;
        }
        let (mut at, start) = (Position::default(), self.file.source.as_ptr() as usize);
        while let Ok(record) = self.file.next(&mut at) {
            perfuse_stopping::checkpoint();
            if record.record_type != RecordType::SAMPLE {
                continue;
            }
            let Some(stack) = self.file.user_state(&record).and_then(|user| user.stack) else { continue };
            let offset = (stack.as_ptr() as usize).checked_sub(start);
            let range = offset.map(|offset| offset..offset.saturating_add(stack.len()));
            if let Some(range) = range.filter(|range| range.end <= self.file.source.len()) {
                found.push(range.start as u64..range.end as u64);
            }
        }
        found
    }

    /// Byte order of the recorded machine.
    #[must_use]
    pub fn endian(&self) -> Endian {
        self.file.endian
    }

    /// The copy of a user stack, by its number in `callchains`; empty where only the link register was recorded. Replaces the
    /// content of `registers` with DWARF's number and the value of each register, the program counter last; without any for a 32-bit
    /// program and machines that are not supported. `None` for a kernel thread, and a sample that cannot be decoded.
    #[must_use]
    pub fn user_stack(&self, number: u64, registers: &mut Vec<u64>) -> Option<&[u8]> {
        let record = self.file.at(RecordLocation::from_number(number))?;
        let (index, _) = self.file.attributes.find(record.record_type, record.body, self.file.endian)?;
        let user = self.file.user_state(&record)?;
        let known = self.file.user_registers().get(index)?;
        known.pairs(user.registers, registers);
        let stack = if known.have_stack { user.stack } else { Some(&[][..]) };
        let is_user = known.have_stack && user.registers.is_some_and(|set| set.abi != ABI_NONE);
        stack.filter(|_| is_user || !registers.is_empty())
    }

    /// Calls `each` with the index of every sample in `callchains` and its fields, in time order.
    pub fn for_each_sample(&self, mut each: impl FnMut(u64, &SampleRecord<'_>)) {
        let mut order = TimeOrder::samples(&self.file);
        let mut index = 0u64;
        while let Some(timed) = order.next(&self.file) {
            let Some(record) = self.file.at(timed.location) else { continue };
            let Some(head) = self.file.sample_head(&record) else { continue };
            // A sample whose later fields cannot be decoded still has a row.
            let sample =
                self.file.sample(&record).unwrap_or(SampleRecord { head, ..SampleRecord::default() });
            each(index, &sample);
            index = index.saturating_add(1);
        }
    }
}
