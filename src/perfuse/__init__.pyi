"""The public names of the package, for type checkers; `__init__.py` imports them on first use."""

from perfuse import fleet
from perfuse._core import __version__
from perfuse.capture.recorded_run import RecordedRun, record
from perfuse.clock import Clock
from perfuse.diagnostics import Diagnostic, Rule, explain, rules
from perfuse.errors import (
    ExportError,
    InternalError,
    OutOfMemory,
    PerfuseError,
    QueryError,
    RecordingError,
    UnreadableInput,
    UsageError,
)
from perfuse.formats.jitdump import public as jitdump
from perfuse.formats.mono import public as mono
from perfuse.formats.sframe import public as sframe
from perfuse.formats.xray import public as xray
from perfuse.fusing import fuse
from perfuse.profile import Join, Profile
from perfuse.recording import Recording, check, open
from perfuse.records import Hex, Record
from perfuse.repairing import RepairResult, repair
from perfuse.summary import Summary
from perfuse.table import Table

__all__ = [
    "Clock",
    "Diagnostic",
    "ExportError",
    "Hex",
    "InternalError",
    "Join",
    "OutOfMemory",
    "PerfuseError",
    "Profile",
    "QueryError",
    "Record",
    "RecordedRun",
    "Recording",
    "RecordingError",
    "RepairResult",
    "Rule",
    "Summary",
    "Table",
    "UnreadableInput",
    "UsageError",
    "__version__",
    "check",
    "explain",
    "fleet",
    "fuse",
    "jitdump",
    "mono",
    "open",
    "record",
    "repair",
    "rules",
    "sframe",
    "xray",
]
