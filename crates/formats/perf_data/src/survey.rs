//! One pass over all records: what is counted, what is wrong, and the few facts that reports and joins ask for by name.

use linux_perf_event_reader::constants as abi;
use perfuse_wire::Diagnostics;
use rustc_hash::FxHashMap;

use super::check::check_record;
use super::consts::RecordType;
use super::features::{BuildId, text};
use super::hidden::is_marker;
use super::layout::{Lost, LostSamples, Namespaces, Section, TimeConv};
use super::order::{Key, Noted, Rounds};
use super::reader::{Cut, File, RawRecord, Releaser};
use super::records::Mapping;
use perfuse_recording::Position;

/// Index of the pid namespace among the entries of a NAMESPACES record.
const PID_NAMESPACE: usize = 3;

/// A mapping of a JITDUMP file, by which a runtime marks where its dump is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JitMarker {
    /// Process, as the recorder knew it.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// When, on the recording's clock; 0 where not recorded.
    pub ts: u64,
    /// Path of the dump in the recorded machine.
    pub path: String,
    /// Address of the mapping.
    pub start_address: u64,
    /// Offset of its record.
    pub record_offset: u64,
}

/// The pid namespace a thread is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PidNamespace {
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// When, on the recording's clock.
    pub ts: u64,
    /// Inode of the namespace.
    pub inode: u64,
}

/// How to turn processor time stamps into perf's: `time_zero + ((ticks * time_mult) >> time_shift)`.
pub type TimeConversion = TimeConv;

/// The result of the pass.
#[derive(Debug, Default)]
pub struct Survey {
    /// How many records of each type.
    pub counts: FxHashMap<RecordType, u64>,
    /// All records.
    pub num_records: u64,
    /// First and last time.
    pub span: Option<(u64, u64)>,
    /// Samples that can be decoded.
    pub num_samples: u64,
    /// Samples that hold user registers or a copy of the user stack.
    pub num_user_stacks: u64,
    /// What LOST records add up to.
    pub lost_records: u64,
    /// What LOST_SAMPLES records add up to.
    pub lost_samples: u64,
    /// Mappings of JITDUMP files.
    pub jit_markers: Vec<JitMarker>,
    /// Where each thread's pid namespace was told.
    pub namespaces: Vec<PidNamespace>,
    /// First and last sample of each process.
    pub sampled: FxHashMap<i32, (u64, u64)>,
    /// Where TIME_CONV tells.
    pub time_conv: Option<TimeConversion>,
    /// HEADER_BUILD_ID records.
    pub build_ids: Vec<BuildId>,
    /// MMAP, MMAP2, COMM, FORK and EXIT records, in time order.
    pub task_records: Vec<Key>,
    /// Samples and other records that came later than the rounds of their file allow.
    pub num_late: u64,
    /// Where the samples are, as long as there are not too many.
    pub samples: Option<Noted>,
    /// What is wrong with records.
    pub found: Diagnostics,
    /// Why the pass ended.
    pub end: Cut,
}

impl Survey {
    /// Walks the file.
    pub fn new(file: &File) -> Self {
        let mut survey = Self { samples: Some(Noted::default()), ..Self::default() };
        let mut at = Position::default();
        let mut rounds = Rounds::default();
        let mut releaser = Releaser::default();
        survey.end = loop {
            match file.next(&mut at) {
                Ok(record) => {
                    survey.take(file, &record, &mut rounds);
                    look_ahead(file, &record);
                }
                Err(cut) => break cut,
            }
            releaser.done_before(file, at);
        };
        survey.task_records.sort_by_key(|key| key.time);
        survey.num_late = rounds.num_late;
        survey
    }

    fn take(&mut self, file: &File, record: &RawRecord<'_>, rounds: &mut Rounds) {
        self.num_records = self.num_records.saturating_add(1);
        check_record(file, record, &mut self.found);
        let count = self.counts.entry(record.record_type).or_default();
        *count = count.saturating_add(1);
        if record.record_type.is_user() {
            return self.take_user(file, record, rounds);
        }
        let time = file.time(record).unwrap_or(0);
        if time != 0 {
            let (first, last) = self.span.unwrap_or((time, time));
            self.span = Some((first.min(time), last.max(time)));
        }
        // Other records without a time are from before the recording, whatever round they are told in.
        if time != 0 || record.record_type == RecordType::SAMPLE {
            rounds.see(time);
        }
        let mut cursor = record.cursor(file.endian);
        match record.record_type {
            RecordType::SAMPLE => {
                self.samples =
                    self.samples.take().and_then(|noted| noted.with(Key { time, location: record.location }));
                return self.take_sample(file, record, time);
            }
            RecordType::LOST => {
                let lost = Lost::read(&mut cursor).map_or(0, |it| it.lost);
                self.lost_records = self.lost_records.saturating_add(lost);
            }
            RecordType::LOST_SAMPLES => {
                let lost = LostSamples::read(&mut cursor).map_or(0, |it| it.lost);
                self.lost_samples = self.lost_samples.saturating_add(lost);
            }
            RecordType::NAMESPACES => self.take_namespaces(file, record, time),
            RecordType::MMAP | RecordType::MMAP2 => self.take_marker(file, record, time),
            _ => {}
        }
        if matches!(
            record.record_type,
            RecordType::MMAP | RecordType::MMAP2 | RecordType::COMM | RecordType::FORK | RecordType::EXIT
        ) {
            self.task_records.push(Key { time, location: record.location });
        }
    }

    fn take_user(&mut self, file: &File, record: &RawRecord<'_>, rounds: &mut Rounds) {
        let mut cursor = record.cursor(file.endian);
        match record.record_type {
            RecordType::FINISHED_ROUND => {
                rounds.finish();
                self.samples.as_mut().map(Noted::finish_round);
            }
            RecordType::TIME_CONV => self.time_conv = TimeConv::read(&mut cursor).ok(),
            RecordType::HEADER_BUILD_ID => {
                self.build_ids.extend(BuildId::read(&mut cursor, record.misc));
            }
            _ => {}
        }
    }

    fn take_sample(&mut self, file: &File, record: &RawRecord<'_>, time: u64) {
        let attribute = file.attributes.of(record.record_type, record.body, file.endian);
        let Some(shape) =
            attribute.and_then(|(index, _)| file.attributes.list().get(index)).map(|it| &it.shape)
        else {
            return;
        };
        if file.sample_head(record).is_none() {
            return;
        }
        self.num_samples = self.num_samples.saturating_add(1);
        let user = abi::PERF_SAMPLE_REGS_USER | abi::PERF_SAMPLE_STACK_USER;
        self.num_user_stacks = self.num_user_stacks.saturating_add(u64::from(shape.has(user)));
        if let Some(pid) = shape.sample_pid(record.body, file.endian) {
            let (first, last) = self.sampled.entry(pid).or_insert((time, time));
            *first = time.min(*first);
            *last = time.max(*last);
        }
    }

    fn take_marker(&mut self, file: &File, record: &RawRecord<'_>, ts: u64) {
        let Some(mapping) = Mapping::read(file, record) else { return };
        if is_marker(mapping.path) {
            self.jit_markers.push(JitMarker {
                pid: mapping.pid,
                tid: mapping.tid,
                ts,
                path: text(mapping.path).into_owned(),
                start_address: mapping.start_address,
                record_offset: record.offset,
            });
        }
    }

    fn take_namespaces(&mut self, file: &File, record: &RawRecord<'_>, ts: u64) {
        let mut cursor = record.cursor(file.endian);
        let Ok(Namespaces { pid, tid, nr_namespaces }) = Namespaces::read(&mut cursor) else { return };
        let entries = usize::try_from(nr_namespaces).unwrap_or(usize::MAX);
        // Device and inode, two words like a section.
        let mut links = std::iter::from_fn(|| Section::read(&mut cursor).ok()).take(entries);
        if let Some(Section { size: inode, .. }) = links.nth(PID_NAMESPACE) {
            self.namespaces.push(PidNamespace { pid, tid, ts, inode });
        }
    }
}

/// Touches the record that will come a few later if it is as large as this one.
#[inline]
fn look_ahead(file: &File, record: &RawRecord<'_>) {
    if record.size >= LARGE_BYTES && record.location.position().inner == 0 {
        let guess = record.offset.saturating_add(record.size.saturating_mul(AHEAD));
        file.touch_sample(guess);
    }
}

/// Smaller records share their lines of memory.
const LARGE_BYTES: u64 = 2048;
const AHEAD: u64 = 4;
