"""`perfuse explain`"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import click

import perfuse
from perfuse.cli.console import Console
from perfuse.cli.options import JSON
from perfuse.cli.verbs import verb
from perfuse.diagnostics import Rule
from perfuse.reports.grid import Cell, Column, grid
from perfuse.reports.text import SEVERITY_ROLES, Role, Style
from perfuse.value_class import as_dict

TEXT_COLUMNS = 90


@verb("explain", examples=["perfuse explain JD010", "perfuse explain --json"])
@click.argument("codes", nargs=-1, metavar="[CODE...]")
@JSON
def command(console: Console, codes: tuple[str, ...], as_json: bool) -> None:
    """Without a code, lists all codes."""
    rules = [perfuse.explain(code) for code in codes] or list(perfuse.rules().values())
    if as_json:
        console.json({"rules": [as_dict(rule) for rule in rules]})
    elif codes:
        for index, rule in enumerate(rules):
            if index:
                console.line()
            console.lines(_rule_lines(rule, console.style))
    else:
        rows: list[list[Cell]] = [
            [rule.code, (rule.severity, SEVERITY_ROLES[rule.severity]), rule.format, rule.title] for rule in rules
        ]
        columns = [
            Column("code"),
            Column("severity"),
            Column("format", role=Role.FAINT),
            Column("what", shrinks=30),
        ]
        console.lines(grid(columns, rows, console.style, indent=""))


def _rule_lines(rule: Rule, style: Style) -> Iterator[str]:
    severity = style.paint(rule.severity, SEVERITY_ROLES[rule.severity])
    yield f"{style.paint(rule.code, Role.TITLE)}  {severity}  {style.paint(rule.title, Role.TITLE)}"
    yield style.paint(f"{rule.format}, section {rule.section}" if rule.section else rule.format, Role.FAINT)
    for label, text in (("", rule.meaning), ("What to do: ", rule.action)):
        yield ""
        width = min(style.width or TEXT_COLUMNS, TEXT_COLUMNS) - 2
        lines = textwrap.wrap(label + text, width) or [""]
        lines[0] = lines[0].replace(label, style.paint(label, Role.NAME), 1) if label else lines[0]
        yield from ("  " + line for line in lines)
