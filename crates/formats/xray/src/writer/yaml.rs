//! Writes the YAML form of llvm-xray, which it reads as version 1: a line per record, in order of time.

use std::borrow::Cow;
use std::io::Write;

use rustc_hash::FxHashMap;

use super::sink::{
    BufferStart, FinishLog, LogSink, LogSpec, ThreadEvent, ThreadIds, TscStamp, WriteError, WriteSummary,
};
use crate::consts::Action;
use crate::header::Mode;

/// A sink that sorts all events of all threads by time and writes them at the end.
#[derive(Debug)]
pub struct YamlSink<W: Write> {
    out: W,
    spec: LogSpec,
    names: FxHashMap<u32, String>,
    lines: Vec<YamlLine>,
    written: WriteSummary,
}

#[derive(Debug)]
struct YamlLine {
    thread_ids: ThreadIds,
    at: TscStamp,
    kind: &'static str,
    function_id: u32,
    argument: Option<u64>,
    data: Box<[u8]>,
}

impl<W: Write> YamlSink<W> {
    /// A sink with this header, and with names of functions by their ids; functions without one are written with their id.
    pub fn new(out: W, spec: LogSpec, names: FxHashMap<u32, String>) -> Self {
        let names = names.into_iter().map(|(id, name)| (id, scalar(name.as_bytes()))).collect();
        Self { out, spec, names, lines: Vec::new(), written: WriteSummary::default() }
    }

    /// Writes the header.
    fn header(&mut self) -> Result<(), WriteError> {
        let LogSpec { mode, version, tsc_flags: (constant, nonstop), cycle_frequency, .. } = self.spec;
        let mode = u8::from(mode == Mode::Fdr);
        writeln!(
            self.out,
            "---\nheader:\n  version:         {version}\n  type:            {mode}\n  constant-tsc:    {constant}\n  \
             nonstop-tsc:     {nonstop}\n  cycle-frequency: {cycle_frequency}\nrecords:"
        )?;
        Ok(())
    }
}

impl<W: Write> LogSink for YamlSink<W> {
    fn begin(&mut self, start: &BufferStart) {
        let num_lost = u64::from(start.wall != (0, 0));
        let so_far = &mut self.written.unsupported.wall_times;
        *so_far = so_far.saturating_add(num_lost);
    }

    fn end(&mut self, _even_empty: bool) -> Result<(), WriteError> {
        Ok(())
    }

    fn new_cpu(&mut self, _at: TscStamp) {}

    fn wrap(&mut self, _tsc: u64) {}

    fn write_event(&mut self, thread_ids: ThreadIds, at: TscStamp, event: ThreadEvent<'_>) {
        let (kind, function_id, data) = match event {
            ThreadEvent::Argument(value) => {
                if let Some(line) = self.lines.last_mut() {
                    (line.kind, line.argument) = ("function-enter-arg", Some(value));
                }
                return;
            }
            ThreadEvent::Call { action, function_id } => {
                let calls = &mut self.written.num_calls;
                *calls = calls.saturating_add(1);
                let kind = match action {
                    Action::EXIT => "function-exit",
                    Action::TAIL_EXIT => "function-tail-exit",
                    // Its argument may be lost.
                    Action::ENTRY_ARGS => "function-enter-arg",
                    _ => "function-enter",
                };
                (kind, function_id, &[][..])
            }
            ThreadEvent::Event { event_type, payload } => {
                let events = &mut self.written.num_events;
                *events = events.saturating_add(1);
                let kind = if event_type.is_some() { "typed-event" } else { "custom-event" };
                (kind, 0, payload)
            }
        };
        self.lines.push(YamlLine { thread_ids, at, kind, function_id, argument: None, data: data.into() });
    }

    fn check(&mut self) -> Result<(), WriteError> {
        Ok(())
    }
}

impl<W: Write> FinishLog for YamlSink<W> {
    fn finish(&mut self) -> Result<WriteSummary, WriteError> {
        self.header()?;
        self.lines.sort_by_key(|line| line.at.tsc);
        for YamlLine { thread_ids: (pid, tid), at, kind, function_id, argument, data } in &self.lines {
            let id = function_id.cast_signed();
            // llvm-xray reads function ids as signed numbers, processes and threads as unsigned ones.
            let (pid, tid) = (pid.cast_unsigned(), tid.cast_unsigned());
            let arguments = argument.map(|value| format!("args: [ {value} ], ")).unwrap_or_default();
            let data = scalar(data);
            let unnamed = || Cow::Owned(format!("'{id}'"));
            let name = self.names.get(function_id).map_or_else(unnamed, |name| Cow::Borrowed(name.as_str()));
            writeln!(
                self.out,
                "  - {{ type: 0, func-id: {id}, function: {name}, {arguments}cpu: {}, thread: {tid}, process: {pid}, \
                 kind: {kind}, tsc: {}, data: {data} }}",
                at.cpu, at.tsc
            )?;
        }
        writeln!(self.out, "...")?;
        self.out.flush()?;
        Ok(self.written)
    }
}

/// Formats bytes as a YAML scalar: plain, in single quotes where llvm-xray has them, or escaped.
fn scalar(data: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let first_is_plain = data.first().is_some_and(|first| first.is_ascii_alphabetic() || *first == b'_');
    if first_is_plain
        && data.iter().all(plain)
        && !RESERVED.iter().any(|word| data.eq_ignore_ascii_case(word))
    {
        return String::from_utf8_lossy(data).into_owned();
    }
    if data.iter().all(|byte| (b' '..=b'~').contains(byte)) {
        return format!("'{}'", String::from_utf8_lossy(data).replace('\'', "''"));
    }
    let escaped = data.iter().map(|byte| match byte {
        b'"' | b'\\' => format!("\\{}", char::from(*byte)),
        b' '..=b'~' => char::from(*byte).to_string(),
        byte => format!("\\x{byte:02X}"),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

/// Words that YAML does not read as text.
const RESERVED: [&[u8]; 3] = [b"null", b"true", b"false"];
