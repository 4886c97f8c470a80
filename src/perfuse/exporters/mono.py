"""Mono logs: mprof-report reads them, and perfuse."""

import warnings
from typing import IO

from perfuse.errors import ExportWarning
from perfuse.exporters.source import RuntimeSource


def write(
    profile: RuntimeSource,
    out: IO[bytes],
    *,
    version: int | None = None,
    kinds: str | None = None,
    any_run: bool = False,
) -> None:
    """Writes the Mono logs of a profile as one; of other recorders, their allocations, calls and samples.

    What has no place in it is told as `ExportWarning`.

    Args:
        profile: The profile.
        out: A binary file object.
        version: Data version, 1 to 17: as the first log has it.
        kinds: Only events of these names or patterns, with commas between, and what names something: ALLOC*,GC_*
        any_run: Write logs of several runs as one, their addresses mixed.
    """
    patterns = None if kinds is None else [kind.strip() for kind in kinds.split(",")]
    written = profile.runtime_log.write(out, version=version, kinds=patterns, any_run=any_run)
    for note in written.notes():
        warnings.warn(note, ExportWarning, stacklevel=2)
