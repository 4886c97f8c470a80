"""Mono logs, which mprof-report and perfuse read."""

import warnings
from typing import IO

from perfuse.analysis.sampled import select_event
from perfuse.errors import ExportWarning, UsageError
from perfuse.exporters.contents import contents, note_other_events
from perfuse.exporters.source import RuntimeSource
from perfuse.table import SUM_EVENTS, SUMS_OF_EVENTS

_EVENTS = "the events of Mono's logs"
CONTENTS = contents(
    samples="each of one event, with its time and stack",
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
    event: str | None = None,
) -> None:
    """Writes the Mono logs of a profile as one log, or the allocations, calls and samples of other recorders.

    What a log cannot represent is reported as `ExportWarning`.

    Args:
        profile: The profile.
        out: A binary file object.
        version: Data version, 1 to 17; by default that of the first log.
        kinds: Only events of these names or patterns, separated by commas, and those that name something: ALLOC*,GC_*
        any_run: Write logs of several runs as one, their addresses mixed.
        event: Of other recorders, the event whose samples are written, as logs have samples of one; by default the
            one with the most.

    Raises:
        UsageError: There are no samples of that event, or the samples are Mono's.
    """
    patterns = None if kinds is None else [kind.strip() for kind in kinds.split(",")]
    log = profile.runtime_log
    sampled = None
    if log.is_of_mono_logs:
        if event is not None:
            raise UsageError("the samples of Mono logs have no event", field="event")
    elif event is not None or profile.has_samples:
        sampled = select_event(profile, event).name
        if event is None:
            note_other_events(profile, sampled, *SUMS_OF_EVENTS)
        elif sampled in SUM_EVENTS:
            raise UsageError(
                f"{event} are sums by stack, and a Mono log has single samples",
                field="event",
                hint="leave out event=NAME: calls, allocations, and the event with the most samples are written",
            )
    written = log.write(out, version=version, kinds=patterns, any_run=any_run, event=sampled)
    for note in written.notes():
        warnings.warn(note, ExportWarning, stacklevel=2)
