"""Checks of a report's facts, for builds that must fail when a program gets worse: `allocations.bytes < 50MB`."""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from perfuse.errors import UsageError

_UNITS = {
    "": 1.0,
    "B": 1.0,
    "KB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
    "ns": 1.0,
    "us": 1e3,
    "µs": 1e3,
    "ms": 1e6,
    "s": 1e9,
    "%": 1.0,
}
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "=": operator.eq,
    "!=": operator.ne,
}
_ASSERTION = re.compile(
    r"""\s*(?P<fact>[A-Za-z_][\w.]*(?:\[(?:'[^']*'|"[^"]*")\][\w.]*)?)
    \s*(?P<comparison><=|>=|==|!=|<|>|=)
    \s*(?P<number>\d[\d,_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*(?P<unit>[A-Za-zµ%]*)\s*""",
    re.VERBOSE,
)
_INDEX = re.compile(r"""^(?P<list>[^\[]+)\[(?:'(?P<single>[^']*)'|"(?P<double>[^"]*)")\](?P<rest>.*)$""")
GRAMMAR = "FACT COMPARISON NUMBER[UNIT], such as allocations.bytes < 50MB or gc.pauses.p99 <= 10ms"


@dataclass(frozen=True, slots=True)
class Assertion:
    """A fact that has to hold.

    Attributes:
        text: As it was written.
        fact: Which fact: `gc.pauses.max`, `allocations['System.String'].bytes`.
        comparison: `<`, `<=`, `>`, `>=`, `==` or `!=`.
        limit: What it is compared with: bytes, nanoseconds, or a number.
    """

    text: str
    fact: str
    comparison: str
    limit: float

    def holds(self, value: float) -> bool:
        """Whether a value is as it has to be."""
        return _COMPARISONS[self.comparison](value, self.limit)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of an assertion: the value the fact has, and whether it holds."""

    assertion: Assertion
    value: float
    holds: bool


def parse(text: str) -> Assertion:
    """An assertion as it is written.

    >>> parse("gc.pauses.p99 <= 10ms")
    Assertion(text='gc.pauses.p99 <= 10ms', fact='gc.pauses.p99', comparison='<=', limit=10000000.0)

    Raises:
        UsageError: It is none.
    """
    match = _ASSERTION.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is no assertion", field="assert", hint=f"write {GRAMMAR}")
    unit = match["unit"]
    if unit not in _UNITS:
        known = ", ".join(name for name in _UNITS if name)
        raise UsageError(f"{unit!r} is no unit of {text!r}", field="assert", hint=f"units are {known}")
    limit = float(match["number"].replace(",", "").replace("_", "")) * _UNITS[unit]
    return Assertion(text, match["fact"], match["comparison"], limit)


Facts = Mapping[str, Any]
"""Facts by name: numbers, functions that work one out; of names with `[]`, functions of a name in a list."""


def judge(assertions: list[Assertion], facts: Facts) -> list[Verdict]:
    """Holds assertions against facts; only those that are named are worked out.

    Raises:
        UsageError: There is no such fact.
    """
    verdicts = []
    for one in assertions:
        value = float(_value(one.fact, facts))
        verdicts.append(Verdict(one, value, one.holds(value)))
    return verdicts


def _value(fact: str, facts: Facts) -> float:
    known, arguments = fact, []
    if match := _INDEX.match(fact):
        known = f"{match['list']}[]{match['rest']}"
        arguments = [match["single"] if match["single"] is not None else match["double"]]
    if known not in facts:
        there = ", ".join(name.replace("[]", "['NAME']") for name in facts)
        raise UsageError(f"there is no fact {fact!r} here", field="assert", hint=f"there are {there}")
    found = facts[known]
    return found(*arguments) if callable(found) else found  # type: ignore[no-any-return]
