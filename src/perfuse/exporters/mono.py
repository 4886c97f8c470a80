"""Mono logs, which mprof-report and perfuse read."""

import warnings
from typing import IO

from perfuse.errors import ExportWarning
from perfuse.exporters.contents import contents
from perfuse.exporters.source import RuntimeSource

_EVENTS = "the events of Mono's logs"
CONTENTS = contents(
    samples="each, with its time and stack",
    calls="each, with its times",
    allocations="each, with its time and stack",
    slices=_EVENTS,
    instants=_EVENTS,
    exceptions=_EVENTS,
    counters=_EVENTS,
    heap_snapshots=_EVENTS,
    handles=_EVENTS,
    moves=_EVENTS,
    code="methods of Mono's logs with their addresses",
    coverage=_EVENTS,
)


def write(
    profile: RuntimeSource,
    out: IO[bytes],
    *,
    version: int | None = None,
    kinds: str | None = None,
    any_run: bool = False,
) -> None:
    """Writes the Mono logs of a profile as one log, or the allocations, calls and samples of other recorders.

    What a log cannot represent is reported as `ExportWarning`.

    Args:
        profile: The profile.
        out: A binary file object.
        version: Data version, 1 to 17; by default that of the first log.
        kinds: Only events of these names or patterns, separated by commas, and those that name something: ALLOC*,GC_*
        any_run: Write logs of several runs as one, their addresses mixed.
    """
    patterns = None if kinds is None else [kind.strip() for kind in kinds.split(",")]
    written = profile.runtime_log.write(out, version=version, kinds=patterns, any_run=any_run)
    for note in written.notes():
        warnings.warn(note, ExportWarning, stacklevel=2)
