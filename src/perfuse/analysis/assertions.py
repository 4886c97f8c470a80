"""Assertions about the facts of a report, such as `allocations.bytes < 50MB`, for builds that fail on regressions."""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from perfuse.errors import UsageError, nearest_hint

UNITS = {
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
"""Factors of the units that numbers may have."""

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
    \s*(?P<number>-?\d[\d,_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*(?P<unit>[A-Za-zµ%]*)\s*""",
    re.VERBOSE,
)
_INDEX = re.compile(r"""^(?P<list>[^\[]+)\[(?:'(?P<single>[^']*)'|"(?P<double>[^"]*)")\](?P<rest>.*)$""")
GRAMMAR = "FACT COMPARISON NUMBER[UNIT], such as allocations.bytes < 50MB or gc.pauses.p99 <= 10ms"


@dataclass(frozen=True, slots=True)
class Assertion:
    """A condition on a fact.

    Attributes:
        text: Its source text.
        fact: Name of the fact: `gc.pauses.max`, `allocations['System.String'].bytes`.
        comparison: `<`, `<=`, `>`, `>=`, `==` or `!=`.
        limit: The value to compare with: bytes, nanoseconds, or a number.
    """

    text: str
    fact: str
    comparison: str
    limit: float

    def holds(self, value: float) -> bool:
        """Whether a value satisfies the condition."""
        return _COMPARISONS[self.comparison](value, self.limit)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of an assertion.

    Attributes:
        assertion: The assertion.
        value: The value of the fact; None where it was not recorded.
        holds: Whether the assertion holds; not where the fact was not recorded.
        reason: Why the fact has no value; None where it has one.
    """

    assertion: Assertion
    value: float | None
    holds: bool
    reason: str | None = None


def parse(text: str) -> Assertion:
    """Parses an assertion.

    >>> parse("gc.pauses.p99 <= 10ms")
    Assertion(text='gc.pauses.p99 <= 10ms', fact='gc.pauses.p99', comparison='<=', limit=10000000.0)

    Raises:
        UsageError: The text is not an assertion.
    """
    match = _ASSERTION.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is not an assertion", field="assert", hint=f"write {GRAMMAR}")
    return Assertion(text, match["fact"], match["comparison"], limit_of(match, text))


def limit_of(match: re.Match[str], text: str) -> float:
    """The number of an assertion in bytes, nanoseconds or percent; `match` has the groups `number` and `unit`.

    Raises:
        UsageError: The unit is not known.
    """
    unit = match["unit"]
    if unit not in UNITS:
        units = ", ".join(name for name in UNITS if name)
        raise UsageError(f"{unit!r} in {text!r} is not a unit", field="assert", hint=f"units are {units}")
    return float(match["number"].replace(",", "").replace("_", "")) * UNITS[unit]


Facts = Mapping[str, Any]
"""Facts by name: numbers or functions that compute one; for names with `[]`, functions of an element's name."""


def judge(assertions: list[Assertion], facts: Facts) -> list[Verdict]:
    """Evaluates assertions; only the facts that they name are computed.

    Raises:
        UsageError: There is no such fact.
    """
    return [_verdict(one, facts) for one in assertions]


def _verdict(assertion: Assertion, facts: Facts) -> Verdict:
    from perfuse.analysis.facts import NotRecorded, UnknownNameError

    try:
        value = float(_value(assertion.fact, facts))
    except NotRecorded as reason:
        return Verdict(assertion, None, False, str(reason))
    except UnknownNameError as error:
        # A type that the program never used is not in the recording: that nothing of it happened is true.
        if error.misspelt or assertion.holds(1) or not assertion.holds(0):
            raise
        value = 0.0
    return Verdict(assertion, value, assertion.holds(value))


def _value(fact: str, facts: Facts) -> float:
    name, arguments = fact, []
    if match := _INDEX.match(fact):
        name = f"{match['list']}[]{match['rest']}"
        arguments = [match["single"] if match["single"] is not None else match["double"]]
    if name not in facts:
        hint = nearest_hint(name, facts, shown=lambda one: one.replace("[]", "['NAME']"))
        raise UsageError(f"there is no fact {fact!r}", field="assert", hint=hint)
    found = facts[name]
    return found(*arguments) if callable(found) else found  # type: ignore[no-any-return]
