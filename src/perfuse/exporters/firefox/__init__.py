"""The Firefox Profiler's processed profile: https://profiler.firefox.com opens it.

One track a thread; categories tell JIT tiers, native code and the kernel apart; JavaScript functions are
marked so that the "JavaScript" stack filter works; addresses, libraries and symbols serve the assembly view.
"""

from typing import IO, Literal

from perfuse.errors import UsageError
from perfuse.exporters.firefox.counters import counters_json
from perfuse.exporters.firefox.markers import markers, span_ns
from perfuse.exporters.firefox.meta import interval_ns, meta_json
from perfuse.exporters.firefox.shared import libs_json, shared_json
from perfuse.exporters.firefox.strings import Strings, json_object
from perfuse.exporters.firefox.threads import threads_json
from perfuse.exporters.source import MomentSource, nothing_sampled


def write(profile: MomentSource, out: IO[bytes], *, weight: Literal["samples", "events"] = "samples") -> None:
    """Writes a processed profile as JSON: samples; slices that are no calls and throws as markers; counters.

    Args:
        profile: What to write.
        out: Where to.
        weight: What a sample counts: `samples`, each the same, or `events`, what it stands for: milliseconds
            where the event is a clock, else numbers of events.

    Raises:
        UsageError: `weight` is neither.
        ExportError: There is nothing to show.
    """
    if weight not in ("samples", "events"):
        raise UsageError(f"weight is 'samples' or 'events', not {weight!r}", field="weight")
    span = start_ns, _ = span_ns(profile)
    if start_ns is None:
        raise nothing_sampled(profile)
    interval = interval_ns(profile)
    strings = Strings()
    marked = markers(profile, start_ns)
    threads, tracks = threads_json(profile, interval, weight, marked, strings, start_ns)
    counters = counters_json(profile, start_ns, tracks)
    members = {
        "meta": meta_json(profile, interval, span, has_markers=bool(marked)),
        "libs": libs_json(profile),
        "shared": shared_json(profile, strings),
        "threads": threads,
    }
    out.write(json_object(members if counters is None else members | {"counters": counters}).encode())
