"""perfuse opens the profiling and tracing files that runtimes write.

    import perfuse as pf

    recording = pf.open("jit-2345.dump")                # one file; its content decides the format
    profile = pf.fuse("perf.data", "jit-2345.dump")     # several, joined on one clock
    profile.sql("SELECT name, count(*) FROM functions GROUP BY 1").fetchall()
    profile.export("profile.json", to="firefox")

In a larger program:

- Recordings, profiles and tables may be used by several threads at once. The core runs without the interpreter's lock;
  from asyncio, call it with `asyncio.to_thread`.
- Processes, spawned or forked, open the files themselves: recordings, profiles and tables cannot be pickled. What they
  answer can be: diagnostics, summaries, joins, records, errors. A forked process may use the profile that it inherited.
- `with pf.fuse(...) as profile:` closes its files at the end. Tables and answers that were computed before stay valid.
- Every error of perfuse is a `PerfuseError`, with `hint` for the next step and `path` and `offset` for the place.
- The limit of memory is one of the whole process, by default 60 % of what there is: `pf.fuse(..., memory="4GB")`.

Importing this package loads the compiled core and nothing else; DuckDB and Arrow are loaded when first needed.
Every other public name is imported on first use, so this module depends on no module that uses it: `Recording.profile`
calls `perfuse.fuse`. `__init__.pyi` declares the names to type checkers.
"""

from __future__ import annotations

import sys

if "t" in sys.abiflags:
    raise ImportError(
        "perfuse does not support free-threaded CPython (3.13t, 3.14t): its core needs the interpreter's lock;"
        " use the ordinary build of this version"
    )

from perfuse._core import __version__
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

TYPE_CHECKING = False
"""The value of `typing.TYPE_CHECKING`; importing `typing` takes longer than this package."""
if TYPE_CHECKING:
    from typing import Any

_HOMES = {
    "Clock": "perfuse.clock",
    "Diagnostic": "perfuse.diagnostics",
    "Hex": "perfuse.records",
    "Join": "perfuse.profile",
    "Profile": "perfuse.profile",
    "Record": "perfuse.records",
    "RecordedRun": "perfuse.capture.recorded_run",
    "Recording": "perfuse.recording",
    "RepairResult": "perfuse.repairing",
    "Rule": "perfuse.diagnostics",
    "Summary": "perfuse.summary",
    "Table": "perfuse.table",
    "check": "perfuse.recording",
    "explain": "perfuse.diagnostics",
    "fuse": "perfuse.fusing",
    "open": "perfuse.recording",
    "record": "perfuse.capture.recorded_run",
    "repair": "perfuse.repairing",
    "rules": "perfuse.diagnostics",
}

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


def __getattr__(name: str) -> Any:
    import importlib

    if name == "fleet":
        return importlib.import_module("perfuse.fleet")
    if name in ("jitdump", "mono", "sframe", "xray"):
        return importlib.import_module(f"perfuse.formats.{name}.public")
    if name not in _HOMES:
        raise AttributeError(f"module 'perfuse' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
