//! pprof's `profile.proto`: <https://github.com/google/pprof/blob/main/proto/README.md>.

mod fields;
mod places;
mod rows;

use std::io::Write;

use arrow_array::RecordBatch;

use super::stacks::{NONE, Stacks};
use super::{Error, GoOn, Spool};
use crate::protobuf::Encoder;
use fields::{label, profile, sample, value_type};
use perfuse_engine::stacks::columns::Texts;
use places::{Places, Strings};
use rows::Rows;

/// What was counted.
#[derive(Clone, Debug)]
pub struct Event {
    /// Its name.
    pub name: String,
    /// What its weights are in.
    pub unit: String,
    /// Whether the samples themselves are worth counting: those of a call trace are sums.
    pub counted: bool,
    /// What a sample usually stands for.
    pub period: Option<i64>,
}

/// A profile to be written.
#[derive(Clone, Copy, Debug)]
pub struct Profile<'a> {
    /// Rows `stack_id`, `pid`, `tid`, `thread`, `event`, `num_samples` and `weight`, sorted by the first three.
    pub rows: &'a [RecordBatch],
    /// Their stacks.
    pub stacks: &'a Stacks,
    /// Its events; the first is what viewers begin with.
    pub events: &'a [Event],
    /// What was recorded.
    pub title: &'a str,
    /// How long.
    pub duration_ns: i64,
}

/// Writes a profile.
///
/// # Errors
/// [`Error`]
pub fn write(of: &Profile<'_>, out: impl Write + Send + 'static, go_on: &mut GoOn<'_>) -> Result<(), Error> {
    let mut writer = Writer {
        spool: Spool::new(out),
        strings: Strings::default(),
        places: Places::new(of.stacks, of.title),
        names: Texts::default(),
        columns: of.events.len() + of.events.iter().filter(|event| event.counted).count(),
        sample: None,
    };
    writer.head(of);
    let told = writer.rows(of, go_on);
    writer.end_sample();
    writer.tables();
    let written = writer.spool.finish();
    told?;
    Ok(written?)
}

struct Writer<'a> {
    spool: Spool,
    strings: Strings,
    places: Places<'a>,
    /// Names of threads.
    names: Texts,
    /// Values of a sample.
    columns: usize,
    sample: Option<Sample>,
}

/// A sample whose values are not all there yet.
struct Sample {
    stack: u32,
    pid: i32,
    tid: i32,
    thread: u32,
    values: Vec<i64>,
}

impl Writer<'_> {
    fn head(&mut self, of: &Profile<'_>) {
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
                let name = if only { "samples".to_owned() } else { format!("{}-samples", event.name) };
                value(&mut head, profile::SAMPLE_TYPE, &name, "count");
            }
            value(&mut head, profile::SAMPLE_TYPE, &event.name, unit(event));
        }
        if let Some((first, period)) = of.events.first().and_then(|event| Some((event, event.period?))) {
            value(&mut head, profile::PERIOD_TYPE, &first.name, unit(first));
            head.int(profile::PERIOD, period);
        }
        head.int(profile::DURATION_NANOS, of.duration_ns);
        head.uint(profile::COMMENT, self.strings.id(of.title));
        if let Some(first) = of.events.first() {
            head.uint(profile::DEFAULT_SAMPLE_TYPE, self.strings.id(&first.name));
        }
        self.spool.buffer().extend_from_slice(head.bytes());
    }

    fn rows(&mut self, of: &Profile<'_>, go_on: &mut GoOn<'_>) -> Result<(), Error> {
        let mut done = 0;
        for batch in of.rows {
            let rows = Rows::of(batch, of.events, &mut self.names)?;
            for row in 0..batch.num_rows() {
                self.row(of, &rows, row);
            }
            done += batch.num_rows() as u64;
            if self.spool.failed() {
                break;
            }
            if !go_on(done) {
                return Err(Error::Stopped);
            }
        }
        Ok(())
    }

    /// Rows of one stack and thread follow each other: they make one sample.
    fn row(&mut self, of: &Profile<'_>, rows: &Rows<'_>, row: usize) {
        let Some(event) = rows.event(row) else { return };
        let (stack, pid, tid) =
            (rows.stack(row).map_or(NONE, |key| of.stacks.row(key)), rows.pid(row), rows.tid(row));
        if self.sample.as_ref().is_none_or(|open| (open.stack, open.pid, open.tid) != (stack, pid, tid)) {
            self.end_sample();
            let (thread, values) = (rows.thread(row), vec![0; self.columns]);
            self.sample = Some(Sample { stack, pid, tid, thread, values });
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
        let Some(Sample { stack, pid, tid, thread, values }) = self.sample.take() else { return };
        let Self { spool, strings, places, names, .. } = self;
        let thread = names.get(thread).map(|name| strings.id(name));
        let labels = [
            ("pid", Some(strings.id(&pid.to_string()))),
            ("tid", Some(strings.id(&tid.to_string()))),
            ("thread", thread),
        ];
        let labels = labels.map(|(key, value)| (strings.id(key), value));
        let locations = places.locations(stack);
        let mut encoder = Encoder::behind(std::mem::take(spool.buffer()));
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
        spool.turn();
    }

    /// What samples point at.
    fn tables(&mut self) {
        let Self { spool, strings, places, .. } = self;
        let mut encoder = Encoder::behind(std::mem::take(spool.buffer()));
        places.write(strings, &mut encoder);
        strings.write(&mut encoder);
        *spool.buffer() = encoder.into_bytes();
    }
}

fn unit(event: &Event) -> &str {
    match event.unit.as_str() {
        "ns" => "nanoseconds",
        "events" | "calls" => "count",
        other => other,
    }
}
