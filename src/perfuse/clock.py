"""The clock of a recording."""

from math import isnan
from typing import NamedTuple

from perfuse.errors import UsageError

_MOST_NS = 2**63 - 1


def range_ns(between: tuple[float, float] | None) -> tuple[int, int] | None:
    """A range of seconds in nanoseconds; its end may be infinite. None is none.

    Raises:
        UsageError: It is empty, or an end is not a number.
    """
    if between is None:
        return None
    start, end = between
    if isnan(start) or isnan(end) or not start < end:
        raise UsageError(f"there is no time between {start:.9g} and {end:.9g} s", field="between")
    first, last = (max(-_MOST_NS, min(one * 1e9, _MOST_NS)) for one in between)
    return min(round(first), _MOST_NS), min(round(last), _MOST_NS)


class Clock(NamedTuple):
    """How the times of a recording become nanoseconds, `ns = ticks * numerator / denominator + offset_ns`.

    The attributes are those of a row of table `clocks`. The default is nanoseconds of the monotonic clock.

    Attributes:
        kind: Clock of the recording: `monotonic`, `tsc`, `realtime`, `perf`, `unknown`, or another of `perf record -k`.
        hz: Ticks a second; None where unknown.
        hz_source: `defined`, `header`, `unverified` (of a header that nothing confirms), `estimated` from the records,
            `given` or `unknown`.
        stated_hz: Rate that the file itself states; None where it states none.
        numerator: Nanoseconds of `denominator` ticks; 0 where all times are `offset_ns`.
        denominator: At least 1.
        offset_ns: Time of tick 0.
        uncertainty_ns: How far off times may be; None where exact or unknown.
        alignment: How the offset was found, as in column `clocks.alignment`.
    """

    kind: str = "monotonic"
    hz: int | None = 1_000_000_000
    hz_source: str = "defined"
    stated_hz: int | None = None
    numerator: int = 1
    denominator: int = 1
    offset_ns: int = 0
    uncertainty_ns: int | None = None
    alignment: str = "same_clock"
