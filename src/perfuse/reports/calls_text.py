"""The report of calls, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfuse.analysis.latency import Migration, ThreadActivity, Totals
from perfuse.reports.calls import CallsReport, MomentCount, StackList
from perfuse.reports.clock_text import clock_lines
from perfuse.reports.findings import summary_lines
from perfuse.reports.fitting import Ranked, fitted
from perfuse.reports.grid import Cell, Column, bar, fields, grid
from perfuse.reports.inputs import input_text
from perfuse.reports.latency_text import Time, edge_lines, function_lines
from perfuse.reports.section import section
from perfuse.reports.stacks_text import stack_blocks, stack_lines, tree_lines
from perfuse.reports.style import Role, Style
from perfuse.reports.units import count_text, counted, duration_text, percent_text, ticks_text

BAR_COLUMNS = 12
ROWS_SHOWN = 8
_BY = {"function": "", "thread": " by thread", "cpu": " by processor"}
_WORDS = {
    "self": "time in themselves",
    "sum": "sum of durations",
    "total": "time on the stack",
    "count": "number of calls",
    "min": "shortest call",
    "median": "median",
    "p90": "90th percentile",
    "p99": "99th percentile",
    "max": "longest call",
    "name": "name",
}
_STACKS = {"self": "time in their innermost function", "total": "time with all they called", "count": "number of calls"}


def calls_lines(report: CallsReport, style: Style) -> Iterator[str]:
    """The report, line by line."""
    yield style.paint(report.title, Role.TITLE)
    yield ""
    yield from fields(_header(report), style)
    yield from body_lines(report, style)
    yield from summary_lines(report.diagnostics, style)


def body_lines(report: CallsReport, style: Style, *, brief: bool = False) -> Iterator[str]:
    """The report without header and findings: what a report of samples has more where there are calls too.

    `brief` leaves out what is not about functions.
    """
    asked = report.request
    if asked.shows_functions:
        yield from _functions(report, style)
    if asked.graph:
        yield from section("Who calls whom", style, f"by {_WORDS['sum' if asked.order == 'self' else asked.order]}")
        yield from edge_lines(report.edges, asked.order, style, _time(report))
        yield from _more(report.num_edges - len(report.edges), style)
    for tree in report.trees:
        of = f" of {tree.thread.label}" if tree.thread else ""
        yield from section(f"Call tree{of}", style, "callers above what they called; light branches left out")
        yield from tree_lines(tree, style, _time(report))
    for top in report.stacks:
        yield from _stacks(top, asked.whole_screen, style, _time(report))
    if asked.whole_screen and not brief:
        yield from _threads(report.threads, style, _time(report))
        yield from _migrations(report.migrations, style)
        yield from _moments(report.moments, style)


def _header(report: CallsReport) -> list[tuple[str, Cell]]:
    totals = report.totals
    first, last = totals.span_ns or (0, 0)
    over = f" over {duration_text(last - first)}" if last > first else ""
    functions = counted(report.num_called, "function")
    pairs: list[tuple[str, Cell]] = [("calls", f"{count_text(totals.num_calls)} of {functions}{over}")]
    pairs += [("", (told, Role.FAINT)) for told in [_endings(totals)] if told]
    processes = len({one.thread.pid for one in report.threads})
    tasks = [counted(processes, "process", "processes"), counted(len(report.threads), "thread")]
    pairs.append(("from", ", ".join(tasks)))
    files = [input_text(one) for one in report.inputs]
    pairs += [("file" if len(files) == 1 else "files" if i == 0 else "", text) for i, text in enumerate(files)]
    clocks = list(dict.fromkeys(line for clock in report.clocks for line in clock_lines(clock)))
    pairs += [("clock" if i == 0 else "", text) for i, text in enumerate(clocks)]
    if report.request.rank == "llvm":
        pairs.append(("compare", "percentiles and rate as llvm-xray account takes them"))
    return pairs


def _time(report: CallsReport) -> Time:
    return duration_text if report.unit == "ns" else ticks_text


def _endings(totals: Totals) -> str:
    counts = (
        (totals.num_unwound, "left by an exception or longjmp"),
        (totals.num_truncated, "still open at the end"),
        (totals.num_lost, "begun before the recording"),
        (totals.num_orphans, "ends without a start"),
    )
    return ", ".join(f"{count_text(count)} {what}" for count, what in counts if count)


def _functions(report: CallsReport, style: Style) -> Iterator[str]:
    asked = report.request
    only = " of recursive calls only" if asked.recursive_only else ""
    yield from section(f"Functions{_BY[asked.by]}", style, f"by {_WORDS[asked.order]}{only}")
    yield from function_lines(report.functions, report.whole_ns, asked.order, style, _time(report))
    yield from _more(report.num_functions - len(report.functions), style)


def _stacks(top: StackList, short: bool, style: Style, time: Time) -> Iterator[str]:
    of = f" of {top.thread.label}" if top.thread else ""
    yield from section(f"Top stacks{of}", style, f"by {_STACKS[top.order]}; {count_text(top.num_stacks)} in all")
    yield from (stack_lines if short else stack_blocks)(top, style, time)


def _threads(threads: Sequence[ThreadActivity], style: Style, time: Time) -> Iterator[str]:
    if len(threads) < 2:
        return
    yield from section("Threads", style, "time with any call open")
    shown = threads[:ROWS_SHOWN]
    most = max(one.busy_ns for one in threads)
    bars: list[Cell] = [
        (bar(one.busy_ns / most if most else 0, BAR_COLUMNS).ljust(BAR_COLUMNS), Role.JIT) for one in shown
    ]
    columns = [
        Ranked(Column("busy", right=True), [time(one.busy_ns) for one in shown]),
        Ranked(Column("", right=True), [_share(one) for one in shown]),
        Ranked(Column(""), bars, 2),
        Ranked(Column("calls", right=True), [count_text(one.num_calls) for one in shown]),
        Ranked(Column("deepest", right=True), [count_text(one.max_depth) for one in shown], 1),
        Ranked(Column("moved", right=True), [count_text(one.num_migrations) for one in shown], 1),
        Ranked(Column("thread", shrinks=12), [one.thread.label for one in shown]),
    ]
    yield from fitted(columns, style)
    yield from _more(len(threads) - len(shown), style, "--json has all")


def _share(one: ThreadActivity) -> str:
    if one.first_ns is None or one.last_ns is None:
        return ""
    return percent_text(one.busy_ns, one.last_ns - one.first_ns)


def _migrations(migrations: Sequence[Migration], style: Style) -> Iterator[str]:
    if not migrations:
        return
    total = sum(one.num_migrations for one in migrations)
    yield from section("Processors", style, f"threads were moved between them {counted(total, 'time')}")
    rows: list[list[Cell]] = [
        [counted(one.num_migrations, "time"), f"{one.from_cpu} → {one.to_cpu}", one.thread.label]
        for one in migrations[:ROWS_SHOWN]
    ]
    yield from grid([Column("", right=True), Column("", role=Role.NAME), Column("", shrinks=12)], rows, style)
    yield from _more(len(migrations) - ROWS_SHOWN, style, "--json has all")


def _moments(moments: Sequence[MomentCount], style: Style) -> Iterator[str]:
    # Of others, such as loaded images, the runtime told, not the program.
    moments = [one for one in moments if one.kind.endswith("_event")]
    if not moments:
        return
    yield from section("Events the program marked", style, "table instants has what they tell")
    rows: list[list[Cell]] = [
        [count_text(one.count), one.kind.replace("_", " ") + ("" if one.event_type is None else f" {one.event_type}")]
        for one in moments[:ROWS_SHOWN]
    ]
    yield from grid([Column("", right=True), Column("", shrinks=12)], rows, style)
    yield from _more(len(moments) - ROWS_SHOWN, style, "--json has all")


def _more(count: int, style: Style, hint: str = "--limit 0 shows all") -> Iterator[str]:
    if count > 0:
        yield style.paint(f"  … {count_text(count)} more ({hint})", Role.FAINT)
