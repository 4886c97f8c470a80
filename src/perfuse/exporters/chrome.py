"""Chrome's trace events as JSON: chrome://tracing, Perfetto, speedscope and many more open it."""

import json
from typing import IO

from perfuse.errors import ExportError
from perfuse.exporters.source import Progress, TraceSource


def write(profile: TraceSource, out: IO[bytes], *, progress: Progress | None = None) -> None:
    """Writes calls, slices that are no calls, counters and instants as trace events.

    Times are microseconds from the first event on; `otherData` tells its time on the profile's clock.

    Args:
        profile: What to write.
        out: Where to.
        progress: Called with what is being done, and how much of it is.

    Raises:
        ExportError: There is none of these.
    """
    trace = profile.call_trace(progress)
    if trace is None:
        raise ExportError("there are no calls to show", hint="samples go into perfetto, firefox, speedscope and pprof")
    about = {
        "displayTimeUnit": "ns",
        "otherData": {"title": profile.title, "clock": trace.clock or "unknown", "start_ns": trace.first_ns},
    }
    out.write(json.dumps(about)[:-1].encode() + b', "traceEvents": [\n')
    trace.write_chrome(out, progress)
    out.write(b"\n]}\n")
