"""The Firefox Profiler's processed profile: https://profiler.firefox.com opens it.

One track a thread; categories tell JIT tiers, native code and the kernel apart; JavaScript functions are
marked so that the "JavaScript" stack filter works; addresses, libraries and symbols serve the assembly view.
"""

from typing import IO, Literal

from perfuse.errors import ExportError, UsageError
from perfuse.exporters.firefox.meta import interval_ns, meta_json
from perfuse.exporters.firefox.shared import libs_json, shared_json
from perfuse.exporters.firefox.strings import json_object
from perfuse.exporters.firefox.threads import threads_json
from perfuse.exporters.source import Source


def write(profile: Source, out: IO[bytes], *, weight: Literal["samples", "events"] = "samples") -> None:
    """Writes a processed profile as JSON.

    Args:
        profile: What to write.
        out: Where to.
        weight: What a sample counts: `samples`, each the same, or `events`, what it stands for: milliseconds
            where the event is a clock, else numbers of events.

    Raises:
        UsageError: `weight` is neither.
        ExportError: There are no samples.
    """
    if weight not in ("samples", "events"):
        raise UsageError(f"weight is 'samples' or 'events', not {weight!r}", field="weight")
    if profile.sql("SELECT count(*) FROM samples").fetchall() == [(0,)]:
        raise ExportError("there are no samples to show", hint="open the perf.data that goes with the dump as well")
    interval = interval_ns(profile)
    members = {
        "meta": meta_json(profile, interval),
        "libs": libs_json(profile),
        "shared": shared_json(profile),
        "threads": threads_json(profile, interval, weight),
    }
    out.write(json_object(members).encode())
