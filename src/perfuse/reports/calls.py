"""The report of calls: data, JSON, text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from perfuse.analysis.callgraph import CallEdge, CallGraph, CallPaths
from perfuse.analysis.functions import Function, ThreadIds
from perfuse.analysis.latency import (
    CallAccount,
    FunctionLatency,
    Migration,
    ThreadActivity,
    Totals,
)
from perfuse.analysis.orders import Grouping, Order, Rank
from perfuse.reports.call_tables import (
    StackList,
    Time,
    edge_lines,
    function_lines,
    stack_blocks,
    stack_lines,
)
from perfuse.reports.grid import Cell, Column, Ranked, bar, fields, fitted, grid, section
from perfuse.reports.inputs import (
    DiagnosticCount,
    Input,
    InputClock,
    clock_lines,
    diagnostic_counts,
    input_clocks,
    input_text,
    inputs,
    summary_lines,
)
from perfuse.reports.registry import LIMIT_IS_DEFAULT, Options, Report
from perfuse.reports.text import Role, Style
from perfuse.reports.units import count_text, counted, duration_text, percent_text, ticks_text
from perfuse.value_class import as_dict, value_class

if TYPE_CHECKING:
    from perfuse.profile import Profile
    from perfuse.reports.stack_views import StackReport


STACK_ORDERS = ("self", "total", "count")
STACKS_ON_SCREEN = 5
MOST_FUNCTIONS = 2_000_000
"""Functions of all listed stacks together: a log without returns has stacks of any depth, each in the next."""
WALL_TIME = "wall-time"
"""The event of the own time of calls, by stack."""


@value_class
class CallsRequest:
    """What a report of calls contains; the options of `perfuse report`."""

    by: Grouping = "function"
    order: Order = "self"
    pattern: str | None = None
    limit: int | None = 10
    rank: Rank = "nearest"
    recursive_only: bool = False
    per_thread: bool = False
    stacks: bool = False
    graph: bool = False
    functions: bool = False
    """Whether functions are listed even where other views were requested."""
    around: bool = False
    """Whether callers and callees of the functions are listed."""
    limit_is_default: bool = False

    @property
    def shows_functions(self) -> bool:
        """Whether functions are listed."""
        return self.functions or self.whole_screen

    @property
    def whole_screen(self) -> bool:
        """Whether no single view was requested."""
        return not (self.stacks or self.graph)


@value_class
class InstantCount:
    """The number of instants of a kind and type."""

    kind: str
    event_type: int | None
    count: int


@value_class
class CallsReport:
    """What is printed of the calls of a profile, as text, JSON or CSV."""

    title: str
    inputs: list[Input]
    clocks: list[InputClock]
    totals: Totals
    request: CallsRequest
    num_called: int
    num_functions: int
    whole_ns: int
    functions: list[FunctionLatency]
    num_edges: int
    edges: list[CallEdge]
    stacks: list[StackList]
    threads: list[ThreadActivity]
    migrations: list[Migration]
    instants: list[InstantCount]
    diagnostics: list[DiagnosticCount]
    unit: str
    """The unit of times: `ns`, or `ticks` where the rate of the clock is unknown."""
    views: StackReport | None = None
    """Callers and callees of the functions; None where that was not requested."""
    selected_ns: int | None = None
    """The selected part of the recorded time; None where all is selected."""

    def as_json(self) -> dict[str, Any]:
        """The documented JSON of `report --json` for calls."""
        asked = self.request
        return {
            "kind": "calls",
            "title": self.title,
            "inputs": [as_dict(one) for one in self.inputs],
            "clocks": [as_dict(one) for one in self.clocks],
            "unit": self.unit,
            "totals": as_dict(self.totals),
            "by": asked.by,
            "sort": asked.order,
            "percentiles": asked.rank,
            "num_called": self.num_called,
            "num_functions": self.num_functions,
            "functions": [function_json(one) for one in self.functions],
            "num_edges": self.num_edges if asked.graph else None,
            "edges": [_edge_json(one) for one in self.edges] if asked.graph else None,
            "stacks": [_stacks_json(one) for one in self.stacks],
            "threads": [{**as_dict(one), "thread": thread_json(one.thread)} for one in self.threads],
            "migrations": [{**as_dict(one), "thread": thread_json(one.thread)} for one in self.migrations],
            "instants": [as_dict(one) for one in self.instants],
            **(self.views.views_json() if self.views else {}),
            "diagnostics": [as_dict(one) for one in self.diagnostics],
        }


def calls_report(profile: Profile, request: CallsRequest) -> CallsReport:
    """Collects the report of a profile with call traces.

    Raises:
        UsageError: The pattern for names is not a valid regular expression.
    """
    shows_stacks = request.stacks or request.whole_screen
    account = CallAccount(
        profile,
        by=request.by,
        rank=request.rank,
        recursive_only=request.recursive_only,
        edges=request.graph,
        paths=shows_stacks,
    )
    graph = CallGraph(account) if request.graph else None
    limit, pattern = request.limit, request.pattern
    threads = account.threads()
    each = [one.thread for one in threads] if request.per_thread else [None]
    paths = {thread: CallPaths(account, thread) for thread in each} if shows_stacks else {}
    return CallsReport(
        title=profile.title,
        inputs=inputs(profile),
        clocks=input_clocks(profile),
        totals=account.totals,
        request=request,
        num_called=account.num_called,
        num_functions=account.num_functions(pattern),
        whole_ns=sum(one.busy_ns for one in threads),
        functions=account.functions(limit, order=request.order, pattern=pattern),
        num_edges=graph.num_edges(pattern) if graph else 0,
        edges=graph.edges(limit, order=_edge_order(request.order), pattern=pattern) if graph else [],
        stacks=[one for thread in paths for one in _top_stacks(paths[thread], thread, request)],
        threads=threads,
        migrations=account.migrations(),
        instants=_instant_counts(profile),
        diagnostics=diagnostic_counts(profile),
        unit=account.unit,
        selected_ns=_selected_ns(profile),
        views=_views(profile, request) if request.around and request.pattern is not None else None,
    )


def _views(profile: Profile, request: CallsRequest) -> StackReport:
    """The callers and callees of the functions, by time."""
    from perfuse.reports.stack_views import StackRequest, stack_report

    of = StackRequest(function=request.pattern, limit=request.limit, limit_is_default=request.limit_is_default)
    return stack_report(profile, of, WALL_TIME)


def build(profile: Profile, options: Options) -> Report:
    """Builds the report of a profile with call traces."""
    request = request_of(options)
    if options.get("--format") == "csv":
        from perfuse.exporters.csv import write

        write_csv = partial(
            write,
            profile,
            by=request.by,
            order=request.order if "--sort" in options else None,
            function=request.pattern,
            recursive_only=request.recursive_only,
            llvm=request.rank == "llvm",
        )
        return Report(dict, lambda _style: iter(()), profile.diagnostics, write_csv)
    report = calls_report(profile, request)
    return Report(report.as_json, partial(calls_lines, report), profile.diagnostics)


def request_of(options: Options) -> CallsRequest:
    """The request that options of the command line stand for."""
    others = {"--by", "--graph", "--per-thread", "--recursive-only", "--llvm-compat", "--format"}
    return CallsRequest(
        by=options.get("--by") or ("thread" if "--per-thread" in options else "function"),
        order=options.get("--sort", "self"),
        pattern=options.get("--function"),
        limit=options["--limit"] or None,
        rank="llvm" if "--llvm-compat" in options else "nearest",
        recursive_only="--recursive-only" in options,
        per_thread="--per-thread" in options,
        graph="--graph" in options,
        around=not others & options.keys(),
        limit_is_default=options.get(LIMIT_IS_DEFAULT, False),
    )


def function_json(one: FunctionLatency) -> dict[str, Any]:
    """A function with its statistics."""
    return {
        **_named(one.function),
        "thread": thread_json(one.thread) if one.thread else None,
        "cpu": one.cpu,
        **as_dict(one.latency),
    }


def thread_json(thread: ThreadIds) -> dict[str, Any]:
    """A thread by its pid, tid and name."""
    return {"pid": thread.pid, "tid": thread.tid, "name": thread.name}


def _named(function: Function) -> dict[str, Any]:
    names = ("name", "native_id", "module", "path", "line")
    return {name: getattr(function, name) for name in names}


def _edge_json(edge: CallEdge) -> dict[str, Any]:
    caller = None if edge.caller is None else _named(edge.caller)
    return {"caller": caller, "callee": _named(edge.callee), **as_dict(edge.latency)}


def _stacks_json(one: StackList) -> dict[str, Any]:
    stacks = [
        {
            "functions": [function.name for function in stack.functions],
            "num_calls": stack.num_calls,
            "total_ns": stack.total_ns,
            "self_ns": stack.self_ns,
        }
        for stack in one.stacks
    ]
    thread = thread_json(one.thread) if one.thread else None
    return {"sort": one.order, "thread": thread, "num_stacks": one.num_stacks, "stacks": stacks}


def _edge_order(order: Order) -> Order:
    # Self time of a function is not divided among its callers: edges are sorted by the sum of durations instead.
    return "sum" if order == "self" else order


def _top_stacks(paths: CallPaths, thread: ThreadIds | None, request: CallsRequest) -> list[StackList]:
    orders = STACK_ORDERS if request.stacks else STACK_ORDERS[:1]
    limit = request.limit
    if limit is not None and not request.stacks:
        limit = min(limit, STACKS_ON_SCREEN)
    tops = [
        (order, paths.top(limit, order=order, pattern=request.pattern, most_functions=MOST_FUNCTIONS))  # type: ignore[arg-type]
        for order in orders
    ]
    return [StackList(order, thread, len(paths), paths.whole_ns, stacks) for order, stacks in tops]


def _instant_counts(profile: Profile) -> list[InstantCount]:
    counts: Counter[tuple[str, int | None]] = Counter()
    if condition := profile.selection.condition:
        query = f"SELECT kind::VARCHAR, event_type, count(*) FROM instants WHERE {condition} GROUP BY ALL"
        counts.update({(kind, event_type): count for kind, event_type, count in profile.sql(query).fetchall()})
    else:
        # Streamed: the table may be larger than memory.
        for batch in profile.tables["instants"].stream():
            counts.update(zip(batch["kind"].to_pylist(), batch["event_type"].to_pylist(), strict=True))
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0][0], item[0][1] or 0))
    return [InstantCount(kind, event_type, count) for (kind, event_type), count in ordered]


ROWS_SHOWN = 8
_GROUPING_WORDS = {"function": "", "thread": " by thread", "cpu": " by processor"}
_ORDER_WORDS = {
    "self": "self time",
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
_STACK_ORDER_WORDS = {
    "self": "self time of the innermost function",
    "total": "total time",
    "count": "number of calls",
}


def calls_lines(report: CallsReport, style: Style) -> Iterator[str]:
    """The report, line by line."""
    yield style.paint(report.title, Role.TITLE)
    yield ""
    yield from fields(_header(report), style)
    yield from body_lines(report, style)
    yield from summary_lines(report.diagnostics, style)


def body_lines(report: CallsReport, style: Style, *, brief: bool = False, title: str = "Functions") -> Iterator[str]:
    """The report without header and diagnostics, as it follows a report of samples."""
    asked = report.request
    if asked.shows_functions:
        yield from _function_section(report, style, title)
    if report.views is not None:
        from perfuse.reports.stack_views import view_lines

        yield from view_lines(report.views, style)
    if asked.graph:
        yield from section("Call graph", style, f"by {_ORDER_WORDS['sum' if asked.order == 'self' else asked.order]}")
        yield from edge_lines(report.edges, asked.order, style, _time(report))
        yield from _more(report.num_edges - len(report.edges), style)
    for top in report.stacks:
        yield from _stack_section(top, asked.whole_screen, style, _time(report))
    if asked.whole_screen and not brief:
        yield from _thread_section(report, style, _time(report))
        yield from _migration_section(report.migrations, style)
        yield from _instant_section(report.instants, style)


def part_header(report: CallsReport) -> list[tuple[str, Cell]]:
    """The lines about calls in the header of a report of samples and calls."""
    pairs = _calls_header(report)
    busy = _time(report)(sum(one.busy_ns for one in report.threads))
    pairs.append(("", f"{busy} with any call open, in {counted(len(report.threads), 'thread')}"))
    traced = [clock for clock in report.clocks if clock.hz_source != "defined"]
    lines = list(dict.fromkeys(line for clock in traced for line in clock_lines(clock)))
    return pairs + [("clock of calls" if i == 0 else "", text) for i, text in enumerate(lines)]


def _calls_header(report: CallsReport) -> list[tuple[str, Cell]]:
    totals = report.totals
    first, last = totals.span_ns or (0, 0)
    span_ns = last - first if report.selected_ns is None else report.selected_ns
    over = f" over {_time(report)(span_ns)}" if span_ns > 0 else ""
    functions = counted(report.num_called, "function")
    pairs: list[tuple[str, Cell]] = [("calls", f"{count_text(totals.num_calls)} of {functions}{over}")]
    return pairs + [("", (endings, Role.FAINT)) for endings in [_endings(totals)] if endings]


def _header(report: CallsReport) -> list[tuple[str, Cell]]:
    pairs = _calls_header(report)
    processes = len({one.thread.process_id for one in report.threads})
    tasks = [counted(processes, "process", "processes"), counted(len(report.threads), "thread")]
    pairs.append(("from", ", ".join(tasks)))
    files = [input_text(one) for one in report.inputs]
    pairs += [("file" if len(files) == 1 else "files" if i == 0 else "", text) for i, text in enumerate(files)]
    clocks = list(dict.fromkeys(line for clock in report.clocks for line in clock_lines(clock)))
    pairs += [("clock" if i == 0 else "", text) for i, text in enumerate(clocks)]
    if report.request.rank == "llvm":
        pairs.append(("compare", "percentiles and clock rate as in llvm-xray account"))
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


def _function_section(report: CallsReport, style: Style, title: str) -> Iterator[str]:
    asked = report.request
    only = " of recursive calls only" if asked.recursive_only else ""
    yield from section(f"{title}{_GROUPING_WORDS[asked.by]}", style, f"by {_ORDER_WORDS[asked.order]}{only}")
    yield from function_lines(report.functions, report.whole_ns, asked.order, style, _time(report))
    yield from _more(report.num_functions - len(report.functions), style)


def _stack_section(top: StackList, short: bool, style: Style, time: Time) -> Iterator[str]:
    of = f" of {top.thread.label}" if top.thread else ""
    yield from section(
        f"Top stacks{of}", style, f"by {_STACK_ORDER_WORDS[top.order]}; {count_text(top.num_stacks)} in all"
    )
    yield from (stack_lines if short else stack_blocks)(top, style, time)


def _thread_section(report: CallsReport, style: Style, time: Time) -> Iterator[str]:
    threads = report.threads
    if len(threads) < 2:
        return
    yield from section("Threads", style, "time with any call open")
    shown = threads[:ROWS_SHOWN]
    most = max(one.busy_ns for one in threads)
    bars: list[Cell] = [(bar(one.busy_ns, most), Role.JIT) for one in shown]
    moved = [count_text(one.num_migrations) for one in shown]
    columns = [
        Ranked(Column("busy", right=True), [time(one.busy_ns) for one in shown]),
        Ranked(Column("", right=True), [_share(one, report.selected_ns) for one in shown]),
        Ranked(Column(""), bars, 2),
        Ranked(Column("calls", right=True), [count_text(one.num_calls) for one in shown]),
        Ranked(Column("deepest", right=True), [count_text(one.max_depth) for one in shown], 1),
        *([Ranked(Column("moved", right=True), moved, 1)] if any(one.num_migrations for one in threads) else []),
        Ranked(Column("thread", shrinks=12), [one.thread.label for one in shown]),
    ]
    yield from fitted(columns, style)
    yield from _more(len(threads) - len(shown), style, "--json shows all")


def _share(one: ThreadActivity, selected_ns: int | None) -> str:
    if selected_ns is not None:
        return percent_text(one.busy_ns, selected_ns)
    if one.first_ns is None or one.last_ns is None:
        return ""
    return percent_text(one.busy_ns, one.last_ns - one.first_ns)


def _selected_ns(profile: Profile) -> int | None:
    """The selected part of the recorded time; None where all is selected."""
    selected = profile.selection.time_ns
    recorded = None if selected is None else profile._events.trace_span()
    if selected is None or recorded is None:
        return None
    return max(0, min(selected[1], recorded[1]) - max(selected[0], recorded[0]))


def _migration_section(migrations: Sequence[Migration], style: Style) -> Iterator[str]:
    if not migrations:
        return
    total = sum(one.num_migrations for one in migrations)
    yield from section("Processors", style, f"threads moved between them {counted(total, 'time')}")
    rows: list[list[Cell]] = [
        [counted(one.num_migrations, "time"), f"{one.from_cpu} → {one.to_cpu}", one.thread.label]
        for one in migrations[:ROWS_SHOWN]
    ]
    yield from grid([Column("", right=True), Column("", role=Role.NAME), Column("", shrinks=12)], rows, style)
    yield from _more(len(migrations) - ROWS_SHOWN, style, "--json shows all")


def _instant_section(instants: Sequence[InstantCount], style: Style) -> Iterator[str]:
    # Others, such as loaded images, are events of the runtime, not of the program.
    instants = [one for one in instants if one.kind.endswith("_event")]
    if not instants:
        return
    yield from section("Custom and typed events", style, "details: table instants")
    rows: list[list[Cell]] = [
        [count_text(one.count), one.kind.replace("_", " ") + ("" if one.event_type is None else f" {one.event_type}")]
        for one in instants[:ROWS_SHOWN]
    ]
    yield from grid([Column("", right=True), Column("", shrinks=12)], rows, style)
    yield from _more(len(instants) - ROWS_SHOWN, style, "--json shows all")


def _more(count: int, style: Style, hint: str = "--limit 0 shows all") -> Iterator[str]:
    if count > 0:
        yield style.paint(f"  … {count_text(count)} more ({hint})", Role.FAINT)
