"""The clock of a recording."""

from typing import NamedTuple


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
