"""Reports within a number of bytes: lists are as long as fit, and what is left out is stated."""

from __future__ import annotations

from collections.abc import Callable

from perfuse.cli.console import Console
from perfuse.errors import UsageError
from perfuse.reports.json_text import json_text
from perfuse.reports.registry import Report

MOST_ROWS = 4096
"""Lists are not made longer than this."""
LEAST_BYTES = 200


def print_within(console: Console, budget: int, build: Callable[[int], Report], as_json: bool) -> Report:
    """Prints the report with the longest lists that fit, and returns it.

    Args:
        console: Where it is printed.
        budget: Number of bytes, in UTF-8.
        build: Builds the report with so many rows per list.
        as_json: Whether it is printed as JSON.

    Raises:
        UsageError: The budget is too small for a report, or for the smallest JSON document.
    """
    if budget < LEAST_BYTES:
        raise UsageError(f"a budget of {budget} bytes is too small", hint=f"a report needs at least {LEAST_BYTES}")
    texts: dict[int, tuple[Report, str]] = {}

    def text(rows: int) -> str:
        if rows not in texts:
            report = build(rows)
            texts[rows] = report, _text(console, report, as_json)
        return texts[rows][1]

    def is_whole(rows: int) -> bool:
        return text(2 * rows) == text(rows)

    def fits(rows: int) -> bool:
        size = len(text(rows).encode())
        return size <= budget and (as_json or size + len(_note(rows).encode()) <= budget or is_whole(rows))

    # Doubled until it does not fit, or nothing is added any more; then halved between the two.
    most = 1
    while most < MOST_ROWS and fits(most) and not is_whole(most):
        most *= 2
    fitting, failing = (most // 2, most) if not fits(most) else (most, most)
    while failing - fitting > 1:
        middle = (fitting + failing) // 2
        fitting, failing = (middle, failing) if fits(middle) else (fitting, middle)
    rows = max(fitting, 1)
    shown = text(rows)
    if fits(rows):
        console.write(shown + ("" if as_json or is_whole(rows) else _note(rows)))
    elif as_json:
        hint = f"the smallest has {len(shown.encode()):,} bytes"
        raise UsageError(f"no JSON document of at most {budget:,} bytes", hint=hint)
    else:
        console.write(_cut(shown, budget))
    return texts[rows][0]


def _text(console: Console, report: Report, as_json: bool) -> str:
    if as_json:
        return json_text(report.as_json()) + "\n"
    return "".join(f"{line}\n" for line in report.lines(console.style))


def _note(rows: int) -> str:
    return f"\n--budget: at most {rows} row{'s' if rows > 1 else ''} per list; a larger budget shows more\n"


def _cut(text: str, budget: int) -> str:
    """The first lines of a text, and how many were left out."""
    lines = text.splitlines(keepends=True)
    for kept in range(len(lines), -1, -1):
        note = f"--budget: the last {len(lines) - kept} of {len(lines)} lines are left out\n"
        if len("".join(lines[:kept]).encode()) + len(note.encode()) <= budget:
            return "".join(lines[:kept]) + note
    raise AssertionError("the budget has room for the note")
