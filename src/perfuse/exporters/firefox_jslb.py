"""The Firefox Profiler's processed profile as JSLB: its long arrays are binary, and no string of its JSON is long."""

from typing import IO, Literal

from perfuse.exporters import firefox
from perfuse.exporters.firefox.slabs import as_slabs
from perfuse.exporters.source import EventSource

CONTENTS = firefox.CONTENTS


def write(
    profile: EventSource,
    out: IO[bytes],
    *,
    weight: Literal["samples", "events"] = "samples",
    max_calls: int = 500_000,
) -> None:
    """Writes what target `firefox` writes, with arrays of numbers and the names in slabs.

    Args:
        profile: The profile.
        out: A binary file object.
        weight: Weight of a sample: `samples`, 1 each, or `events`, what it represents: milliseconds where the event is
            a clock, else numbers of events.
        max_calls: Of more calls than this, only sums are written.

    Raises:
        UsageError: `weight` is neither.
        ExportError: The profile has neither samples nor events.
    """
    out.write(as_slabs(firefox.processed_profile(profile, weight, max_calls)))
