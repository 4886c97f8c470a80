"""Chrome's trace events as JSON: chrome://tracing, Perfetto, speedscope and many more open it."""

import json
from typing import IO

from perfuse.errors import ExportError
from perfuse.exporters.source import Progress, TraceSource


def write(profile: TraceSource, out: IO[bytes], *, progress: Progress | None = None) -> None:
    """Writes calls, slices that are not calls, counters and instants as trace events.

    Times are microseconds after the first event; `otherData` has its time on the profile's clock.

    Args:
        profile: The profile.
        out: A binary file object.
        progress: Called with the name of the current step and the completed share (0 to 1).

    Raises:
        ExportError: The profile has none of these.
    """
    trace = profile.call_trace(progress)
    if trace is None:
        raise ExportError("there are no calls to show", hint="samples go into perfetto, firefox, speedscope and pprof")
    members = {
        "displayTimeUnit": "ns",
        "otherData": {"title": profile.title, "clock": trace.clock or "unknown", "start_ns": trace.first_ns},
    }
    out.write(json.dumps(members)[:-1].encode() + b', "traceEvents": [\n')
    trace.write_chrome(out, progress)
    out.write(b"\n]}\n")
