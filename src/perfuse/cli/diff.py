"""`perfuse diff`"""

from __future__ import annotations

from dataclasses import replace

import click

from perfuse.analysis.diff import Difference
from perfuse.analysis.function_graph import STATISTICS, function_graph
from perfuse.cli.console import Console
from perfuse.cli.options import ObjectFile, ProfileOptions, limit, note_data_loss, open_profile, profile_options
from perfuse.cli.verbs import verb
from perfuse.exporters.dot_diff import dot_diff_lines
from perfuse.reports.diff import csv_lines, diff_lines, diff_report

FORMATS = ("text", "csv", "json", "dot")
ORDERS = (*STATISTICS, "name")
TEXT_LIMIT = 10


@verb(
    "diff",
    examples=[
        "perfuse diff xray-log.server.uocuES xray-log.server.Qd81xw",
        "perfuse diff xray-log.server.uocuES xray-log.server.Qd81xw --map-a server --map-b server --sort p99",
        "perfuse diff xray-log.server.uocuES xray-log.server.Qd81xw --format dot",
    ],
)
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--event", metavar="NAME", help="Event to compare, where several were sampled.")
@click.option("--sort", type=click.Choice(ORDERS), default="self", metavar="ORDER", help=f"{', '.join(ORDERS)}. [self]")
@limit(None, f"functions [{TEXT_LIMIT} as text]")
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="text", metavar="FORM", help=f"{', '.join(FORMATS)}. [text]"
)
@click.option("--json", "as_json", is_flag=True, help="Same as --format json, in a documented and stable form.")
@click.option("--map-a", type=ObjectFile(), multiple=True, metavar="[N=]FILE", help="--map for A only; repeats.")
@click.option("--map-b", type=ObjectFile(), multiple=True, metavar="[N=]FILE", help="--map for B only; repeats.")
@profile_options
def command(
    console: Console,
    a: str,
    b: str,
    event: str | None,
    sort: str,
    limit: int | None,
    form: str,
    as_json: bool,
    map_a: _Maps,
    map_b: _Maps,
    how: ProfileOptions,
) -> int:
    """A and B are two call traces, or two recordings with samples; a directory stands for the recordings in it.

    Lists functions that changed, are new or are gone, matched by name, module, source file and line. Functions that
    nothing distinguishes are listed for each side. `--format dot` writes the call graph with the numbers of both.
    """
    form = "json" if as_json else form
    if limit is None:
        limit = TEXT_LIMIT if form == "text" else 0
    before = open_profile(console, [a], replace(how, maps=_own_maps(how.maps, map_a)))
    after = open_profile(console, [b], replace(how, maps=_own_maps(how.maps, map_b)))
    edges = form == "dot"
    first = function_graph(before, event, edges=edges)
    same_event = event if after.has_traces else event or first.event
    difference = Difference(first, function_graph(after, same_event, edges=edges))
    if form == "dot":
        console.lines(dot_diff_lines(difference, order="self" if sort == "name" else sort))
    else:
        report = diff_report((before, after), difference, order=sort, limit=limit or None)
        if form == "json":
            console.json(report.as_json())
        else:
            console.lines(csv_lines(report) if form == "csv" else diff_lines(report, console.style))
    return note_data_loss(console, [*before.diagnostics, *after.diagnostics])


_Maps = tuple[tuple[int | None, str], ...]


def _own_maps(both: _Maps, own: _Maps) -> _Maps:
    """The files for one recording: its own, and those for both that have other numbers."""
    numbers = {number for number, _ in own}
    return (*(one for one in both if one[0] not in numbers), *own)
