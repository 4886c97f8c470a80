"""Modules of a report, imported while the core reads a large log, so that nobody waits for them."""

import importlib
from collections.abc import Sequence
from pathlib import Path

LARGE_BYTES = 32 << 20
"""Bytes that take the core longer to read than the modules to import."""
_MODULES = (
    "perfuse.records",
    "perfuse.reports.runtime.report",
    "perfuse.reports.runtime.calls",
    "perfuse.reports.runtime.jit",
    "perfuse.reports.runtime.threads",
    "perfuse.reports.calls",
    "perfuse.reports.calls",
    "perfuse.analysis.program",
    "arro3.core",
)


def import_modules(files: Sequence[str]) -> None:
    """Imports what the report of a managed runtime consists of, if one of the files is a large log of one."""
    if any(path.suffix == ".mlpd" and path.stat().st_size >= LARGE_BYTES for path in map(Path, files)):
        for name in _MODULES:
            importlib.import_module(name)
