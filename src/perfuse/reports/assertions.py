"""Assertions about the facts of a profile: checking them, JSON, text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from perfuse.analysis.assertions import Assertion, Verdict, judge, parse
from perfuse.analysis.facts import facts_of
from perfuse.reports.registry import Report
from perfuse.reports.text import Role, Style
from perfuse.reports.units import bytes_text, duration_text

if TYPE_CHECKING:
    from perfuse.profile import Profile

_BYTES = ("bytes", "live_bytes", "retained_bytes")
_TIMES = ("sum", "min", "median", "p90", "p99", "max", "self", "total", "duration")
_NUMBERS = ("counters",)


def parse_assertions(texts: Sequence[str]) -> list[Assertion]:
    """Assertions as they are written; raises `UsageError` for a text that is not one."""
    return [parse(text) for text in texts]


def check_assertions(profile: Profile, assertions: list[Assertion]) -> tuple[list[Verdict], Report]:
    """Compares facts of a profile with assertions.

    Raises:
        UsageError: The profile has no such fact.
    """
    verdicts = judge(assertions, facts_of(profile))
    rows = [
        {"assertion": one.assertion.text, "value": one.value, "holds": one.holds, "reason": one.reason}
        for one in verdicts
    ]
    document = {"kind": "assertions", "title": profile.title, "assertions": rows}
    return verdicts, Report(lambda: document, partial(verdict_lines, verdicts), profile.diagnostics)


def verdict_lines(verdicts: Sequence[Verdict], style: Style) -> Iterator[str]:
    """One line per assertion, with the value of the fact."""
    for one in verdicts:
        mark = style.paint("holds", Role.GOOD) if one.holds else style.paint("fails", Role.ERROR)
        yield f"  {mark}  {one.assertion.text}  {style.paint(value_text(one), Role.FAINT)}"


def value_text(one: Verdict) -> str:
    """`it is 52.4 MiB (54,951,232)`"""
    if one.value is None:
        return one.reason or "not recorded"
    last, value = one.assertion.fact.rpartition(".")[2], one.value
    plain = f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"
    if one.assertion.fact.startswith(_NUMBERS):
        return f"it is {plain}"
    if last.partition("[")[0] in _BYTES:
        return f"it is {'-' if value < 0 else ''}{bytes_text(abs(round(value)))} ({plain})"
    if last in _TIMES:
        return f"it is {duration_text(round(value))} ({plain} ns)"
    return f"it is {plain}{' %' if last == 'share' else ''}"
