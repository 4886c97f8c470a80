"""Findings of `check` that are accepted: known errors of tools that cannot be avoided."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfuse.diagnostics import Diagnostic, explain
from perfuse.errors import UsageError


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Findings that are accepted: all of a rule, or those of a rule in one section or field.

    Attributes:
        code: The rule's code.
        place: Section of the program that the finding concerns, such as `.plt.got`, or the field that violates the
            rule, such as `code_size`; empty for all.
    """

    code: str
    place: str = ""

    def __str__(self) -> str:
        return f"{self.code}@{self.place}" if self.place else self.code

    def accepts(self, found: Diagnostic) -> bool:
        """Whether it accepts a diagnostic."""
        return found.code == self.code and self.place in ("", found.code_section, found.field)


def parse(text: str) -> Acceptance:
    """`CODE` or `CODE@PLACE`.

    Raises:
        UsageError: There is no such rule, it is a note, or nothing follows the @.

    >>> parse("sf075@.plt.got")
    Acceptance(code='SF075', place='.plt.got')
    """
    code, at, place = text.strip().partition("@")
    rule = explain(code)
    if rule.severity == "info":
        raise UsageError(f"{rule.code} is a note", hint="notes do not count as findings: leave it out")
    if at and not place:
        raise UsageError(
            f"nothing follows the @ of {text!r}", hint="write a section or a field, such as SF075@.plt.got"
        )
    return Acceptance(rule.code, place)


def read(path: str) -> list[Acceptance]:
    """The lines of a file, each `CODE` or `CODE@PLACE`; `#` begins a comment.

    Raises:
        UsageError: A line is neither.
        OSError: The file cannot be read.
    """
    accepted = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        try:
            accepted.append(parse(text))
        except UsageError as error:
            raise UsageError(f"{path}, line {number}: {error}", hint=error.hint) from None
    return accepted


@dataclass(frozen=True, slots=True)
class SeparatedDiagnostics:
    """The diagnostics of a file.

    Attributes:
        others: Those that are not accepted.
        accepted: Findings that are accepted.
        counts: Number of occurrences that each acceptance accepts, where it accepts any.
    """

    others: list[Diagnostic]
    accepted: list[Diagnostic]
    counts: dict[Acceptance, int]


def separate(diagnostics: Iterable[Diagnostic], acceptances: Sequence[Acceptance]) -> SeparatedDiagnostics:
    """Separates accepted findings from all others.

    Args:
        diagnostics: All rows: a row that counts others has the place of the first only.
        acceptances: What is accepted.
    """
    found = SeparatedDiagnostics([], [], {})
    for one in diagnostics:
        by = next((it for it in acceptances if one.is_finding and it.accepts(one)), None)
        if by is None:
            found.others.append(one)
        else:
            found.accepted.append(one)
            found.counts[by] = found.counts.get(by, 0) + one.count
    return found


def limited(diagnostics: Iterable[Diagnostic], limit: int) -> list[Diagnostic]:
    """At most so many rows per rule, of which the last counts the others; 0 for all."""
    rows: list[Diagnostic] = []
    of_rule: dict[str, list[int]] = {}
    for one in diagnostics:
        indexes = of_rule.setdefault(one.code, [])
        if limit and len(indexes) == limit:
            last = rows[indexes[-1]]
            rows[indexes[-1]] = replace(last, count=last.count + one.count)
        else:
            indexes.append(len(rows))
            rows.append(one)
    return rows
