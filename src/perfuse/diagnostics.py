"""Violations of a specification that were found in files, and the numbered rules they violate."""

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

from perfuse import _core
from perfuse.errors import UsageError

SEVERITIES = ("info", "warning", "data_loss", "error")
"""Least severe first. Diagnostics from `warning` on are findings: commands then exit with 1."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A numbered rule, as `perfuse explain CODE` prints it.

    Attributes:
        code: Two letters and a number, stable once released.
        severity: One of `SEVERITIES`.
        title: The violation in one line.
        section: Section of the specification.
        meaning: What it means, and which programs write it.
        action: What to do.
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
    """A violation of a rule, at an offset of a file.

    Attributes:
        code: The rule's code.
        severity: The rule's severity.
        message: What was found, with its numbers.
        offset: Absolute offset of the record or field; None for a violation of the whole recording.
        record_index: Zero-based index of the record; None where the violation is not of one record.
        field: Field that violates the rule; empty where it is not of one field.
        section: Section of the specification.
        count: Number of occurrences; more than 1 on the last row of a code whose rows were limited, and for rules that
            are reported once per file.
        path: The file.
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
        """Whether its severity is at least `warning`."""
        return self.severity != "info"


@cache
def rules() -> dict[str, Rule]:
    """Every rule of every format, by code.

    >>> rules()["JD010"].severity
    'data_loss'
    """
    return {row["code"]: Rule(**row) for row in _core.rules()}


def explain(code: str) -> Rule:
    """The rule of a code, in upper or lower case.

    Raises:
        UsageError: There is none; the hint names similar codes.
    """
    found = rules().get(code.upper())
    if found is None:
        near = get_close_matches(code.upper(), rules(), n=3)
        hint = f"did you mean {', '.join(near)}?" if near else "`perfuse explain` alone lists all codes"
        raise UsageError(f"no rule has the code {code}", hint=hint)
    return found


def diagnostic(code: str, path: str, message: str, offset: int | None = None) -> Diagnostic:
    """A diagnostic that Python code found."""
    rule = rules()[code]
    return Diagnostic(code, rule.severity, message, offset, None, "", rule.section, 1, path)


def from_core(path: str, rows: list[tuple[str, str, int, int | None, str, int]]) -> list[Diagnostic]:
    """Rows of the core's checker as diagnostics."""
    by_code = rules()
    return [
        Diagnostic(code, by_code[code].severity, message, offset, index, field, by_code[code].section, count, path)
        for code, message, offset, index, field, count in rows
    ]
