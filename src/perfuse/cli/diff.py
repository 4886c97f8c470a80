"""`perfuse diff`"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from perfuse.analysis.function_graph import (
    GROUPINGS,
    RETAINED_STATISTICS,
    SAMPLE_STATISTICS,
    STATISTICS,
    FunctionGraph,
    empty_graph,
    function_graph,
)
from perfuse.analysis.normalization import METHODS
from perfuse.cli import exit_codes
from perfuse.cli.console import Console
from perfuse.cli.diff_sides import Run, SidesVerb, sides
from perfuse.cli.opening import NO_FILTER, ProfileOptions, note_data_loss, open_profile
from perfuse.cli.options import BUDGET, ObjectFile, limit, output, profile_options, stack_filters
from perfuse.cli.verbs import verb
from perfuse.errors import UsageError
from perfuse.table import RETAINED, WEIGHTS

if TYPE_CHECKING:
    from perfuse import Diagnostic, Profile
    from perfuse.analysis.diff import DiffOptions
    from perfuse.analysis.diff_assertions import ChangeAssertion
    from perfuse.analysis.run_selection import RunSelection
    from perfuse.reports.compared_runs import ComparedRun
    from perfuse.reports.diff import DiffReport

FORMATS = ("text", "csv", "json", "dot")
ORDERS = (*STATISTICS, "p50", "name")
DIMENSIONS = (*GROUPINGS, "stack")
TEXT_LIMIT = 10


@dataclass(frozen=True, slots=True)
class _Compared:
    """What is compared of each recording."""

    by: str
    event: str | None
    weight: str | None
    edges: bool
    nodes: bool
    bins: bool
    per: str | None
    selection: RunSelection
    first: FunctionGraph | None = None
    """The first recording, whose event is compared; a recording of calls has all of them."""


@dataclass(slots=True)
class _Side:
    """The runs of one side as they were read."""

    graphs: list[FunctionGraph]
    trees: list[FunctionGraph]
    runs: list[ComparedRun]
    units: list[float]
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
    help=f"Statistic that is compared: {', '.join(ORDERS)}. [self]",
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
    from perfuse.analysis.diff_assertions import parse_change_assertion
    from perfuse.analysis.run_selection import RunSelection
    from perfuse.reports.compared_runs import Selected

    parsed = [parse_change_assertion(text) for text in assertions]
    limit = (TEXT_LIMIT if form == "text" else 0) if limit is None else limit
    given = sides(runs)
    base, new = given.base, given.new
    for run in given.repeated:
        console.note(f"{'+'.join(run)} was given more than once on one side and is counted once")
    compared = _Compared(
        by="function" if by == "stack" else by,
        event=event,
        weight=weight,
        edges=by == "function",
        nodes=by == "stack" or output is not None,
        bins=len(base) == len(new) == 1,
        per=per,
        selection=RunSelection("A", how.stack_filter),
    )
    statistic = {"name": "self", "p50": "median"}.get(sort, sort)
    if how.stack_filter and statistic not in SAMPLE_STATISTICS:
        orders = ", ".join((*SAMPLE_STATISTICS, "name"))
        raise UsageError(
            f"filters of stacks do not select single calls: --sort is one of {orders}, not {sort}", field="sort"
        )
    before = _read(console, base, replace(how, maps=_own_maps(how.maps, map_a)), compared)
    # The event of the first side, which may not be the one with the most samples of the second.
    same = replace(compared, first=before.graphs[0], selection=RunSelection("B", how.stack_filter))
    after = _read(console, new, replace(how, maps=_own_maps(how.maps, map_b)), same)
    report = _report(before, after, by, statistic, normalize, per, noise / 100)
    selected = Selected(_selection_text(how), compared.selection.share, same.selection.share)
    report = replace(report, selected=selected if selected.text else None)
    diagnostics = [*before.diagnostics, *after.diagnostics]
    written = _Output(form, sort, limit, budget, output)
    return _finish(console, report, parsed, written, diagnostics)


_Maps = tuple[tuple[int | None, str], ...]


def _own_maps(both: _Maps, own: _Maps) -> _Maps:
    """The files for one recording: its own, and those for both that have other numbers."""
    numbers = {number for number, _ in own}
    return (*(one for one in both if one[0] not in numbers), *own)


def _selection_text(how: ProfileOptions) -> str:
    """The options that select a part of the recordings."""
    parts = ["--between"] if how.between is not None else []
    parts += [f"--thread {how.thread}"] if how.thread is not None else []
    return ", ".join([*parts, *([str(how.stack_filter)] if how.stack_filter else [])])


def _read(console: Console, runs: Sequence[Run], how: ProfileOptions, compared: _Compared) -> _Side:
    """Reads the runs of a side, one after the other; what is not compared of them is not kept."""
    from perfuse.analysis.work import units_of_work
    from perfuse.reports.compared_runs import compared_run

    side = _Side([], [], [], [], [])
    for run in runs:
        # Single steps of a filter may match nothing in some of the runs.
        profile = open_profile(console, run, replace(how, stack_filter=NO_FILTER))
        try:
            graph = _graph(profile, compared)
        except UsageError as error:
            raise _without_event(error, profile, run, compared) from error
        side.graphs.append(graph)
        if compared.nodes:
            has_nodes = graph.nodes is not None
            side.trees.append(graph if has_nodes else _graph(profile, replace(compared, by="function"), nodes=True))
        machines = [one.machine for one in profile.recordings if one.role == "samples"]
        side.runs.append(compared_run(profile, graph, next(filter(None, machines), None)))
        side.diagnostics += profile.diagnostics
        if compared.per is not None:
            side.units.append(units_of_work(profile, compared.per))
        compared = replace(compared, first=compared.first or graph)
    compared.selection.refuse_nothing()
    return side


def _without_event(error: UsageError, profile: Profile, run: Run, compared: _Compared) -> UsageError:
    """The error for a run without the event that is compared, which names its side; `error` where that is not wrong."""
    from perfuse.analysis.sampled import events

    first = None if compared.first is None else compared.first.event
    event = _compared_event(compared) or first
    names = [one.name for one in events(profile)]
    if error.field != "event" or event is None or event in names:
        return error
    run_text = f"{compared.selection.side} ({'+'.join(run)})"
    has = f"{run_text} has {', '.join(names) or 'no samples'}"
    if not event:
        return UsageError("A has no samples that could be compared", field="event", hint=has)
    of_first = ", the event of A" if first == event else ""
    choice = "; --event NAME compares an event that both sides have" if names else ""
    return UsageError(f"{run_text} has no samples of event {event!r}{of_first}", field="event", hint=f"{has}{choice}")


def _compared_event(compared: _Compared) -> str | None:
    """The event that options name."""
    return compared.event if compared.weight is None else WEIGHTS.get(compared.weight)


def _graph(profile: Profile, compared: _Compared, *, nodes: bool = False) -> FunctionGraph:
    """What is compared of a recording; `nodes` is for the call tree of recorded calls, which is that of their times."""
    from perfuse.analysis.sampled import events, select_event

    source: Any = profile
    event = _compared_event(compared)
    is_heap = RETAINED in (compared.weight, compared.event)
    if not is_heap and compared.weight is None and event is None:
        is_heap = profile.has("heap_snapshots") and not profile.has_traces and not events(profile)
    by: Any = compared.by
    if is_heap:
        from perfuse.analysis.heap import selected_retained_sizes

        # All frames of retained sizes are types.
        source, event, by = selected_retained_sizes(profile), None, "function" if by == "type" else by
    if profile.has_traces and event is None and not is_heap and not compared.selection.stack_filter:
        nodes_too = nodes
    else:
        nodes_too = nodes or (compared.nodes and compared.by == "function")
    if event is None and compared.first is not None and not profile.has_traces and not is_heap:
        event = compared.first.event
    if compared.selection.stack_filter:
        whole = select_event(source, event)
        source, event = compared.selection.select(source), whole.name
        left = sum(one.weight for one in events(source) if one.name == event)
        compared.selection.recorded += whole.weight
        compared.selection.selected += left
        if not left:
            return empty_graph(source.title, whole)
    graph = function_graph(source, event, edges=compared.edges, by=by, nodes=nodes_too, bins=compared.bins)
    if is_heap:
        # Its samples are paths, whose number says nothing of that of objects.
        graph = replace(graph, statistics=RETAINED_STATISTICS)
    if by == "type" and not graph.functions and (graph.num_counted or graph.whole):
        raise UsageError(
            f"{graph.event or 'what was recorded'} has no types",
            field="by",
            hint="types are those of allocations (--weight bytes) and of heap snapshots (--weight retained)",
        )
    return graph


def _report(
    before: _Side, after: _Side, by: str, statistic: str, normalize: str, per: str | None, noise: float
) -> DiffReport:
    from perfuse.analysis.diff import Difference, DiffOptions
    from perfuse.analysis.normalization import Normalization
    from perfuse.reports.diff import diff_report

    method: Any = normalize if per is None else "work"
    normalization = Normalization(method, per, (tuple(before.units), tuple(after.units)))
    options = DiffOptions(statistic=statistic, normalization=normalization, noise=noise)
    difference = Difference(before.graphs, after.graphs, options)
    stacks = None
    if before.trees:
        from perfuse.analysis.diff_tree import stack_difference

        is_same = before.trees[0] is before.graphs[0]
        functions = difference if is_same else Difference(before.trees, after.trees, _of_trees(options))
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


def _write_page(console: Console, report: DiffReport, path: str) -> None:
    from perfuse.exporters.diff_html import write_page

    write_page(report, path)
    if path != "-":
        console.note(f"wrote {path}")
