"""Perfetto's own packets: ui.perfetto.dev draws the threads of large traces, and its trace processor takes SQL."""

from typing import IO

from perfuse.errors import ExportError
from perfuse.exporters.source import Progress, TraceSource

CLOCKS = {"realtime": 1, "monotonic": 3}
"""Perfetto's `BuiltinClock` by our names."""


def write(profile: TraceSource, out: IO[bytes], *, progress: Progress | None = None) -> None:
    """Writes calls and instants as track events.

    Args:
        profile: What to write.
        out: Where to.
        progress: Called with what is being done, and how much of it is.

    Raises:
        ExportError: There are no calls and no instants.
    """
    trace = profile.call_trace(progress)
    if trace is None:
        raise ExportError("there are no calls to show", hint="samples go into firefox and speedscope")
    trace.write_perfetto(out, CLOCKS.get(trace.clock or ""), progress)
