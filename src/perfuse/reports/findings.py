"""Diagnostics, for a terminal: grouped by rule, the gravest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from perfuse.reports.grid import Cell, Column, grid
from perfuse.reports.section import section
from perfuse.reports.style import SEVERITY_ROLES, Role, Style
from perfuse.reports.units import count_text, counted, hex_text

if TYPE_CHECKING:
    from perfuse.diagnostics import Diagnostic
    from perfuse.reports.inputs import DiagnosticCount

GRAVITY = ("error", "data_loss", "warning", "info")
_WORDS = {"error": ("error", "errors"), "data_loss": ("loss of data", "losses of data")}


def severity_counts(diagnostics: Sequence[Diagnostic]) -> dict[str, int]:
    """How many of each severity, the gravest first; those without any are left out."""
    counts = dict.fromkeys(GRAVITY, 0)
    for found in diagnostics:
        counts[found.severity] += found.count
    return {severity: count for severity, count in counts.items() if count}


def counts_text(counts: dict[str, int]) -> str:
    """`1 loss of data, 2 warnings, 3 notes`; `clean` for none."""
    words = {**_WORDS, "warning": ("warning", "warnings"), "info": ("note", "notes")}
    return ", ".join(counted(count, *words[severity]) for severity, count in counts.items()) or "clean"


def check_lines(path: str, diagnostics: Sequence[Diagnostic], style: Style) -> Iterator[str]:
    """Every departure in a file: a heading a rule, a line a place."""
    from perfuse import explain

    counts = severity_counts(diagnostics)
    yield (style.paint(path, Role.TITLE) + "  " + style.paint(counts_text(counts), Role.FAINT if counts else Role.GOOD))
    ordered = sorted(diagnostics, key=lambda found: (GRAVITY.index(found.severity), found.code))
    for code, group in groupby(ordered, key=lambda found: found.code):
        places = list(group)
        total = sum(found.count for found in places)
        rule = explain(code)
        mark = style.paint(rule.severity, SEVERITY_ROLES[rule.severity])
        times = style.paint(f"  {counted(total, 'time')}", Role.FAINT) if total > 1 else ""
        yield ""
        yield f"  {code}  {mark}  {rule.title}{times}"
        rows: list[list[Cell]] = [[_place(found), found.message] for found in places]
        yield from grid([Column("", role=Role.NAME), Column("", shrinks=30)], rows, style, indent="    ")
        if total > len(places):
            yield style.paint(f"    … {count_text(total - len(places))} more (--limit 0 shows all)", Role.FAINT)


def summary_lines(counts: Sequence[DiagnosticCount], style: Style) -> Iterator[str]:
    """What was wrong with the files of a report, a line a rule; nothing where all was clean."""
    from perfuse import explain

    if not counts:
        return
    yield from section("Findings in the files", style, "perfuse check FILE: where; perfuse explain CODE: what it means")
    columns = [Column(""), Column(""), Column("", right=True, role=Role.FAINT), Column("", shrinks=30)]
    rows: list[list[Cell]] = [
        [
            one.code,
            (one.severity, SEVERITY_ROLES[one.severity]),
            f"{counted(one.count, 'time')}",
            explain(one.code).title,
        ]
        for one in counts
    ]
    yield from grid(columns, rows, style)


def finding_lines(findings: Sequence[Diagnostic], style: Style) -> Iterator[str]:
    """What was found in one file, a line a place."""
    columns = [Column(""), Column(""), Column("", right=True, role=Role.FAINT), Column("", shrinks=30)]
    rows: list[list[Cell]] = []
    for found in findings:
        place = "" if found.offset is None else hex_text(found.offset)
        more = f" (and {counted(found.count - 1, 'other')} like it)" if found.count > 1 else ""
        rows.append([found.code, (found.severity, SEVERITY_ROLES[found.severity]), place, found.message + more])
    return grid(columns, rows, style)


def _place(found: Diagnostic) -> str:
    parts = [hex_text(found.offset)] if found.offset is not None else []
    if found.record_index is not None:
        parts.append(f"#{found.record_index}")
    if found.field:
        parts.append(found.field)
    return " ".join(parts) or "-"
