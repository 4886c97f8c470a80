"""Numbers as text for people: counts, sizes, durations, shares, addresses."""

from __future__ import annotations

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB")


def count_text(count: int) -> str:
    """`1,234,567`"""
    return f"{count:,}"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """`1 sample`, `1,419 samples`"""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def bytes_text(size: int) -> str:
    """`812 B`, `1.9 MiB`"""
    value = float(size)
    for unit in _BINARY:
        if abs(value) < 1024 or unit == _BINARY[-1]:
            return f"{size:,} B" if unit == "B" else f"{value:.{1 if abs(value) < 100 else 0}f} {unit}"
        value /= 1024
    raise AssertionError("the last unit takes every size")


def duration_text(ns: int) -> str:
    """`840 ns`, `3.14 µs`, `12.0 ms`, `1.42 s`, `2 min 05 s`, `3 h 07 min`"""
    if ns < 0:
        return "-" + duration_text(-ns)
    if ns < 1_000:
        return f"{ns} ns"
    for limit, unit, scale in (
        (1_000_000, "µs", 1e3),
        (1_000_000_000, "ms", 1e6),
        (60_000_000_000, "s", 1e9),
    ):
        if ns < limit:
            value = ns / scale
            return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"
    minutes, seconds = divmod(ns // 1_000_000_000, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {seconds:02} s"


def ticks_text(ticks: int) -> str:
    """`1,234 ticks`: time on a clock of unknown rate."""
    return counted(ticks, "tick")


def percent_text(part: float, whole: float) -> str:
    """`31.2%`; a dash where the whole is 0."""
    return f"{100 * part / whole:.1f}%" if whole else "-"


def hex_text(number: int) -> str:
    """`0x7f00c0de`: addresses and offsets, in text and in JSON."""
    return f"{number:#x}"
