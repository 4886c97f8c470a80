//! speedscope's own JSON with every call: a profile a thread, its calls opened and closed in time order.

mod tape;

use std::io::Write;

use super::json;
use super::names::EncodedNames;
use super::ordered::OrderedCalls;
use super::{Error, Progress, Spool, Thread, Trace, drive};
use perfuse_engine::calls::Calls;
use tape::{Tape, Tapes};

/// Writes the members of a file that are about calls: `activeProfileIndex`, `profiles` and `shared`. Times are nanoseconds from
/// the first event on.
///
/// # Errors
/// [`Error`]
pub fn write(
    trace: &Trace<'_>,
    out: impl Write + Send + 'static,
    progress: &mut Progress<'_>,
) -> Result<(), Error> {
    let tapes = OrderedCalls::new(Tapes::default(), trace.selection);
    let mut calls = Calls::new(tapes, trace.selection.clone(), trace.survey.lost.clone());
    drive((trace.tables.call_events)(), &mut calls, progress, OrderedCalls::failed)?;
    let mut tapes = calls.finish().0.into_sink();
    let names = EncodedNames::of(trace.tables.functions, |name, out| json::string(out, name))?;
    let mut spool = Spool::new(out);
    let result = write_events(trace, &mut tapes, &names, &mut spool, progress);
    let written = spool.finish();
    result?;
    Ok(written?)
}

fn write_events(
    trace: &Trace<'_>,
    tapes: &mut Tapes,
    names: &EncodedNames,
    spool: &mut Spool,
    progress: &mut Progress<'_>,
) -> Result<(), Error> {
    let zero_ns = trace.survey.first_ns.unwrap_or(0);
    let threads = trace.tracks.in_order(&trace.survey.thread_ids);
    let taped: Vec<_> = threads.filter_map(|(id, thread)| Some((thread, tapes.take(id)?))).collect();
    let busiest = (0..taped.len()).rev().max_by_key(|&index| taped[index].1.num_events()).unwrap_or(0);
    spool.buffer().extend_from_slice(format!("\"activeProfileIndex\":{busiest},\"profiles\":[").as_bytes());
    let mut frames = FrameNumbers::default();
    let mut done = 0;
    for (index, (thread, tape)) in taped.into_iter().enumerate() {
        let separator = if index == 0 { "" } else { ",\n" };
        spool.buffer().extend_from_slice(separator.as_bytes());
        profile(&thread, &tape, zero_ns, &mut frames, spool);
        done += tape.num_events();
        if spool.failed() {
            return Ok(());
        }
        if !progress(done) {
            return Err(Error::Stopped);
        }
    }
    spool.buffer().extend_from_slice(b"],\"shared\":{\"frames\":[");
    for (index, &function_id) in frames.functions.iter().enumerate() {
        let separator: &[u8] = if index == 0 { b"{\"name\":" } else { b",\n{\"name\":" };
        let out = spool.buffer();
        out.extend_from_slice(separator);
        out.extend_from_slice(names.get(function_id));
        out.push(b'}');
        spool.flush_if_full();
    }
    spool.buffer().extend_from_slice(b"]}");
    Ok(())
}

/// Functions, numbered as they are met.
#[derive(Debug, Default)]
struct FrameNumbers {
    /// Number of each, from 1; 0 for those that were not met.
    numbers: Vec<u32>,
    functions: Vec<u32>,
}

impl FrameNumbers {
    #[inline]
    fn number(&mut self, function_id: u32) -> u32 {
        let index = function_id as usize;
        if index >= self.numbers.len() {
            self.numbers.resize(index + 1, 0);
        }
        if self.numbers[index] == 0 {
            self.functions.push(function_id);
            self.numbers[index] = self.functions.len() as u32;
        }
        self.numbers[index] - 1
    }
}

fn profile(thread: &Thread, tape: &Tape, zero_ns: i64, frames: &mut FrameNumbers, spool: &mut Spool) {
    let Thread { pid, tid, name, process_name } = thread;
    let title = name.as_ref().or(process_name.as_ref()).map_or("thread", String::as_str);
    let at = |ns: i64| ns.saturating_sub(zero_ns).max(0).cast_unsigned();
    let (start_ns, end_ns) = tape.span_ns();
    let out = spool.buffer();
    out.extend_from_slice(b"{\"type\":\"evented\",\"name\":");
    json::string(out, &format!("{title} {pid}/{tid}"));
    let span =
        format!(",\"unit\":\"nanoseconds\",\"startValue\":{},\"endValue\":{}", at(start_ns), at(end_ns));
    out.extend_from_slice(span.as_bytes());
    out.extend_from_slice(b",\"events\":[");
    let mut separator: &[u8] = b"";
    for event in tape.events() {
        let out = spool.buffer();
        out.extend_from_slice(separator);
        out.extend_from_slice(if event.opens {
            b"{\"type\":\"O\",\"frame\":"
        } else {
            b"{\"type\":\"C\",\"frame\":"
        });
        json::number(out, frames.number(event.function_id).into());
        out.extend_from_slice(b",\"at\":");
        json::number(out, at(event.ts_ns));
        out.push(b'}');
        separator = b",\n";
        spool.flush_if_full();
    }
    spool.buffer().extend_from_slice(b"]}");
}
