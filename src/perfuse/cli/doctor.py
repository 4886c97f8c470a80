"""`perfuse doctor`"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from perfuse.cli.console import Console
from perfuse.cli.machine import PRODUCERS, VIEWERS, Found, kernel_settings, symbol_places, tools
from perfuse.cli.options import JSON
from perfuse.cli.verb import verb
from perfuse.reports.grid import Cell, Column, grid
from perfuse.reports.style import Role, Style

MARKS = {"good": ("✓", Role.GOOD), "limited": ("!", Role.WARNING), "missing": ("-", Role.FAINT)}


@verb("doctor", examples=["perfuse doctor"])
@JSON
def command(console: Console, as_json: bool) -> None:
    """Programs with their versions and uses, kernel settings that matter, and how to get what is missing."""
    chapters = {
        "producers": tools(PRODUCERS),
        "viewers": tools(VIEWERS),
        "kernel": kernel_settings(),
        "symbols": symbol_places(),
    }
    if as_json:
        console.json({chapter: [asdict(one) for one in found] for chapter, found in chapters.items()})
        return
    for index, (chapter, found) in enumerate(chapters.items()):
        if index:
            console.line()
        console.line(console.style.paint(chapter.capitalize(), Role.TITLE))
        console.lines(_found_lines(found, console.style))


def _found_lines(found: Sequence[Found], style: Style) -> Iterator[str]:
    rows: list[list[Cell]] = []
    for one in found:
        faint = Role.FAINT if one.state == "missing" else Role.PLAIN
        advice: Cell = ""
        if one.advice:
            advice = (one.advice, Role.NAME) if one.state == "good" else (one.advice, Role.FAINT)
            if one.state == "limited":
                advice = (one.advice, Role.WARNING)
        rows.append([MARKS[one.state], (one.name, faint), (one.detail, faint), advice])
    return grid([Column(""), Column(""), Column("", shrinks=16), Column("")], rows, style)
