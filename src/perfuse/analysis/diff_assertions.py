"""Assertions about a difference, such as `self(shade) < +5%`: violated where the interval is beyond the limit."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from perfuse.analysis.assertions import limit_of
from perfuse.analysis.diff import Change, Difference, FunctionChange
from perfuse.analysis.run_changes import runs_needed
from perfuse.errors import UsageError, nearest_hint

Outcome = Literal["holds", "violated", "undecided"]

GRAMMAR = (
    "STATISTIC(FUNCTION) < NUMBER[UNIT], such as self(shade) < +5%, total(render) < +20ms, whole < 3% or any.self < 10%"
)

_CONFIDENCE = 0.9
"""Of the two-sided interval: each of its ends is exceeded with a probability of 5 %."""

_ASSERTION = re.compile(
    r"""\s*(?P<what>.+?)\s*(?P<comparison><=|>=|<|>)
    \s*(?P<number>[+-]?\d[\d,_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*(?P<unit>[A-Za-zµ%]*)\s*""",
    re.VERBOSE | re.DOTALL,
)
_SUBJECT = re.compile(
    r"""(?P<statistic>\w+)\s*(?:\(\s*(?P<bare>.+?)\s*\)|\[\s*(?:'(?P<single>.*)'|"(?P<double>.*)")\s*\])""",
    re.VERBOSE | re.DOTALL,
)
_ALIASES = {"p50": "median"}


@dataclass(frozen=True, slots=True)
class ChangeAssertion:
    """A condition on a change.

    Attributes:
        text: Its source text.
        statistic: The statistic; None for the sum of all functions.
        function: Name or pattern of the function; None for all functions.
        is_upper: Whether the change is to be less than the limit.
        limit: The limit, relative (0.05 is 5 %) or in the unit of the statistic.
        is_relative: Whether the limit is relative to the first side.
    """

    text: str
    statistic: str | None
    function: str | None
    is_upper: bool
    limit: float
    is_relative: bool


@dataclass(frozen=True, slots=True)
class AssertionResult:
    """What a comparison shows of an assertion.

    Attributes:
        assertion: The assertion.
        outcome: `violated` where the interval lies beyond the limit, `holds` where it lies on the other side of it.
        value: The change, relative or in the unit of the statistic; None where it is not known.
        low: Lower end of the 90 % interval.
        high: Upper end of it.
        function: The function with the change, where it is one of several.
        runs_needed: For an undecided one: runs a side that would decide; None where more runs would not.
    """

    assertion: ChangeAssertion
    outcome: Outcome
    value: float | None
    low: float | None
    high: float | None
    function: str | None = None
    runs_needed: int | None = None


def parse_change_assertion(text: str) -> ChangeAssertion:
    """Parses an assertion.

    >>> parse_change_assertion("self(shade) < +5%").limit
    0.05

    Raises:
        UsageError: The text is not an assertion.
    """
    match = _ASSERTION.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is not an assertion about a difference", field="assert", hint=f"write {GRAMMAR}")
    is_relative = match["unit"] == "%"
    limit = limit_of(match, text) / (100 if is_relative else 1)
    statistic, function = _subject(match["what"], text)
    return ChangeAssertion(text, statistic, function, match["comparison"].startswith("<"), limit, is_relative)


def _subject(what: str, text: str) -> tuple[str | None, str | None]:
    if what == "whole":
        return None, None
    if what.startswith("any."):
        name = what.removeprefix("any.")
        return _ALIASES.get(name, name), None
    match = _SUBJECT.fullmatch(what)
    if match is None:
        raise UsageError(f"{what!r} in {text!r} names no change", field="assert", hint=f"write {GRAMMAR}")
    function = next(match[name] for name in ("single", "double", "bare") if match[name] is not None)
    return _ALIASES.get(match["statistic"], match["statistic"]), function


def judge_changes(assertions: Sequence[ChangeAssertion], difference: Difference) -> list[AssertionResult]:
    """Evaluates assertions.

    Raises:
        UsageError: There is no such function or statistic, or a name is that of several functions.
    """
    return [_judge(one, difference) for one in assertions]


def function_named(difference: Difference, pattern: str) -> FunctionChange:
    """The one function of a name, or that a pattern with `*` matches.

    Raises:
        UsageError: None matches, or several.
    """
    rows = difference.functions
    conditions: tuple[Callable[[FunctionChange], bool], ...] = (
        lambda one: one.named.name == pattern,
        lambda one: fnmatchcase(one.named.name, pattern),
    )
    for condition in conditions:
        found = [one for one in rows if condition(one)]
        if len(found) == 1:
            return found[0]
        if found:
            where = sorted({f"{one.named.path or one.named.module or '?'}:{one.named.line or '?'}" for one in found})
            raise UsageError(
                f"{len(found)} functions are {pattern!r}",
                field="assert",
                hint=f"an assertion is about one function; these are at {', '.join(where[:5])}",
            )
    hint = nearest_hint(pattern, dict.fromkeys(one.named.name for one in rows))
    raise UsageError(f"no function {pattern!r} in either side", field="assert", hint=hint)


def _judge(assertion: ChangeAssertion, difference: Difference) -> AssertionResult:
    if assertion.statistic is None:
        return _result(assertion, difference.whole, None, 1)
    if assertion.statistic not in difference.statistics:
        known = ", ".join(difference.statistics)
        raise UsageError(
            f"{difference.kind} have no {assertion.statistic!r}", field="assert", hint=f"there are {known}"
        )
    if assertion.function is not None:
        one = function_named(difference, assertion.function)
        return _result(assertion, one.figures[assertion.statistic], one.named.name, 1)
    rows = [one for one in difference.functions if one.figures[assertion.statistic].estimate is not None]
    results = [_result(assertion, one.figures[assertion.statistic], one.named.name, len(rows)) for one in rows]
    for outcome in ("violated", "undecided", "holds"):
        of_outcome = [one for one in results if one.outcome == outcome]
        if of_outcome:
            return max(of_outcome, key=lambda one: (one.value or 0) if assertion.is_upper else -(one.value or 0))
    return AssertionResult(assertion, "holds", 0.0, 0.0, 0.0)


def _result(assertion: ChangeAssertion, change: Change, name: str | None, num_tested: int) -> AssertionResult:
    """The outcome for one number; the interval is wider where several are tested at once."""
    if change.is_comparable and not change.base and not change.new:
        outcome: Outcome = "holds" if (assertion.limit > 0) == assertion.is_upper else "violated"
        return AssertionResult(assertion, outcome, 0.0, 0.0, 0.0, name)
    if change.estimate is None or change.base is None:
        return AssertionResult(assertion, "undecided", None, None, None, name)
    low, high = change.estimate.bounds(1 - (1 - _CONFIDENCE) / num_tested)
    value = change.ratio
    if not assertion.is_relative:
        # Where the first side has none, the interval is that of the second one's own number.
        scale = change.base or (change.new or 0) / (1 + low)
        low, high, value = low * scale, high * scale, change.difference
    is_beyond = low > assertion.limit if assertion.is_upper else high < assertion.limit
    is_within = high < assertion.limit if assertion.is_upper else low > assertion.limit
    if is_beyond or is_within:
        return AssertionResult(assertion, "violated" if is_beyond else "holds", value, low, high, name)
    gap = abs(assertion.limit / (1 if assertion.is_relative else change.base or 1) - (change.ratio or 0))
    needed = runs_needed(gap, change.estimate.run_variance, num_tested) if gap > 0.001 else None
    return AssertionResult(assertion, "undecided", value, low, high, name, needed)
