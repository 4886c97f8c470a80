"""JITDUMP: a writer, with which perf can name the code of a JIT compiler, and records as typed classes.

    import perfuse as pf

    with pf.jitdump.Writer.for_this_process() as writer:
        writer.code_load("kernel", address, size=size, lines=[(0, "kernel.py", 12, 5)])

perf must record with `-k mono`. Process its output with `perf inject --jit`, or open it directly with
`perfuse report perf.data jit-PID.dump`.
"""

from perfuse.formats.jitdump.code import Declaration, InlineCall, Line, UnsupportedCounts, Unwinding
from perfuse.formats.jitdump.records import (
    CodeClose,
    CodeDebugInfo,
    CodeLoad,
    CodeMove,
    CodeOffset,
    CodeUnwindingInfo,
    DebugEntry,
    DebugInfo2,
    DebugInfo2Frames,
    EmbeddedSourceFile,
    FunctionRecord,
    InlineCallEntry,
    InlineCallRecord,
    InlineFrameEntry,
    InlineInfoCalls,
    InlineInfoStack,
    JitdumpRecord,
    JitTier,
    LineRecord,
    RangeRecord,
    RawRecord,
    SourcePosition,
    from_record,
)
from perfuse.formats.jitdump.writer import Dialect, Writer

__all__ = [
    "CodeClose",
    "CodeDebugInfo",
    "CodeLoad",
    "CodeMove",
    "CodeOffset",
    "CodeUnwindingInfo",
    "DebugEntry",
    "DebugInfo2",
    "DebugInfo2Frames",
    "Declaration",
    "Dialect",
    "EmbeddedSourceFile",
    "FunctionRecord",
    "InlineCall",
    "InlineCallEntry",
    "InlineCallRecord",
    "InlineFrameEntry",
    "InlineInfoCalls",
    "InlineInfoStack",
    "JitTier",
    "JitdumpRecord",
    "Line",
    "LineRecord",
    "RangeRecord",
    "RawRecord",
    "SourcePosition",
    "UnsupportedCounts",
    "Unwinding",
    "Writer",
    "from_record",
]
