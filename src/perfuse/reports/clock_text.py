"""What is known of a clock, for a terminal."""

from __future__ import annotations

from dataclasses import dataclass

from perfuse.reports.units import duration_text


@dataclass(frozen=True, slots=True)
class Clock:
    """Clock of a file: its rate, where that is from, how far off times may be, and what the file itself says."""

    path: str
    kind: str
    hz: int | None
    hz_source: str
    stated_hz: int | None
    uncertainty_ns: int | None


def clock_lines(clock: Clock) -> list[str]:
    """The rate of a clock and where it is from, what the file says where that differs, and how sure times are."""
    if clock.hz_source == "defined":
        return [{"monotonic": "monotonic, in nanoseconds", "perf": "perf's own"}.get(clock.kind, clock.kind)]
    if clock.hz is None:
        return ["processor's counter; how long a tick is the file does not tell (--tsc-hz does)"]
    sources = {"estimated": ", measured in the log itself", "header": ", as its header says", "given": ", as given"}
    lines = [f"processor's counter at {_rate(clock.hz)}{sources.get(clock.hz_source, '')}"]
    if clock.stated_hz and clock.hz_source != "header":
        off = clock.stated_hz / clock.hz - 1
        wrong = f": {abs(off):.1%} too {'much' if off > 0 else 'little'}" if abs(off) >= 0.001 else ", too"
        lines.append(f"its header says {_rate(clock.stated_hz)}{wrong}")
    if clock.uncertainty_ns is not None:
        lines.append(f"{clock.kind}, sure to ± {duration_text(clock.uncertainty_ns)}")
    return lines


def _rate(hz: int) -> str:
    return f"{hz / 1e6:,.2f} MHz"
