"""What call traces tell: gathered once, then printed or given as JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from perfuse.analysis.callgraph import CallEdge, CallGraph, CallPaths, CallStack, TreeNode
from perfuse.analysis.functions import Function, ThreadIds
from perfuse.analysis.latency import (
    CallAccount,
    FunctionLatency,
    Migration,
    ThreadActivity,
    Totals,
)
from perfuse.analysis.orders import Grouping, Order, Rank
from perfuse.reports.clock_text import Clock
from perfuse.reports.inputs import DiagnosticCount, Input, diagnostic_counts, inputs
from perfuse.table import Columns

if TYPE_CHECKING:
    from perfuse.profile import Profile

STACK_ORDERS = ("self", "total", "count")
TREE_SHARE = 0.005
"""Call tree nodes lighter than this part of the whole are not shown."""
TREE_DEPTH = 400
"""Deeper ones are not shown either: names would be off any screen, and JSON too deep to check by eye."""
STACKS_ON_SCREEN = 5


@dataclass(frozen=True, slots=True)
class CallsRequest:
    """What is to be reported of calls; the options of `perfuse report`."""

    by: Grouping = "function"
    order: Order = "self"
    pattern: str | None = None
    limit: int | None = 10
    rank: Rank = "nearest"
    recursive_only: bool = False
    per_thread: bool = False
    stacks: bool = False
    graph: bool = False
    tree: bool = False
    functions: bool = False
    """Whether functions are listed even where other views were asked for."""

    @property
    def shows_functions(self) -> bool:
        """Whether functions are listed."""
        return self.functions or self.whole_screen

    @property
    def whole_screen(self) -> bool:
        """Whether no view was asked for by itself."""
        return not (self.stacks or self.graph or self.tree)


@dataclass(frozen=True, slots=True)
class StackList:
    """The top stacks by `order`, of one thread or of all."""

    order: str
    thread: ThreadIds | None
    num_stacks: int
    whole_ns: int
    stacks: list[CallStack]


@dataclass(frozen=True, slots=True)
class CallTree:
    """The call tree, of one thread or of all."""

    thread: ThreadIds | None
    whole_ns: int
    nodes: list[TreeNode]


@dataclass(frozen=True, slots=True)
class MomentCount:
    """Moments of a kind and type."""

    kind: str
    event_type: int | None
    count: int


@dataclass(frozen=True, slots=True)
class CallsReport:
    """Everything `perfuse report` tells of calls."""

    title: str
    inputs: list[Input]
    clocks: list[Clock]
    totals: Totals
    request: CallsRequest
    num_called: int
    num_functions: int
    whole_ns: int
    functions: list[FunctionLatency]
    num_edges: int
    edges: list[CallEdge]
    stacks: list[StackList]
    trees: list[CallTree]
    threads: list[ThreadActivity]
    migrations: list[Migration]
    moments: list[MomentCount]
    diagnostics: list[DiagnosticCount]

    @property
    def unit(self) -> str:
        """What times are in: `ns`, or `ticks` where no file tells how long a tick is."""
        return "ns" if any(clock.hz for clock in self.clocks) else "ticks"

    def as_json(self) -> dict[str, Any]:
        """The contract of `report --json` for calls."""
        asked = self.request
        return {
            "kind": "calls",
            "title": self.title,
            "inputs": [asdict(one) for one in self.inputs],
            "clocks": [asdict(one) for one in self.clocks],
            "unit": self.unit,
            "totals": asdict(self.totals),
            "by": asked.by,
            "sort": asked.order,
            "percentiles": asked.rank,
            "num_called": self.num_called,
            "num_functions": self.num_functions,
            "functions": [function_json(one) for one in self.functions],
            "edges": [_edge_json(one) for one in self.edges] if asked.graph else None,
            "stacks": [_stacks_json(one) for one in self.stacks],
            "trees": [_tree_json(one) for one in self.trees] if asked.tree else None,
            "threads": [{**asdict(one), "thread": thread_json(one.thread)} for one in self.threads],
            "migrations": [{**asdict(one), "thread": thread_json(one.thread)} for one in self.migrations],
            "moments": [asdict(one) for one in self.moments],
            "diagnostics": [asdict(one) for one in self.diagnostics],
        }


def calls_report(profile: Profile, request: CallsRequest) -> CallsReport:
    """Gathers the report of a profile with call traces.

    Raises:
        UsageError: The pattern for names is no regular expression.
    """
    shows_stacks = request.stacks or request.whole_screen
    account = CallAccount(
        profile,
        by=request.by,
        rank=request.rank,
        recursive_only=request.recursive_only,
        edges=request.graph,
        paths=shows_stacks or request.tree,
    )
    graph = CallGraph(account) if request.graph else None
    limit, pattern = request.limit, request.pattern
    threads = account.threads()
    each = [one.thread for one in threads] if request.per_thread else [None]
    paths = {thread: CallPaths(account, thread) for thread in each} if shows_stacks or request.tree else {}
    return CallsReport(
        title=profile.title,
        inputs=inputs(profile),
        clocks=_clocks(profile),
        totals=account.totals,
        request=request,
        num_called=account.num_called,
        num_functions=account.num_functions(pattern),
        whole_ns=sum(one.busy_ns for one in threads),
        functions=account.functions(limit, order=request.order, pattern=pattern),
        num_edges=graph.num_edges(pattern) if graph else 0,
        edges=graph.edges(limit, order=_edge_order(request.order), pattern=pattern) if graph else [],
        stacks=[one for thread in paths if shows_stacks for one in _stacks(paths[thread], thread, request)],
        trees=[_tree(paths[thread], thread) for thread in paths if request.tree],
        threads=threads,
        migrations=account.migrations(),
        moments=_moments(profile),
        diagnostics=diagnostic_counts(profile),
    )


def function_json(one: FunctionLatency) -> dict[str, Any]:
    """A function with its statistics."""
    return {
        **_named(one.function),
        "thread": thread_json(one.thread) if one.thread else None,
        "cpu": one.cpu,
        **asdict(one.latency),
    }


def thread_json(thread: ThreadIds) -> dict[str, Any]:
    """A thread, by the numbers people know."""
    return {"pid": thread.pid, "tid": thread.tid, "name": thread.name}


def _named(function: Function) -> dict[str, Any]:
    names = ("name", "native_id", "module", "path", "line")
    return {name: getattr(function, name) for name in names}


def _edge_json(edge: CallEdge) -> dict[str, Any]:
    caller = None if edge.caller is None else _named(edge.caller)
    return {"caller": caller, "callee": _named(edge.callee), **asdict(edge.latency)}


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


def _tree_json(tree: CallTree) -> dict[str, Any]:
    nodes = [{**asdict(node), "function": node.function.name} for node in tree.nodes]
    return {"thread": thread_json(tree.thread) if tree.thread else None, "nodes": nodes}


def _edge_order(order: Order) -> Order:
    # What a function takes itself is spread over those who call it: an edge is looked at for what it takes in all.
    return "sum" if order == "self" else order


def _stacks(paths: CallPaths, thread: ThreadIds | None, request: CallsRequest) -> list[StackList]:
    orders = STACK_ORDERS if request.stacks else STACK_ORDERS[:1]
    limit = request.limit if request.stacks else STACKS_ON_SCREEN
    tops = [(order, paths.top(limit, order=order, pattern=request.pattern)) for order in orders]  # type: ignore[arg-type]
    return [StackList(order, thread, len(paths), paths.whole_ns, stacks) for order, stacks in tops]


def _tree(paths: CallPaths, thread: ThreadIds | None) -> CallTree:
    nodes = list(paths.tree(min_share=TREE_SHARE, max_depth=TREE_DEPTH))
    return CallTree(thread, paths.whole_ns, nodes)


def _clocks(profile: Profile) -> list[Clock]:
    sources, clocks = Columns(profile.tables["sources"]), Columns(profile.tables["clocks"])
    paths = dict(zip(sources["source_id"], sources["path"], strict=True))
    names = ("source_id", "kind", "hz", "hz_source", "stated_hz", "uncertainty_ns")
    rows = clocks.take(range(len(clocks)), names)
    return [Clock(paths[source], *rest) for source, *rest in rows]


def _moments(profile: Profile) -> list[MomentCount]:
    counts: Counter[tuple[str, int | None]] = Counter()
    # Streamed: what comes with them may be more than memory.
    for batch in profile.tables["instants"].stream():
        counts.update(zip(batch["kind"].to_pylist(), batch["event_type"].to_pylist(), strict=True))
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0][0], item[0][1] or 0))
    return [MomentCount(kind, event_type, count) for (kind, event_type), count in ordered]
