"""`perfuse diff`"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from perfuse.analysis.function_graph import GROUPINGS, SAMPLE_STATISTICS, STATISTICS
from perfuse.analysis.normalization import METHODS
from perfuse.cli import exit_codes
from perfuse.cli.console import Console
from perfuse.cli.diff_sides import Run, SidesVerb, sides
from perfuse.cli.opening import NO_FILTER, ProfileOptions, note_data_loss, open_profile
from perfuse.cli.options import BUDGET, ObjectFile, limit, output, profile_options, stack_filters
from perfuse.cli.verbs import verb
from perfuse.declared_formats import name_of_content
from perfuse.errors import UsageError
from perfuse.table import RETAINED, WEIGHTS

if TYPE_CHECKING:
    from perfuse import Diagnostic
    from perfuse.analysis.compared_side import ComparedSide
    from perfuse.analysis.diff import DiffOptions
    from perfuse.analysis.diff_assertions import ChangeAssertion
    from perfuse.reports.compared_runs import ComparedRun
    from perfuse.reports.diff import DiffReport

FORMATS = ("text", "csv", "json", "dot")
ORDERS = (*STATISTICS, "p50", "name")
DIMENSIONS = (*GROUPINGS, "stack")
TEXT_LIMIT = 10


@dataclass(frozen=True, slots=True)
class _Side:
    """A side as it was read: its runs, what a report states of each, and their diagnostics."""

    compared: ComparedSide
    runs: list[ComparedRun]
    diagnostics: list[Diagnostic]


@dataclass(frozen=True, slots=True)
class _Output:
    """How a report is written: as one of `FORMATS`, with at most `limit` rows or `budget` bytes, and as a page."""

    form: str
    sort: str
    limit: int
    budget: int | None
    path: str | None


@verb(
    "diff",
    cls=SidesVerb,
    examples=[
        "perfuse diff xray-log.server.uocuES xray-log.server.Qd81xw",
        "perfuse diff xray-log.server.uocuES xray-log.server.Qd81xw --map-a server --map-b server --sort p99",
        "perfuse diff perf.data+jit-2345.dump perf.data",
        "perfuse diff xray-log.server.uocuES xray-log.server.Qd81xw -- xray-log.server.Qd81xw xray-log.server.uocuES",
        "perfuse diff perf.data+jit-2345.dump perf.data+jit-2345.dump --assert 'self(crc) < +5%'",
        "perfuse diff perf.data perf.data -o diff.html",
        "perfuse diff perf.data+jit-2345.dump perf.data+jit-2345.dump --jit-only --root entry",
        "perfuse diff xray-log.server.uocuES xray-log.server.Qd81xw --format dot",
    ],
)
@click.argument("runs", nargs=-1, required=True, metavar="A... [--] B...")
@click.option(
    "--by",
    type=click.Choice(DIMENSIONS),
    default="function",
    metavar="WHAT",
    help=f"{', '.join(DIMENSIONS)}. [function]",
)
@click.option("--event", metavar="NAME", help="Event to compare, where several were sampled.")
@click.option(
    "--weight",
    type=click.Choice((*WEIGHTS, RETAINED)),
    metavar="WHAT",
    help="Bytes or count of allocations, time or calls of a call trace, bytes retained in the last heap snapshot.",
)
@click.option(
    "--sort",
    type=click.Choice(ORDERS),
    default="self",
    metavar="ORDER",
    help=f"Statistic that is compared: {', '.join(STATISTICS)}; or name. [self]",
)
@click.option(
    "--normalize",
    type=click.Choice(METHODS),
    default="run",
    metavar="HOW",
    help="run: numbers of a run as they are; share: of the run's whole; typical: divided by the typical change of the"
    " run's functions, which removes the speed of the machine. [run]",
)
@click.option(
    "--per",
    metavar="WORK",
    help="Divide by work: seconds, calls, 'function F' (its calls), or the name of a counter or event.",
)
@click.option(
    "--noise",
    type=float,
    default=5.0,
    metavar="PERCENT",
    help="Noise between runs that is assumed where each side has one run. [5]",
)
@click.option(
    "--assert",
    "assertions",
    multiple=True,
    metavar="CHANGE",
    help="Exit 1 where the interval of a change lies beyond a limit: 'self(shade) < +5%', 'whole < 3%',"
    " 'any.self < 10%'; repeats.",
)
@limit(None, f"rows [{TEXT_LIMIT} as text]")
@BUDGET
@output("Write a flame graph with both sides, diff.html")
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="text", metavar="FORM", help=f"{', '.join(FORMATS)}. [text]"
)
@click.option("--json", "as_json", is_flag=True, help="Same as --format json, in a documented and stable form.")
@click.option("--map-a", type=ObjectFile(), multiple=True, metavar="[N=]FILE", help="--map for A only; repeats.")
@click.option("--map-b", type=ObjectFile(), multiple=True, metavar="[N=]FILE", help="--map for B only; repeats.")
@profile_options
@stack_filters
def command(
    console: Console,
    runs: tuple[str, ...],
    by: str,
    event: str | None,
    weight: str | None,
    sort: str,
    normalize: str,
    per: str | None,
    noise: float,
    assertions: tuple[str, ...],
    limit: int | None,
    budget: int | None,
    output: str | None,
    form: str,
    as_json: bool,
    map_a: _Maps,
    map_b: _Maps,
    how: ProfileOptions,
) -> int:
    """A is before, B after. Each is a recording of samples, calls, allocations or a heap, or several: with 4 or more
    runs a side, changes are distinguished from noise. One run a side shows intervals and proves nothing.

    A run is a file, files joined with + (perf.data+jit-1.dump), or a directory. A directory with directories of
    recordings, or with several recordings of one format, is several runs. Dumps of the processes of a perf.data are
    found where they were written, or beside it.

    Verdicts: changed, new, gone (proven: of 100 comparisons of equal programs at most 5 name any function), same
    (within 5 %), unclear. Functions are matched by name, module, source file and line.
    """
    form = "json" if as_json else form
    if output is not None and by == "stack":
        raise click.UsageError("-o draws stacks with the functions that were compared: leave out --by stack")
    if output not in (None, "-"):
        _check_page_name(output)
    if output == "-" and form != "text":
        raise click.UsageError(f"-o - and --format {form} would both be standard output")
    if form == "dot" and (by != "function" or output):
        raise click.UsageError("--format dot draws functions, and not with -o")
    if budget is not None and (limit is not None or form not in ("text", "json") or output == "-"):
        raise click.UsageError("--budget is for text and JSON, and takes no --limit: it determines that")
    if per is not None and normalize != "run":
        raise click.UsageError("--per and --normalize both say what numbers are divided by: give one of them")
    if not 0 <= noise <= 1000:
        raise click.UsageError(f"{noise} % is not a noise between runs")
    from perfuse.analysis.compared_side import Compared, ComparedSide
    from perfuse.analysis.diff_assertions import parse_change_assertion
    from perfuse.analysis.run_selection import RunSelection
    from perfuse.reports.compared_runs import Selected

    parsed = [parse_change_assertion(text) for text in assertions]
    limit = (TEXT_LIMIT if form == "text" else 0) if limit is None else limit
    given = sides(runs)
    base, new = given.base, given.new
    for run in given.repeated:
        console.note(f"{'+'.join(run)} was given more than once on one side and is counted once")
    grouping: Any = "function" if by == "stack" else by
    compared = Compared(
        by=grouping,
        event=event,
        weight=weight,
        edges=by == "function",
        nodes=by == "stack" or output is not None,
        bins=len(base) == len(new) == 1,
        per=per,
    )
    statistic = {"name": "self", "p50": "median"}.get(sort, sort)
    if how.stack_filter and statistic not in SAMPLE_STATISTICS:
        orders = ", ".join((*SAMPLE_STATISTICS, "name"))
        raise UsageError(
            f"filters of stacks do not select single calls: --sort is one of {orders}, not {sort}", field="sort"
        )
    side_a = ComparedSide(compared, RunSelection("A", how.stack_filter))
    before = _read(console, base, replace(how, maps=_own_maps(how.maps, map_a)), side_a)
    # The event of the first side, which may not be the one with the most samples of the second.
    side_b = ComparedSide(compared, RunSelection("B", how.stack_filter), first=side_a.graphs[0])
    after = _read(console, new, replace(how, maps=_own_maps(how.maps, map_b)), side_b)
    side_a.selection.refuse_other_functions(side_b.selection)
    report = _report(before, after, by, statistic, normalize, per, noise / 100)
    selected = Selected(how.selection_text, side_a.selection.share, side_b.selection.share)
    report = replace(report, selected=selected if selected.text else None)
    diagnostics = [*before.diagnostics, *after.diagnostics]
    written = _Output(form, sort, limit, budget, output)
    return _finish(console, report, parsed, written, diagnostics)


_Maps = tuple[tuple[int | None, str], ...]


def _own_maps(both: _Maps, own: _Maps) -> _Maps:
    """The files for one recording: its own, and those for both that have other numbers."""
    numbers = {number for number, _ in own}
    return (*(one for one in both if one[0] not in numbers), *own)


def _read(console: Console, runs: Sequence[Run], how: ProfileOptions, compared: ComparedSide) -> _Side:
    """Reads the runs of a side, one after the other."""
    from perfuse.reports.compared_runs import compared_run

    side = _Side(compared, [], [])
    for run in runs:
        # Single steps of a filter may match nothing in some of the runs.
        profile = open_profile(console, run, replace(how, stack_filter=NO_FILTER))
        graph = compared.add(profile, "+".join(run))
        side.runs.append(compared_run(profile, graph))
        side.diagnostics.extend(profile.diagnostics)
    compared.selection.refuse_nothing()
    return side


def _report(
    before: _Side, after: _Side, by: str, statistic: str, normalize: str, per: str | None, noise: float
) -> DiffReport:
    from perfuse.analysis.diff import Difference, DiffOptions
    from perfuse.analysis.normalization import Normalization
    from perfuse.reports.diff import diff_report

    side_a, side_b = before.compared, after.compared
    method: Any = normalize if per is None else "work"
    normalization = Normalization(method, per, (tuple(side_a.units), tuple(side_b.units)))
    options = DiffOptions(statistic=statistic, normalization=normalization, noise=noise)
    difference = Difference(side_a.graphs, side_b.graphs, options)
    stacks = None
    if side_a.trees:
        from perfuse.analysis.diff_tree import stack_difference

        is_same = side_a.trees[0] is side_a.graphs[0]
        functions = difference if is_same else Difference(side_a.trees, side_b.trees, _of_trees(options))
        # Boxes of the page have the width and the colour of totals.
        stacks = stack_difference(functions, functions.options.statistic if by == "stack" else "total")
    return diff_report((before.runs, after.runs), difference, stacks, by)


def _of_trees(options: DiffOptions) -> DiffOptions:
    """The options for call trees, which have no durations of single calls."""
    return options if options.statistic in SAMPLE_STATISTICS else replace(options, statistic="self")


def _finish(
    console: Console,
    report: DiffReport,
    parsed: Sequence[ChangeAssertion],
    output: _Output,
    diagnostics: Sequence[Diagnostic],
) -> int:
    """Writes the outputs; the exit code states whether an assertion is violated."""
    from perfuse.analysis.diff_assertions import judge_changes
    from perfuse.reports.diff import csv_lines, diff_lines

    results = judge_changes(parsed, report.functions)
    report = replace(report, limit=output.limit or None, assertions=results).sorted_by(output.sort)
    if output.budget is not None:
        from perfuse.cli.budget import print_within
        from perfuse.reports.registry import Report

        def of_rows(rows: int) -> Report:
            shown = replace(report, limit=rows)
            return Report(shown.as_json, partial(diff_lines, shown), diagnostics)

        print_within(console, output.budget, of_rows, output.form == "json")
    elif output.form == "dot":
        from perfuse.exporters.dot_diff import dot_diff_lines

        console.lines(dot_diff_lines(report.difference, order=report.difference.options.statistic))
    elif output.form == "json":
        console.json(report.as_json())
    elif output.form == "csv":
        console.lines(csv_lines(report))
    elif output.path != "-":
        console.lines(diff_lines(report, console.style))
    if output.path is not None:
        _write_page(console, report, output.path)
    for one in report.assertions:
        if one.outcome == "undecided":
            needed = f"; about {one.runs_needed:,} runs a side would decide" if one.runs_needed else ""
            console.note(f"undecided: {one.assertion.text}: the interval contains the limit{needed}")
    violated = any(one.outcome == "violated" for one in report.assertions)
    return max(exit_codes.FINDINGS if violated else exit_codes.CLEAN, note_data_loss(console, diagnostics))


def _check_page_name(path: str) -> None:
    if not name_of_content(path).endswith((".html", ".htm")):
        raise UsageError(
            f"the page of a difference is saved as .html, not as {path!r}",
            hint="text, JSON, CSV and DOT go to standard output: perfuse diff --format csv OLD NEW > diff.csv",
        )


def _write_page(console: Console, report: DiffReport, path: str) -> None:
    from perfuse.exporters.diff_html import write_page

    write_page(report, path)
    if path != "-":
        console.note(f"wrote {path}")
