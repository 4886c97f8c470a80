"""Putting a dump's time stamps on the clock of the samples, and how surely."""

from dataclasses import dataclass

from perfuse.discovery import Match
from perfuse.formats.perf_data import PerfFacts
from perfuse.recording import Recording

_SECOND = 1_000_000_000
_MILLISECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Alignment:
    """`ns = ticks * numerator / denominator + offset_ns`, and where that is from.

    Attributes:
        kind: Clock it was written with: `monotonic`, `tsc`, `realtime` or `unknown`.
        how: `same_clock`, `marker`, `marker_and_rate`, `time_conv`, `wall_time` or `none`.
        hz: Ticks a second.
        hz_source: `defined`, `header`, `estimated`, `given` or `unknown`.
        stated_hz: Rate that the file itself states; None where it states none.
        uncertainty_ns: How far off times may be; None where exact or unknown.
    """

    kind: str = "monotonic"
    numerator: int = 1
    denominator: int = 1
    offset_ns: int = 0
    how: str = "same_clock"
    hz: int | None = _SECOND
    hz_source: str = "defined"
    stated_hz: int | None = None
    uncertainty_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Anchor:
    """A moment known on both clocks: the process mapped its dump, and wrote the header right then."""

    ticks: int
    ns: int


def needs_samples(match: Match, facts: PerfFacts) -> bool:
    """Whether samples are wanted to bound the error: the clocks are not one."""
    return match.pid is not None and not _on_one_clock(match.dump, facts)


def align(match: Match, facts: PerfFacts, first_uses: list[tuple[int, int]]) -> Alignment:
    """Puts a dump on the samples' clock.

    Args:
        match: The dump and its process.
        facts: What the recording of samples knows.
        first_uses: `(ticks when made, ns when first sampled)` of code that was seen to run.
    """
    dump = match.dump
    if _on_one_clock(dump, facts):
        return Alignment()
    is_tsc = _is_tsc(dump, facts)
    conversion = facts.time_conv if is_tsc else None
    if conversion is not None and facts.clock == "perf":
        shift, mult, zero = conversion
        return Alignment("tsc", mult, 2**shift, zero, "time_conv", round(_SECOND * 2**shift / mult), "header")
    if match.marker is None or dump.summary.span is None:
        return _always(facts, "tsc" if is_tsc else "monotonic")
    anchor = Anchor(_first_ticks(dump), match.marker.ts)
    if conversion is not None:
        # The conversion leads to perf's own clock, and the samples are on another: its rate holds, its zero does not.
        shift, mult, _ = conversion
        offset = anchor.ns - (anchor.ticks * mult >> shift)
        hz = round(_SECOND * 2**shift / mult)
        return Alignment("tsc", mult, 2**shift, offset, "marker", hz, "header", _MILLISECOND)
    return _by_rate(anchor, first_uses, facts) if is_tsc else _by_offset(anchor, first_uses)


def _always(facts: PerfFacts, kind: str) -> Alignment:
    """No moment is known on both clocks: all code was there from the start, of several at an address the last."""
    start = facts.span[0] - _SECOND if facts.span else 0
    return Alignment(kind, numerator=0, offset_ns=start, how="none", hz=None)


def _by_offset(anchor: Anchor, first_uses: list[tuple[int, int]]) -> Alignment:
    """The offset is at least what the anchor says (the file is mapped before it is written to), and at most what lets
    no code run before it was made.
    """
    least = anchor.ns - anchor.ticks
    most = min((sampled - made for made, sampled in first_uses if sampled - made >= least), default=None)
    uncertainty = None if most is None else most - least
    return Alignment(offset_ns=least, how="marker", uncertainty_ns=uncertainty)


def _by_rate(anchor: Anchor, first_uses: list[tuple[int, int]], facts: PerfFacts) -> Alignment:
    """The rate of a counter whose rate nobody wrote down: the fastest-running code was sampled soon after it was made,
    so the least of all (time to first sample / ticks to making) is close to the length of a tick, from above.
    """
    second = facts.cpu_hz or 0
    later = [(made - anchor.ticks, sampled - anchor.ns) for made, sampled in first_uses if made > anchor.ticks]
    # What was made right at the start says more of the anchor's error than of the rate.
    longest = max((ticks for ticks, _ in later), default=0)
    ratios = [ns / ticks for ticks, ns in later if ns > 0 and ticks >= longest / 4]
    if ratios:
        tick_ns = min(ratios)
        # The nominal frequency in the processor's name is the counter's to within its rounding; where the samples
        # agree with it, it is the better number.
        if second and abs(tick_ns * second / _SECOND - 1) < 0.02:
            tick_ns = _SECOND / second
    elif second:
        tick_ns = _SECOND / second
    else:
        return _always(facts, "tsc")
    denominator = 1 << 40
    numerator = round(tick_ns * denominator)
    offset = anchor.ns - anchor.ticks * numerator // denominator
    late = [sampled - (made * numerator // denominator + offset) for made, sampled in first_uses]
    uncertainty = max((-ns for ns in late if ns < 0), default=0) + _MILLISECOND
    return Alignment(
        "tsc", numerator, denominator, offset, "marker_and_rate", round(_SECOND / tick_ns), "estimated", uncertainty
    )


def _on_one_clock(dump: Recording, facts: PerfFacts) -> bool:
    return facts.clock == "monotonic" and not _is_tsc(dump, facts)


def _is_tsc(dump: Recording, facts: PerfFacts) -> bool:
    """Whether the times really are the processor's counter: some writers set the flag over nanoseconds."""
    span = dump.summary.span
    if dump.summary.clock != "tsc" or span is None:
        return False
    if facts.clock != "monotonic" or facts.span is None:
        return True
    first, last = facts.span
    return not first - 60 * _SECOND <= span[0] <= last + 60 * _SECOND


def _first_ticks(dump: Recording) -> int:
    """When the dump was begun: its header's time where that is on the records' clock, else its first record's."""
    assert dump.summary.span is not None
    first = dump.summary.span[0]
    header = int(dump.header["timestamp"])
    return header if 0 <= first - header <= 60 * _SECOND else first
