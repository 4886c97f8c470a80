"""Departures from a specification, and the numbered rules behind them."""

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

from perfuse import _core
from perfuse.errors import UsageError

SEVERITIES = ("info", "warning", "data_loss", "error")
"""Mildest first. From `warning` on a departure is a finding, and commands exit with 1."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A numbered rule: what `perfuse explain CODE` tells.

    Attributes:
        code: Two letters and a number, stable once released.
        severity: One of `SEVERITIES`.
        title: One line: what is the case.
        section: Section of the specification.
        meaning: What it means and who writes it.
        action: What to do about it.
        format: Format it belongs to.
    """

    code: str
    severity: str
    title: str
    section: str
    meaning: str
    action: str
    format: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A rule that applied at a place in a file.

    Attributes:
        code: The rule's code.
        severity: The rule's severity.
        message: What was found, with its numbers.
        offset: Absolute offset of the record or field; None where it is about a whole recording.
        record_index: Zero-based index of the record, where it is about one.
        field: Field that departs, empty where none does.
        section: Section of the specification.
        count: How many times; more than 1 on the last row of a code that was cut short, and on habits told once.
        path: File it is in.
    """

    code: str
    severity: str
    message: str
    offset: int | None
    record_index: int | None
    field: str
    section: str
    count: int
    path: str

    @property
    def is_finding(self) -> bool:
        """Whether it is more than worth knowing."""
        return self.severity != "info"


@cache
def rules() -> dict[str, Rule]:
    """Every rule of every format, by code.

    >>> rules()["JD010"].severity
    'data_loss'
    """
    return {row["code"]: Rule(**row) for row in _core.rules()}


def explain(code: str) -> Rule:
    """The rule of that code, in any case.

    Raises:
        UsageError: There is none; the hint names near ones.
    """
    found = rules().get(code.upper())
    if found is None:
        near = get_close_matches(code.upper(), rules(), n=3)
        hint = f"did you mean {', '.join(near)}?" if near else "`perfuse explain` alone lists all codes"
        raise UsageError(f"no rule has the code {code}", hint=hint)
    return found


def diagnostic(code: str, path: str, message: str, offset: int | None = None) -> Diagnostic:
    """A departure that Python found: the rule's facts, and a message."""
    rule = rules()[code]
    return Diagnostic(code, rule.severity, message, offset, None, "", rule.section, 1, path)


def from_core(path: str, rows: list[tuple[str, str, int, int | None, str, int]]) -> list[Diagnostic]:
    """Rows of the core's checker as diagnostics."""
    known = rules()
    return [
        Diagnostic(code, known[code].severity, message, offset, index, field, known[code].section, count, path)
        for code, message, offset, index, field, count in rows
    ]
