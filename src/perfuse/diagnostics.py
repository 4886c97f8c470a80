"""Violations of a specification that were found in files, and the numbered rules they violate."""

import importlib
from functools import cache

from perfuse import _core
from perfuse.errors import UsageError, nearest_hint
from perfuse.value_class import value_class

SEVERITIES = ("info", "warning", "data_loss", "error")
"""Least severe first. Diagnostics from `warning` on are findings: commands then exit with 1."""


@value_class
class Explanation:
    """The texts of a rule, which its format's package declares in `rules.RULES`.

    Attributes:
        title: The violation in one line.
        meaning: What it means, and which programs write it.
        action: What to do.
    """

    title: str
    meaning: str
    action: str


@value_class
class Rule:
    """A numbered rule, as `perfuse explain CODE` prints it.

    Attributes:
        code: Two letters and a number, stable once released.
        severity: One of `SEVERITIES`.
        title: The violation in one line.
        section: Section of the specification.
        meaning: What it means, and which programs write it.
        action: What to do.
        marks_end: Whether it reports that the file ends too early, as a file does that is still being written.
        format: Format it belongs to; `fusing` and `instrumentation_map` for rules of no format.
    """

    code: str
    severity: str
    title: str
    section: str
    meaning: str
    action: str
    marks_end: bool
    format: str


@value_class
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
        code_section: Section of the program whose code it concerns, such as `.plt.got`; empty where it concerns none.
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
    code_section: str
    count: int
    path: str

    @property
    def is_finding(self) -> bool:
        """Whether its severity is at least `warning`."""
        return self.severity != "info"

    @property
    def is_loss(self) -> bool:
        """Whether its severity is at least `data_loss`: a part of the recording is missing or cannot be read."""
        return self.severity in ("data_loss", "error")


_MODULES = {"fusing": "perfuse.fusing.rules", "instrumentation_map": "perfuse.formats.xray.map_rules"}
"""Modules with the texts of rules that belong to no format; those of a format are in its package."""


@cache
def _explanations(format: str) -> dict[str, Explanation]:
    module = importlib.import_module(_MODULES.get(format, f"perfuse.formats.{format}.rules"))
    texts: dict[str, Explanation] = module.RULES
    return texts


@cache
def _declarations() -> dict[str, "_core._Rule"]:
    """Every rule without its texts, by code."""
    return {row["code"]: row for row in _core.rules()}


@cache
def _rule(code: str) -> Rule:
    row = _declarations()[code]
    texts = _explanations(row["format"])[code]
    stated = (row["section"], texts.meaning, texts.action, row["marks_end"], row["format"])
    return Rule(code, row["severity"], texts.title, *stated)


@cache
def rules() -> dict[str, Rule]:
    """Every rule of every format, by code.

    >>> rules()["JD010"].severity
    'data_loss'
    """
    return {code: _rule(code) for code in _declarations()}


def explain(code: str) -> Rule:
    """The rule of a code, in upper or lower case.

    Raises:
        UsageError: There is none; the hint names similar codes.
    """
    if code.upper() not in _declarations():
        hint = nearest_hint(code, _declarations(), "`perfuse explain` alone lists all codes")
        raise UsageError(f"no rule has the code {code}", hint=hint)
    return _rule(code.upper())


def marks_end(code: str) -> bool:
    """Whether a rule reports that the file ends too early."""
    return _declarations()[code]["marks_end"]


def diagnostic(code: str, path: str, message: str, offset: int | None = None) -> Diagnostic:
    """A diagnostic that Python code found."""
    rule = _declarations()[code]
    return Diagnostic(code, rule["severity"], message, offset, None, "", rule["section"], "", 1, path)


def from_core(path: str, rows: list[tuple[str, str, int, int | None, str, str, int]]) -> list[Diagnostic]:
    """Rows of the core's checker as diagnostics."""
    by_code = _declarations()
    return [
        Diagnostic(
            code,
            by_code[code]["severity"],
            message,
            offset,
            index,
            field,
            by_code[code]["section"],
            code_section,
            count,
            path,
        )
        for code, message, offset, index, field, code_section, count in rows
    ]
