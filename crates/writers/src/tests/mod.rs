//! What is written of hand-made events, and laws that hold for any.

mod chrome;
mod heap_dumps;
mod lanes;
mod laws;
mod others;
mod tracks;

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use perfuse_tables::{
    CallEvent, Identities, call_events, counter_samples, counters, functions, instants, slices,
};

use super::*;

/// Functions that events have numbers of.
const NAMES: [&str; 4] = ["main", "operator\"\"_x", "b\\é\n", ""];

/// Events of thread 10, 11 or 12: time in microseconds, kind and function.
type Step = (u32, i64, CallEvent, u32);

fn events(steps: &[Step]) -> RecordBatch {
    let mut table = call_events::Builder::new();
    for (row, &(thread, us, kind, function)) in (0u64..).zip(steps) {
        let value = (kind == CallEvent::Argument).then_some(u64::MAX - row);
        table.push(us * 1000, thread, None, kind, function, value, 0, row);
    }
    table.finish()
}

/// A trace whose process is 10, with threads 10 to 12.
struct Made {
    events: Vec<RecordBatch>,
    instants: RecordBatch,
    slices: RecordBatch,
    counters: RecordBatch,
    counter_samples: RecordBatch,
    selection: Selection,
}

impl Made {
    fn of(events: Vec<RecordBatch>) -> Self {
        Self {
            events,
            instants: instants::Builder::new().finish(),
            slices: slices::Builder::new().finish(),
            counters: counters::Builder::new().finish(),
            counter_samples: counter_samples::Builder::new().finish(),
            selection: Selection::default(),
        }
    }

    fn write(&self, write: impl FnOnce(&Trace<'_>, CallSink) -> Result<(), Error>) -> Vec<u8> {
        let mut names = functions::Builder::new();
        for (id, name) in (0..).zip(NAMES) {
            names.push(id, None, name, name, None, None, None, None);
        }
        let functions = [names.finish()];
        let mut known = Identities::default();
        for tid in 10..13 {
            known.thread(10.into(), tid);
        }
        known.name(10.into(), 10, "app \"1\"", None);
        let call_events = || -> Batches { Box::new(self.events.clone().into_iter()) };
        let instants = || -> Batches { Box::new(std::iter::once(self.instants.clone())) };
        let slices = || -> Batches { Box::new(std::iter::once(self.slices.clone())) };
        let counter_samples = || -> Batches { Box::new(std::iter::once(self.counter_samples.clone())) };
        let counters = [self.counters.clone()];
        let pids = BTreeMap::from([(0, 10)]);
        let tables = Tables {
            call_events: &call_events,
            instants: &instants,
            slices: &slices,
            counter_samples: &counter_samples,
            counters: &counters,
            pids: &pids,
            functions: &functions,
        };
        let survey = TraceSurvey::of(tables, &self.selection, &mut |_| true).unwrap();
        let tracks = Tracks::of(&known.processes(), &known.threads()).unwrap();
        let trace = Trace { tables, selection: &self.selection, survey: &survey, tracks: &tracks };
        let sink = CallSink::default();
        write(&trace, sink.clone()).unwrap();
        sink.0.lock().unwrap().clone()
    }

    fn chrome(&self) -> Vec<String> {
        let bytes = self.write(|trace, out| {
            super::chrome::write(trace, trace.survey.first_ns.unwrap_or(0), out, &mut |_| true)
        });
        let text = String::from_utf8(bytes).unwrap();
        text.split(",\n").filter(|event| !event.is_empty()).map(str::to_owned).collect()
    }
}

/// Bytes that outlive who wrote them.
#[derive(Clone, Default)]
struct CallSink(Arc<Mutex<Vec<u8>>>);

impl Write for CallSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A full disk.
struct Full;

impl Write for Full {
    fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
