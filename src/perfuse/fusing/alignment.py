"""How the times of a dump or log are put on the clock of the samples, and how far off they may be."""

from dataclasses import dataclass, replace

from perfuse import _core
from perfuse.fusing.facts import SamplingFacts
from perfuse.fusing.matching import Match
from perfuse.recording import Recording

_SECOND = 1_000_000_000
_MILLISECOND = 1_000_000


ALIGNMENTS = dict(_core.alignments())
"""Every value of column `clocks.alignment`, with its meaning."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """How times are converted, `ns = ticks * numerator / denominator + offset_ns`, and how that was found.

    Attributes:
        kind: Clock of the recording, as in column `clocks.kind`.
        how: How the offset was found, one of `ALIGNMENTS`.
        hz: Ticks a second.
        hz_source: `defined`, `header`, `unverified`, `estimated`, `given` or `unknown`.
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
    """A time known on both clocks: a process maps its dump when it writes the header."""

    ticks: int
    ns: int


def needs_first_uses(match: Match, facts: SamplingFacts) -> bool:
    """Whether alignment depends on when code was first sampled: the process is known and the clocks differ."""
    return match.pid is not None and not _on_one_clock(match.dump, facts)


def align_log(log: Recording, clock: Alignment, facts: SamplingFacts, first_uses: list[tuple[int, int]]) -> Alignment:
    """Puts a runtime's log on the samples' clock. Its durations are not changed.

    Args:
        log: The log.
        clock: Its times on its own clock, in nanoseconds.
        facts: Facts about the recording of samples.
        first_uses: `(ns when made, ns when first sampled)` of code that the log created and that was sampled.
    """
    if facts.clock == clock.kind:
        return clock
    if "first_use" not in log.entry.clock.alignments or not first_uses:
        return replace(clock, how="none")
    # Code does not run before it is made, so the offset is at most this; some code runs right after it is made.
    latest = min(sampled - made for made, sampled in first_uses)
    return replace(clock, offset_ns=clock.offset_ns + latest, how="first_use")


def align(match: Match, facts: SamplingFacts, first_uses: list[tuple[int, int]]) -> Alignment:
    """Puts a dump on the samples' clock.

    Args:
        match: The dump and its process.
        facts: Facts about the recording of samples.
        first_uses: `(ticks when made, ns when first sampled)` of code that was sampled.
    """
    dump = match.dump
    if _on_one_clock(dump, facts):
        return Alignment()
    is_tsc = _is_tsc(dump, facts)
    conversion = facts.time_conversion if is_tsc else None
    if conversion is not None and facts.clock == "perf":
        shift, mult, zero = conversion
        return Alignment("tsc", mult, 2**shift, zero, "time_conv", round(_SECOND * 2**shift / mult), "header")
    if match.marker is None or dump.summary.span is None:
        return _always(facts, "tsc" if is_tsc else "monotonic")
    anchor = Anchor(_first_ticks(dump), match.marker.ts)
    if conversion is not None:
        # The conversion is to perf's own clock and the samples are on another: its rate applies, its zero does not.
        shift, mult, _ = conversion
        offset = anchor.ns - (anchor.ticks * mult >> shift)
        hz = round(_SECOND * 2**shift / mult)
        return Alignment("tsc", mult, 2**shift, offset, "marker", hz, "header", uncertainty_ns=_MILLISECOND)
    return _by_rate(anchor, first_uses, facts) if is_tsc else _by_offset(anchor, first_uses)


def _always(facts: SamplingFacts, kind: str) -> Alignment:
    """The alignment without a time that is known on both clocks: all code exists from the start of the recording."""
    start = facts.span[0] - _SECOND if facts.span else 0
    return Alignment(kind, numerator=0, offset_ns=start, how="none", hz=None)


def _by_offset(anchor: Anchor, first_uses: list[tuple[int, int]]) -> Alignment:
    """Aligns clocks of the same rate.

    The offset is at least that of the anchor, because the file is mapped before it is written to. It is at most the
    one at which no code runs before it was made.
    """
    least = anchor.ns - anchor.ticks
    most = min((sampled - made for made, sampled in first_uses if sampled - made >= least), default=None)
    uncertainty = None if most is None else most - least
    return Alignment(offset_ns=least, how="marker", uncertainty_ns=uncertainty)


def _by_rate(anchor: Anchor, first_uses: list[tuple[int, int]], facts: SamplingFacts) -> Alignment:
    """Aligns a counter whose rate is not recorded.

    Some code is sampled soon after it is made, so the least of all ratios (time of the first sample to ticks at which
    the code was made) is slightly above the length of a tick.
    """
    second = facts.cpu_hz or 0
    later = [(made - anchor.ticks, sampled - anchor.ns) for made, sampled in first_uses if made > anchor.ticks]
    # The ratios of code that was made right at the start depend on the anchor's error more than on the rate.
    longest = max((ticks for ticks, _ in later), default=0)
    ratios = [ns / ticks for ticks, ns in later if ns > 0 and ticks >= longest / 4]
    if ratios:
        tick_ns = min(ratios)
        # The counter's frequency is the nominal one in the processor's name, rounded; where the samples agree with
        # that one, it is more precise.
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
    hz = round(_SECOND / tick_ns)
    how = "marker_and_rate"
    return Alignment("tsc", numerator, denominator, offset, how, hz, "estimated", uncertainty_ns=uncertainty)


def _on_one_clock(dump: Recording, facts: SamplingFacts) -> bool:
    """Whether times of both are comparable as they are."""
    return facts.clock == "monotonic" and not _is_tsc(dump, facts)


def _is_tsc(dump: Recording, facts: SamplingFacts) -> bool:
    """Whether the times are those of the processor's counter: some writers set the flag and write nanoseconds."""
    span = dump.summary.span
    if dump.summary.clock != "tsc" or span is None:
        return False
    if facts.clock != "monotonic" or facts.span is None:
        return True
    first, last = facts.span
    return not first - 60 * _SECOND <= span[0] <= last + 60 * _SECOND


def _first_ticks(dump: Recording) -> int:
    """When the dump was begun: by its header where that time is on the records' clock, else by its first record."""
    assert dump.summary.span is not None
    first = dump.summary.span[0]
    field = dump.entry.clock.start_field
    if field is None:
        return first
    header = int(dump.header[field])
    return header if 0 <= first - header <= 60 * _SECOND else first
