//! EventWriter, one JSON object each.

use perfuse_tables::access::ColumnError;
use perfuse_tables::{Choices, EndReason, StartReason};

use super::super::instants::Instants;
use super::super::names::EncodedNames;
use super::super::{Spool, Thread, Trace, json};

/// Writes events.
#[derive(Debug)]
pub struct EventWriter {
    spool: Spool,
    names: EncodedNames,
    /// The members that all events of a thread share, by key: those between the phase and the time.
    threads: Vec<Vec<u8>>,
    zero_ns: i64,
    separator: &'static [u8],
}

/// Further members of a call's event.
#[derive(Clone, Copy, Debug)]
pub struct CallDetails<'a> {
    /// Its arguments.
    pub arguments: &'a [u64],
    /// How its start is known.
    pub start_reason: StartReason,
    /// How it ended.
    pub end_reason: EndReason,
}

impl EventWriter {
    /// Of a trace; times are relative to `zero_ns`.
    pub fn new(trace: &Trace<'_>, zero_ns: i64, spool: Spool) -> Result<Self, ColumnError> {
        let names = EncodedNames::of(trace.tables.functions, |name, out| json::escaped(out, name))?;
        let last = trace.survey.thread_ids.last().map_or(0, |&id| id as usize + 1);
        let mut threads = vec![Vec::new(); last];
        for &id in &trace.survey.thread_ids {
            let Thread { pid, tid, .. } = trace.tracks.get(id);
            threads[id as usize] = format!("\",\"pid\":{pid},\"tid\":{tid},\"ts\":").into_bytes();
        }
        Ok(Self { spool, names, threads, zero_ns, separator: b"" })
    }

    /// Writes the names of threads and processes, where known.
    pub fn metadata(&mut self, trace: &Trace<'_>) {
        let mut described = None;
        for thread in trace.tracks.in_order(&trace.survey.thread_ids).map(|(_, thread)| thread) {
            if described.replace(thread.pid) != Some(thread.pid) {
                self.name("process_name", thread.pid, thread.tid.into(), thread.process_name.as_deref());
            }
            self.name("thread_name", thread.pid, thread.tid.into(), thread.name.as_deref());
        }
    }

    /// Writes the name of a thread or process, where known.
    pub fn name(&mut self, what: &str, pid: i32, tid: i64, name: Option<&str>) {
        let Some(name) = name else { return };
        let out = self.begin();
        let start =
            format!("{{\"name\":\"{what}\",\"ph\":\"M\",\"pid\":{pid},\"tid\":{tid},\"args\":{{\"name\":");
        out.extend_from_slice(start.as_bytes());
        json::string(out, name);
        out.extend_from_slice(b"}}");
    }

    /// Writes an instant.
    pub fn instant(&mut self, instants: &Instants<'_>, row: usize) {
        let thread_id = instants.thread_id(row);
        let ts_ns = self.since_zero(instants.ts_ns(row));
        let Self { spool, threads, .. } = self;
        let out = begin(spool, &mut self.separator);
        out.extend_from_slice(b"{\"name\":");
        json::string(out, instants.title(row));
        out.extend_from_slice(b",\"ph\":\"i\",\"s\":\"t");
        out.extend_from_slice(threads.get(thread_id as usize).map_or(b"", Vec::as_slice));
        json::micros(out, ts_ns);
        out.extend_from_slice(b",\"args\":{\"kind\":");
        json::string(out, instants.kind(row));
        if let Some(event_type) = instants.event_type(row) {
            out.extend_from_slice(b",\"event_type\":");
            json::number(out, event_type.into());
        }
        if let Some(payload) = instants.payload(row) {
            out.extend_from_slice(b",\"");
            out.extend_from_slice(payload.key.as_bytes());
            out.extend_from_slice(b"\":");
            json::string(out, &payload.value);
        }
        out.extend_from_slice(b"}}");
        spool.flush_if_full();
    }

    /// Writes a complete call.
    #[inline]
    pub fn complete(
        &mut self,
        thread_id: u32,
        function_id: u32,
        start_ns: i64,
        end_ns: i64,
        about: &CallDetails<'_>,
    ) {
        let out = self.at(b'X', thread_id, function_id, start_ns);
        out.extend_from_slice(b",\"dur\":");
        json::micros(out, end_ns.saturating_sub(start_ns));
        about.write(out);
        self.end();
    }

    /// Writes the begin of a call.
    pub fn begin_call(&mut self, thread_id: u32, function_id: u32, start_ns: i64) {
        self.at(b'B', thread_id, function_id, start_ns);
        self.end();
    }

    /// Writes the end of the innermost call.
    pub fn end_call(&mut self, thread_id: u32, function_id: u32, end_ns: i64, about: &CallDetails<'_>) {
        let out = self.at(b'E', thread_id, function_id, end_ns);
        about.write(out);
        self.end();
    }

    #[inline]
    fn at(&mut self, phase: u8, thread_id: u32, function_id: u32, ts_ns: i64) -> &mut Vec<u8> {
        let ts_ns = self.since_zero(ts_ns);
        let Self { spool, names, threads, separator, .. } = self;
        let out = begin(spool, separator);
        out.extend_from_slice(b"{\"name\":\"");
        out.extend_from_slice(names.get(function_id));
        out.extend_from_slice(b"\",\"ph\":\"");
        out.push(phase);
        out.extend_from_slice(threads.get(thread_id as usize).map_or(b"", Vec::as_slice));
        json::micros(out, ts_ns);
        out
    }

    /// Ends an event.
    #[inline]
    pub fn end(&mut self) {
        self.spool.buffer().push(b'}');
        self.spool.flush_if_full();
    }

    /// Where the next event goes.
    pub fn begin(&mut self) -> &mut Vec<u8> {
        begin(&mut self.spool, &mut self.separator)
    }

    /// Time since the start of the trace.
    pub fn since_zero(&self, ts_ns: i64) -> i64 {
        ts_ns.saturating_sub(self.zero_ns)
    }

    /// Whether the output failed.
    pub fn failed(&self) -> bool {
        self.spool.failed()
    }

    /// Writes the remaining bytes.
    pub fn finish(self) -> std::io::Result<()> {
        self.spool.finish()
    }
}

#[inline]
fn begin<'a>(spool: &'a mut Spool, separator: &mut &'static [u8]) -> &'a mut Vec<u8> {
    let out = spool.buffer();
    out.extend_from_slice(separator);
    *separator = b",\n";
    out
}

impl CallDetails<'_> {
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        let Self { arguments, start_reason, end_reason } = *self;
        if arguments.is_empty() && (start_reason, end_reason) == (StartReason::Entry, EndReason::Exit) {
            return;
        }
        self.members(out);
    }

    fn members(&self, out: &mut Vec<u8>) {
        let mut separator = ",\"args\":{";
        let mut member = |out: &mut Vec<u8>, name: &str| {
            out.extend_from_slice(separator.as_bytes());
            out.extend_from_slice(format!("\"{name}\":").as_bytes());
            separator = ",";
        };
        if let [first, others @ ..] = self.arguments {
            member(out, "arguments");
            out.push(b'[');
            json::value(out, *first);
            for argument in others {
                out.push(b',');
                json::value(out, *argument);
            }
            out.push(b']');
        }
        if self.start_reason != StartReason::Entry {
            member(out, "start_reason");
            json::string(out, self.start_reason.name());
        }
        if self.end_reason != EndReason::Exit {
            member(out, "end_reason");
            json::string(out, self.end_reason.name());
        }
        out.push(b'}');
    }
}
