"""`perfuse repair`"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import click

import perfuse
from perfuse.cli import exit_codes
from perfuse.cli.console import Console
from perfuse.cli.opening import note_data_loss
from perfuse.cli.options import JSON, STRICT, limit, output
from perfuse.cli.verbs import verb
from perfuse.repairing import RepairResult
from perfuse.reports.grid import Cell, Column, grid
from perfuse.reports.inputs import counts_text, severity_counts
from perfuse.reports.text import Role
from perfuse.reports.units import count_text, counted, hex_text
from perfuse.value_class import as_dict

TEXT_LIMIT = 20


@verb("repair", examples=["perfuse repair damaged.dump -o repaired.dump"])
@click.argument("file")
@output("The repaired file", required=True)
@limit(None, f"changes [{TEXT_LIMIT} as text]")
@JSON
@STRICT
def command(console: Console, file: str, output: str, limit: int | None, as_json: bool, strict: bool) -> int:
    """Lists what was changed and what was lost; exits with 1 where data is lost or errors remain.

    The input is not modified. Without a change the file is copied; a repair of a repaired file changes nothing.
    """
    result = perfuse.repair(file, output, strict=strict)
    if output == "-":
        console.note(_summary_text(result, output))
    elif as_json:
        shown = as_dict(replace(result, changes=result.changes[: limit or None]))
        console.json({"input": file, "output": output, "num_changes": len(result.changes), **shown})
    else:
        _print_changes(console, result, output, TEXT_LIMIT if limit is None else limit)
    lost = exit_codes.FINDINGS if result.lost else exit_codes.CLEAN
    return max(lost, note_data_loss(console, result.remaining))


def _summary_text(result: RepairResult, output: str) -> str:
    read, written = counted(result.records_in, "record"), count_text(result.records_out)
    changes = counted(len(result.changes), "change")
    lost = counts_text(severity_counts(result.lost)) if result.lost else "nothing lost"
    return f"{read} read, {written} written to {output}; {changes}; {lost}"


def _print_changes(console: Console, result: RepairResult, output: str, limit: int) -> None:
    console.line(_summary_text(result, output))
    for one in result.differences:
        counts = f"{count_text(one.records_in)} read, {count_text(one.records_out)} written"
        reason = f": {one.reason}" if one.reason else ""
        console.line(f"  {one.kind}  {console.style.paint(counts + reason, Role.FAINT)}")
    # Counts by code first: there may be thousands of changes.
    for code, count in Counter(change.code for change in result.changes).most_common():
        console.line(f"  {code}  {console.style.paint(counted(count, 'change'), Role.FAINT)}")
    rows: list[list[Cell]] = [
        [change.code, "" if change.offset is None else hex_text(change.offset), change.message]
        for change in result.changes[: limit or None]
    ]
    rows += [
        [(lost.code, Role.ERROR), "" if lost.offset is None else hex_text(lost.offset), lost.message]
        for lost in result.lost
    ]
    if rows:
        console.line()
        columns = [Column("code"), Column("offset", right=True, role=Role.NAME), Column("what", shrinks=30)]
        console.lines(grid(columns, rows, console.style))
    if limit and len(result.changes) > limit:
        rest = count_text(len(result.changes) - limit)
        console.line(console.style.paint(f"  … {rest} more changes (--limit 0 shows all)", Role.FAINT))
