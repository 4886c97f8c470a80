//! Encodes JITDUMP records for `perfuse.formats.jitdump`, which owns the file, the lock and the clock.

use std::sync::{Mutex, MutexGuard};

use perfuse_formats::jitdump::consts::RecordTag;
use perfuse_formats::jitdump::encode;
use perfuse_formats::jitdump::inline::debug_info2::{self, DebugInfo2};
use perfuse_formats::jitdump::inline::frames::{self, FramesRecord};
use perfuse_formats::jitdump::inline::inline_info1::{self, InlineEntry1, InlineEntry1Fixed, InlineInfo1};
use perfuse_formats::jitdump::inline::inline_info2::{self, InlineEntry2, InlineEntry2Fixed, InlineInfo2};
use perfuse_formats::jitdump::inline::{DeclaredFunction, InlineCall, InlineTree, SourceLine};
use perfuse_formats::jitdump::layout;
use perfuse_formats::jitdump::records::{DebugInfoEntry, UnwindOrder};
use perfuse_formats::jitdump::writer::{Header, InlineDialect, Writer};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::choice::choice;
use crate::errors::value_error;
use crate::recording::parse_endian;

/// `(address or offset, path, line, column)`.
type LineFields = (u64, String, u32, u32);
/// `(start_offset, size, depth, name, path, line, column, call_path, call_line, call_column)`.
type InlineCallFields = (u64, u64, u32, String, String, u32, u32, String, u32, u32);
/// `(start_addr, end_addr, call_file, call_line, call_column, inline_depth, func_name, call_file_name)`.
type InlineCallEntry = (u64, u64, u32, u32, u32, u32, String, String);
/// `(caller_index, function_name, file, function_start_line, function_start_column, line, column)`.
type InlinePosition = (i32, u32, i32, u32, u32, u32, u32);
/// `offsets, unknown_columns, paths, added_ranges`: what did not fit.
type UnsupportedFields = (u64, u64, u64, u64);

/// Appends records to a buffer that `take` empties.
#[pyclass(frozen, module = "perfuse._core")]
pub struct JitdumpEncoder {
    writer: Mutex<Writer<Vec<u8>>>,
}

#[allow(clippy::too_many_arguments, reason = "one argument a field of the record")]
#[pymethods]
impl JitdumpEncoder {
    #[new]
    fn new(endian: &str) -> PyResult<Self> {
        let endian = parse_endian(endian)?;
        Ok(Self { writer: Mutex::new(Writer::resume(Vec::new(), endian)) })
    }

    /// The file header.
    fn header(&self, elf_mach: u32, pid: u32, timestamp: u64, flags: u64) -> PyResult<()> {
        let mut writer = self.lock()?;
        let header = Header { elf_mach, pid, timestamp, flags };
        let bytes = Writer::new(Vec::new(), &header, writer.endian()).map_err(value_error)?.into_inner();
        writer.get_mut().extend(bytes);
        Ok(())
    }

    /// What was appended since the last call.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = std::mem::take(self.lock()?.get_mut());
        Ok(PyBytes::new(py, &bytes))
    }

    /// Drops what was appended since the last `take`, and debug information that waits for its load.
    fn discard(&self) -> PyResult<()> {
        let mut writer = self.lock()?;
        writer.get_mut().clear();
        writer.forget_pending();
        Ok(())
    }

    fn code_load(
        &self,
        timestamp: u64,
        ids: (u32, u32),
        vma: u64,
        code_addr: u64,
        code_index: u64,
        name: &str,
        code: &[u8],
    ) -> PyResult<()> {
        let (pid, tid) = ids;
        let fixed = layout::Load { pid, tid, vma, code_addr, code_size: 0, code_index };
        self.lock()?.load(timestamp, fixed, name.as_bytes(), code).map_err(value_error)
    }

    fn code_move(
        &self,
        timestamp: u64,
        ids: (u32, u32),
        vma: u64,
        addresses: (u64, u64),
        code_size: u64,
        code_index: u64,
    ) -> PyResult<()> {
        let ((pid, tid), (old_code_addr, new_code_addr)) = (ids, addresses);
        let fixed = layout::Move { pid, tid, vma, old_code_addr, new_code_addr, code_size, code_index };
        self.lock()?.code_move(timestamp, &fixed).map_err(value_error)
    }

    fn debug_info(
        &self,
        timestamp: u64,
        code_addr: u64,
        entries: Vec<LineFields>,
        repeat: bool,
    ) -> PyResult<()> {
        let entries: Vec<DebugInfoEntry<'_>> = entries
            .iter()
            .map(|&(code_addr, ref name, line, discrim)| DebugInfoEntry {
                fixed: layout::DebugEntry { code_addr, line, discrim },
                name: name.as_bytes(),
            })
            .collect();
        self.lock()?.debug_info(timestamp, code_addr, &entries, repeat).map_err(value_error)
    }

    fn unwinding_info(
        &self,
        timestamp: u64,
        eh_frame_hdr: &[u8],
        eh_frame: &[u8],
        mapped_size: u64,
        header_first: bool,
    ) -> PyResult<()> {
        let order = if header_first { UnwindOrder::HeaderFirst } else { UnwindOrder::FrameFirst };
        self.lock()?
            .unwinding_info(timestamp, eh_frame_hdr, eh_frame, mapped_size, order)
            .map_err(value_error)
    }

    /// Lines and inlined calls in `debug_info2` (A) or `frames` (B).
    fn inline_info(
        &self,
        timestamp: u64,
        code_addr: u64,
        dialect: &str,
        outer: (String, String, u32, u32),
        lines: Vec<LineFields>,
        calls: Vec<InlineCallFields>,
    ) -> PyResult<UnsupportedFields> {
        let dialect = choice("dialect", dialect, &InlineDialect::ALL)?;
        let mut tree = tree(&outer, &lines, &calls);
        tree.sort();
        let unsupported =
            self.lock()?.inline_info(timestamp, code_addr, &tree, dialect).map_err(value_error)?;
        Ok((unsupported.offsets, unsupported.unknown_columns, unsupported.paths, unsupported.added_ranges))
    }

    fn tier(&self, timestamp: u64, code_addr: u64, color: u32, name: &str) -> PyResult<()> {
        self.lock()?.tier(timestamp, code_addr, color, name.as_bytes()).map_err(value_error)
    }

    fn embedded_source(&self, timestamp: u64, path: &str, text: &[u8]) -> PyResult<()> {
        self.lock()?.embedded_source(timestamp, path.as_bytes(), text).map_err(value_error)
    }

    /// A record of any kind, as it is.
    fn raw(&self, timestamp: u64, tag: u32, body: &[u8]) -> PyResult<()> {
        self.lock()?.raw(timestamp, RecordTag(tag), body).map_err(value_error)
    }

    /// A body of dialect A, from its lists in the order of the record.
    fn debug_info2_body<'py>(
        &self,
        py: Python<'py>,
        files: Vec<String>,
        function_names: Vec<String>,
        functions: Vec<[u32; 5]>,
        inline_calls: Vec<[u32; 5]>,
        ranges: Vec<[u32; 2]>,
        lines: Vec<[u32; 4]>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        no_nul(files.iter().chain(&function_names))?;
        use debug_info2::{FunctionRecord, InlineCallRecord, LineRecord, Range};
        let function = |[function_name_index, file_index, start_line, start_column, flags]: [u32; 5]| {
            FunctionRecord { function_name_index, file_index, start_line, start_column, flags }
        };
        let call = |[depth, range_count, function_index, call_line_number, call_column_number]: [u32; 5]| {
            InlineCallRecord { depth, range_count, function_index, call_line_number, call_column_number }
        };
        let line = |[code_offset, file_index, line_number, column_number]: [u32; 4]| LineRecord {
            code_offset,
            file_index,
            line_number,
            column_number,
        };
        let info = DebugInfo2 {
            files: files.iter().collect(),
            function_names: function_names.iter().collect(),
            functions: functions.into_iter().map(function).collect(),
            inline_calls: inline_calls.into_iter().map(call).collect(),
            ranges: ranges.into_iter().map(|[start_offset, size]| Range { start_offset, size }).collect(),
            lines: lines.into_iter().map(line).collect(),
            ..DebugInfo2::default()
        };
        Ok(PyBytes::new(py, &debug_info2::encode(&info, self.lock()?.endian())))
    }

    /// A body of dialect B, from its lists in the order of the record.
    fn frames_body<'py>(
        &self,
        py: Python<'py>,
        code_addr: u64,
        code_offsets: Vec<[u32; 2]>,
        source_positions: Vec<InlinePosition>,
        strings: Vec<String>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        no_nul(&strings)?;
        use frames::{CodeOffset, SourcePosition};
        let position = |p: InlinePosition| SourcePosition {
            caller_index: p.0,
            function_name: p.1,
            file: p.2,
            function_start_line: p.3,
            function_start_column: p.4,
            line: p.5,
            column: p.6,
        };
        let offset = |[code_offset, source_position]: [u32; 2]| CodeOffset { code_offset, source_position };
        let frames = FramesRecord {
            code_addr,
            code_offsets: code_offsets.into_iter().map(offset).collect(),
            source_positions: source_positions.into_iter().map(position).collect(),
            strings: strings.iter().collect(),
            padding: &[],
        };
        Ok(PyBytes::new(py, &frames::encode(&frames, self.lock()?.endian())))
    }

    /// A body of dialect C.
    fn inline_calls_body<'py>(
        &self,
        py: Python<'py>,
        code_addr: u64,
        entries: Vec<InlineCallEntry>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        no_nul(entries.iter().flat_map(|entry| [&entry.6, &entry.7]))?;
        let entry = |e: &'_ InlineCallEntry| {
            let (start_addr, end_addr, call_file, call_line, call_column, inline_depth) =
                (e.0, e.1, e.2, e.3, e.4, e.5);
            InlineEntry1Fixed { start_addr, end_addr, call_file, call_line, call_column, inline_depth }
        };
        let entries = entries
            .iter()
            .map(|e| InlineEntry1 {
                fixed: entry(e),
                func_name: e.6.as_bytes(),
                call_file_name: e.7.as_bytes(),
            })
            .collect();
        let info = InlineInfo1 { code_addr, entries, padding: &[] };
        Ok(PyBytes::new(py, &inline_info1::encode(&info, self.lock()?.endian())))
    }

    /// A body of dialect D: entries `(line, column, func_name, file_path)`.
    fn inline_stack_body<'py>(
        &self,
        py: Python<'py>,
        code_addr: u64,
        entries: Vec<(u32, u32, String, String)>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        no_nul(entries.iter().flat_map(|entry| [&entry.2, &entry.3]))?;
        let entries = entries
            .iter()
            .map(|&(line, column, ref func, ref file)| InlineEntry2 {
                fixed: InlineEntry2Fixed { line, column },
                func_name: func.as_bytes(),
                file_path: file.as_bytes(),
            })
            .collect();
        let info = InlineInfo2 { code_addr, entries, padding: &[] };
        Ok(PyBytes::new(py, &inline_info2::encode(&info, self.lock()?.endian())))
    }
}

impl JitdumpEncoder {
    fn lock(&self) -> PyResult<MutexGuard<'_, Writer<Vec<u8>>>> {
        self.writer.lock().map_err(crate::errors::table_error)
    }
}

fn no_nul<'a>(texts: impl IntoIterator<Item = &'a String>) -> PyResult<()> {
    texts
        .into_iter()
        .try_for_each(|text| encode::check_text(text.as_bytes(), "text").map(|_| ()).map_err(value_error))
}

fn tree<'a>(
    outer: &'a (String, String, u32, u32),
    lines: &'a [LineFields],
    calls: &'a [InlineCallFields],
) -> InlineTree<'a> {
    let declaration = |name: &'a str, path: &'a str, line, column| DeclaredFunction {
        name: name.as_bytes(),
        path: path.as_bytes(),
        line,
        column,
    };
    let line = |&(code_offset, ref path, line, column): &'a LineFields| {
        let path = path.as_bytes();
        SourceLine { code_offset, path, line, column }
    };
    InlineTree {
        outer: declaration(&outer.0, &outer.1, outer.2, outer.3),
        lines: lines.iter().map(line).collect(),
        calls: calls
            .iter()
            .map(|call| InlineCall {
                start_offset: call.0,
                size: call.1,
                depth: call.2,
                function: declaration(&call.3, &call.4, call.5, call.6),
                call_path: call.7.as_bytes(),
                call_line: call.8,
                call_column: call.9,
            })
            .collect(),
    }
}
