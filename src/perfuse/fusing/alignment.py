"""How the times of a dump or log are put on the clock of the samples, and how far off they may be."""

from perfuse.clock import Clock
from perfuse.fusing.facts import SamplingFacts
from perfuse.fusing.matching import Match, first_ticks
from perfuse.recording import Recording
from perfuse.value_class import value_class

_SECOND = 1_000_000_000
_MILLISECOND = 1_000_000


@value_class
class Anchor:
    """A time known on both clocks: a process maps its dump when it writes the header."""

    ticks: int
    ns: int


def needs_first_uses(match: Match, facts: SamplingFacts) -> bool:
    """Whether alignment depends on when code was first sampled: the process is known and the clocks differ."""
    return match.pid is not None and not _on_one_clock(match.dump, facts)


def align_log(log: Recording, clock: Clock, facts: SamplingFacts, first_uses: list[tuple[int, int]]) -> Clock:
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
        return clock._replace(alignment="none")
    offset, uncertainty = _latest_offset(first_uses, clock.kind, facts)
    return clock._replace(
        offset_ns=clock.offset_ns + offset, uncertainty_ns=uncertainty or clock.uncertainty_ns, alignment="first_use"
    )


def align_by_wall_time(clock: Clock, facts: SamplingFacts, realtime_offset_ns: int) -> Clock:
    """Puts times of the wall clock on the samples' clock.

    Args:
        clock: The times, of clock `realtime`.
        facts: Facts about the recording of samples.
        realtime_offset_ns: Difference of the wall clock and the samples' clock, which their recording states.
    """
    return clock._replace(
        kind=facts.clock, offset_ns=clock.offset_ns - realtime_offset_ns, alignment="wall_time", uncertainty_ns=None
    )


def align(match: Match, facts: SamplingFacts, first_uses: list[tuple[int, int]]) -> Clock:
    """Puts a dump on the samples' clock.

    Args:
        match: The dump and its process.
        facts: Facts about the recording of samples.
        first_uses: `(ticks when made, ns when first sampled)` of code that was sampled.
    """
    dump = match.dump
    if _on_one_clock(dump, facts):
        return Clock()
    is_tsc = _is_tsc(dump, facts)
    conversion = facts.time_conversion if is_tsc else None
    if conversion is not None and facts.clock == "perf":
        shift, mult, zero = conversion
        return _of_counter(mult, 2**shift, zero, "time_conv", "header")
    if match.marker is None or dump.summary.span is None:
        return _always(facts, "tsc" if is_tsc else "monotonic")
    if not match.marker.ts:
        # perf found the mapping when it attached to the process, and states no time of it.
        return _always(facts, "tsc") if is_tsc else _by_first_use(first_uses, facts)
    anchor = Anchor(first_ticks(dump), match.marker.ts)
    if conversion is not None:
        # The conversion is to perf's own clock and the samples are on another: its rate applies, its zero does not.
        shift, mult, _ = conversion
        offset = anchor.ns - (anchor.ticks * mult >> shift)
        return _of_counter(mult, 2**shift, offset, "marker", "header", _MILLISECOND)
    return _by_rate(anchor, first_uses, facts) if is_tsc else _by_offset(anchor, first_uses)


def _always(facts: SamplingFacts, kind: str) -> Clock:
    """The alignment without a time that is known on both clocks: all code exists from the start of the recording."""
    start = facts.span[0] - _SECOND if facts.span else 0
    return Clock(kind, hz=None, numerator=0, offset_ns=start, alignment="none")


def _of_counter(
    numerator: int, denominator: int, offset_ns: int, alignment: str, hz_source: str, uncertainty_ns: int | None = None
) -> Clock:
    """The processor's counter with the rate that the fraction states."""
    return Clock(
        "tsc",
        hz=round(_SECOND * denominator / numerator),
        hz_source=hz_source,
        numerator=numerator,
        denominator=denominator,
        offset_ns=offset_ns,
        uncertainty_ns=uncertainty_ns,
        alignment=alignment,
    )


def _by_offset(anchor: Anchor, first_uses: list[tuple[int, int]]) -> Clock:
    """Aligns clocks of the same rate.

    The offset is at least that of the anchor, because the file is mapped before it is written to. It is at most the
    one at which no code runs before it was made.
    """
    least = anchor.ns - anchor.ticks
    most = min((sampled - made for made, sampled in first_uses if sampled - made >= least), default=None)
    uncertainty = None if most is None else most - least
    return Clock(offset_ns=least, uncertainty_ns=uncertainty, alignment="marker")


def _by_first_use(first_uses: list[tuple[int, int]], facts: SamplingFacts) -> Clock:
    """Aligns clocks of the same rate without a time that is known on both."""
    if not first_uses and facts.clock != "perf":
        return _always(facts, "monotonic")
    offset, uncertainty = _latest_offset(first_uses, "monotonic", facts)
    return Clock(offset_ns=offset, uncertainty_ns=uncertainty, alignment="first_use")


def _latest_offset(first_uses: list[tuple[int, int]], kind: str, facts: SamplingFacts) -> tuple[int, int | None]:
    """The latest offset of a clock of the samples' rate, and how far below the limit that the samples set it is.

    Code does not run before it is made, so the offset is at most this; some code runs right after it is made, unless
    perf attached later. perf's own clock counts from the start of the system as the monotonic one does, so that they
    differ little.
    """
    latest = min((sampled - made for made, sampled in first_uses), default=None)
    if (kind, facts.clock) != ("monotonic", "perf") or (latest is not None and latest <= 0):
        return latest or 0, None
    return 0, latest


def _by_rate(anchor: Anchor, first_uses: list[tuple[int, int]], facts: SamplingFacts) -> Clock:
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
    return _of_counter(numerator, denominator, offset, "marker_and_rate", "estimated", uncertainty)


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
