//! pprof's `profile.proto`: <https://github.com/google/pprof/blob/main/proto/README.md>.

mod fields;
mod locations;
mod mappings;
mod rows;
mod strings;

use std::io::Write;

use arrow_array::RecordBatch;

use super::stacks::{NONE, Stacks};
use super::{Error, Progress, Spool};
use crate::protobuf::Encoder;
use fields::{label, profile, sample, value_type};
use locations::LocationTable;
pub use mappings::{Mapping, Mappings};
use perfuse_engine::stacks::columns::Texts;
use rows::SumColumns;
use strings::StringTable;

/// A sample type: an event with its unit.
#[derive(Clone, Debug)]
pub struct SampleEvent {
    /// Its name.
    pub name: String,
    /// Unit of its weights.
    pub unit: String,
    /// Whether the number of samples is a column too; false for call traces, whose samples are sums.
    pub counted: bool,
    /// Usual weight of one sample.
    pub period: Option<i64>,
}

/// A profile to be written.
#[derive(Clone, Copy, Debug)]
pub struct SampledProfile<'a> {
    /// SumColumns `stack_id`, `pid`, `tid`, `thread`, `event`, `num_samples` and `weight`, sorted by the first three.
    pub rows: &'a [RecordBatch],
    /// Their stacks.
    pub stacks: &'a Stacks,
    /// Its events; the first is the viewers' default.
    pub events: &'a [SampleEvent],
    /// Title of the recording.
    pub title: &'a str,
    /// Mappings of files, which frames refer to by their keys.
    pub mappings: &'a Mappings,
    /// Start of the recording in nanoseconds since 1970, where known.
    pub time_ns: Option<i64>,
    /// Duration of the recording.
    pub duration_ns: i64,
}

/// Writes a profile.
///
/// # Errors
/// [`Error`]
pub fn write(
    of: &SampledProfile<'_>,
    out: impl Write + Send + 'static,
    progress: &mut Progress<'_>,
) -> Result<(), Error> {
    let mut writer = PprofWriter {
        spool: Spool::new(out),
        strings: StringTable::default(),
        locations: LocationTable::new(of.stacks, of.mappings, of.title),
        names: Texts::default(),
        columns: of.events.len() + of.events.iter().filter(|event| event.counted).count(),
        sample: None,
    };
    writer.write_header(of);
    let result = writer.rows(of, progress);
    writer.end_sample();
    writer.tables();
    let written = writer.spool.finish();
    result?;
    Ok(written?)
}

struct PprofWriter<'a> {
    spool: Spool,
    strings: StringTable,
    locations: LocationTable<'a>,
    /// Names of threads, processes and tiers.
    names: Texts,
    /// Values of a sample.
    columns: usize,
    sample: Option<OpenSample>,
}

/// A sample that still collects values.
struct OpenSample {
    stack: u32,
    pid: i32,
    tid: i32,
    /// Names of the thread, the process and the tier.
    names: [u32; 3],
    values: Vec<i64>,
}

impl PprofWriter<'_> {
    fn write_header(&mut self, of: &SampledProfile<'_>) {
        let Self { strings, .. } = self;
        let mut head = Encoder::default();
        let mut value = |out: &mut Encoder, field, name: &str, unit: &str| {
            let (name, unit) = (strings.id(name), strings.id(unit));
            out.message(field, |value| {
                value.uint(value_type::TYPE, name);
                value.uint(value_type::UNIT, unit);
            });
        };
        let only = of.events.len() == 1;
        for event in of.events {
            if event.counted {
                let name = if only { "samples".to_owned() } else { format!("{}_samples", event.name) };
                value(&mut head, profile::SAMPLE_TYPE, &name, "count");
            }
            value(&mut head, profile::SAMPLE_TYPE, &event.name, unit(event));
        }
        if let Some((first, period)) = of.events.first().and_then(|event| Some((event, event.period?))) {
            value(&mut head, profile::PERIOD_TYPE, &first.name, unit(first));
            head.int(profile::PERIOD, period);
        }
        if let Some(time_ns) = of.time_ns {
            head.int(profile::TIME_NANOS, time_ns);
        }
        head.int(profile::DURATION_NANOS, of.duration_ns);
        head.uint(profile::COMMENT, self.strings.id(of.title));
        if let Some(first) = of.events.first() {
            head.uint(profile::DEFAULT_SAMPLE_TYPE, self.strings.id(&first.name));
        }
        self.spool.buffer().extend_from_slice(head.bytes());
    }

    fn rows(&mut self, of: &SampledProfile<'_>, progress: &mut Progress<'_>) -> Result<(), Error> {
        let mut done = 0;
        for batch in of.rows {
            let rows = SumColumns::of(batch, of.events, &mut self.names)?;
            for row in 0..batch.num_rows() {
                self.row(of, &rows, row);
            }
            done += batch.num_rows() as u64;
            if self.spool.failed() {
                break;
            }
            if !progress(done) {
                return Err(Error::Stopped);
            }
        }
        Ok(())
    }

    /// SumColumns of one stack and thread follow each other: they make one sample.
    fn row(&mut self, of: &SampledProfile<'_>, rows: &SumColumns<'_>, row: usize) {
        let Some(event) = rows.event(row) else { return };
        let (stack, pid, tid) =
            (rows.stack(row).map_or(NONE, |key| of.stacks.row(key)), rows.pid(row), rows.tid(row));
        if self.sample.as_ref().is_none_or(|open| (open.stack, open.pid, open.tid) != (stack, pid, tid)) {
            self.end_sample();
            let (names, values) = (rows.names(row), vec![0; self.columns]);
            self.sample = Some(OpenSample { stack, pid, tid, names, values });
        }
        let Some(open) = &mut self.sample else { return };
        let mut column: usize = of.events[..event].iter().map(|event| 1 + usize::from(event.counted)).sum();
        if of.events[event].counted {
            open.values[column] = rows.num_samples(row);
            column += 1;
        }
        open.values[column] = open.values[column].saturating_add(rows.weight(row));
    }

    fn end_sample(&mut self) {
        let Some(OpenSample { stack, pid, tid, names, values }) = self.sample.take() else { return };
        let Self { spool, strings, locations, names: texts, .. } = self;
        let [thread, process, tier] = names.map(|name| texts.get(name).map(|name| strings.id(name)));
        let labels = [
            ("pid", Some(strings.id(&pid.to_string()))),
            ("tid", Some(strings.id(&tid.to_string()))),
            ("thread", thread),
            ("process", process),
            ("tier", tier),
        ];
        let labels = labels.map(|(key, value)| (strings.id(key), value));
        let locations = locations.locations(stack);
        let mut encoder = Encoder::appending_to(std::mem::take(spool.buffer()));
        encoder.message(profile::SAMPLE, |out| {
            out.packed(sample::LOCATION_ID, locations.iter().copied());
            out.packed(sample::VALUE, values.iter().map(|value| value.cast_unsigned()));
            for (key, value) in labels.into_iter().filter_map(|(key, value)| Some((key, value?))) {
                out.message(sample::LABEL, |out| {
                    out.uint(label::KEY, key);
                    out.uint(label::STR, value);
                });
            }
        });
        *spool.buffer() = encoder.into_bytes();
        spool.flush_if_full();
    }

    /// Writes the tables that samples refer to.
    fn tables(&mut self) {
        let Self { spool, strings, locations, .. } = self;
        let mut encoder = Encoder::appending_to(std::mem::take(spool.buffer()));
        locations.write(strings, &mut encoder);
        strings.write(&mut encoder);
        *spool.buffer() = encoder.into_bytes();
    }
}

fn unit(event: &SampleEvent) -> &str {
    match event.unit.as_str() {
        "ns" => "nanoseconds",
        "events" | "calls" => "count",
        other => other,
    }
}
