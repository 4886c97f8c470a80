"""Functions and the calls between them with their statistics, from traced calls or from samples."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from perfuse.analysis.callgraph import CallGraph
from perfuse.analysis.function_matching import FunctionIdentity
from perfuse.analysis.latency import CallAccount, Latency
from perfuse.analysis.profiles import SampleProfile
from perfuse.analysis.sampled import SampleFilter, call_tree, select_event
from perfuse.table import Columns

Statistic = Literal["count", "self", "sum", "total", "min", "median", "p90", "p99", "max"]
STATISTICS: tuple[str, ...] = get_args(Statistic)
SAMPLE_STATISTICS: tuple[str, ...] = ("count", "self", "total")
"""The statistics that samples have: they have no durations of single calls."""

StatisticValues = Mapping[str, int | None]
"""Numbers by statistic: `count` is calls, or samples with the function on their stack; all others are in the unit."""


@dataclass(frozen=True, slots=True)
class GraphFunction:
    """A function with its numbers.

    Attributes:
        name: Its name.
        module: File it is in.
        path: Source file.
        line: Line in it, from 1.
        values: Its numbers.
        identity: What it is recognised by in another recording.
    """

    name: str
    module: str | None
    path: str | None
    line: int | None
    values: StatisticValues
    identity: FunctionIdentity

    @property
    def column(self) -> int | None:
        """Column at which it is declared, from 1."""
        return self.identity.column


@dataclass(frozen=True, slots=True)
class FunctionGraph:
    """Functions of a profile, and the calls between them.

    Attributes:
        title: What was recorded.
        kind: Whether the numbers are of calls or of samples.
        event: Event of the samples; None for calls.
        unit: Unit of all statistics but `count`: `ns`, `ticks` of an unknown rate, `events` or `calls`.
        statistics: Statistics that its values have.
        num_counted: Number of all calls, or samples.
        whole: Sum of `self` of all functions.
        functions: By a key that is valid in this graph only, in the order in which the recording numbers them.
        edges: Numbers of the calls of one function by another, by the keys of caller and callee.
        unsampled: Functions that the recording declares and that have no numbers.
    """

    title: str
    kind: Literal["calls", "samples"]
    event: str | None
    unit: str
    statistics: tuple[str, ...]
    num_counted: int
    whole: int
    functions: dict[int, GraphFunction]
    edges: dict[tuple[int, int], StatisticValues] = field(default_factory=dict)
    unsampled: tuple[FunctionIdentity, ...] = ()


def function_graph(profile: Any, event: str | None = None, *, edges: bool = False) -> FunctionGraph:
    """The graph of traced calls where the profile has any, else of samples.

    Args:
        profile: The profile.
        event: Use the samples of this event instead.
        edges: Whether to include calls of one function by another.

    Raises:
        UsageError: The profile has no such event.
    """
    return (
        _graph_of_calls(profile, edges) if profile.has_traces and event is None else _graph_of_samples(profile, event)
    )


def _graph_of_calls(profile: Any, edges: bool) -> FunctionGraph:
    account = CallAccount(profile, edges=edges)
    rows = account.functions(order="name")
    rows.sort(key=lambda one: (one.function.native_id or 0, one.function.function_id))
    functions = {}
    for one in rows:
        function = one.function
        values = _values_of_calls(one.latency)
        named = (function.name, function.module, function.path, function.line)
        identity = FunctionIdentity(*named, native_id=function.native_id)
        functions[function.function_id] = GraphFunction(*named, values, identity)
    calls = CallGraph(account).edges() if edges else []
    return FunctionGraph(
        profile.title,
        "calls",
        None,
        account.unit,
        STATISTICS,
        account.totals.num_calls,
        sum(one.latency.self_ns for one in rows),
        functions,
        # The outermost calls of threads have no known caller.
        {
            (one.caller.function_id, one.callee.function_id): _values_of_calls(one.latency)
            for one in calls
            if one.caller is not None
        },
    )


def _graph_of_samples(profile: Any, event: str | None) -> FunctionGraph:
    selected = select_event(profile, event)
    graph = _SampleGraph(profile, SampleFilter(event=selected.name))
    functions = {}
    for key, weight in graph.functions.items():
        name, module, path, line, column, is_declaration = graph.symbols[key]
        declared = FunctionIdentity(name, module, path, line, column)
        identity = declared if is_declaration else FunctionIdentity(name, module)
        functions[key] = GraphFunction(name, module, path, line, _values_of_samples(weight), identity)
    edges = {ends: _values_of_samples(weight) for ends, weight in graph.edges.items()}
    return FunctionGraph(
        profile.title,
        "samples",
        selected.name,
        selected.unit,
        SAMPLE_STATISTICS,
        selected.num_samples,
        graph.total_weight,
        functions,
        edges,
        _unsampled(profile, {one.identity for one in functions.values()}),
    )


def _unsampled(profile: SampleProfile, sampled: set[FunctionIdentity]) -> tuple[FunctionIdentity, ...]:
    """Declared functions that samples are not in: a name that only one sampled function has may be theirs, too."""
    modules = Columns(profile.tables["modules"])
    names = dict(zip(modules["module_id"], modules["name"], strict=True))
    rows = Columns(profile.tables["functions"]).tuples("name", "module_id", "path", "line", "column")
    declared = (
        FunctionIdentity(name, names.get(module), path, line, column)
        for name, module, path, line, column in rows
        if path
    )
    return tuple(one for one in dict.fromkeys(declared) if one not in sampled)


@dataclass(slots=True)
class _SampleWeight:
    """Weight and number of samples: in the function itself, and with it on the stack, recursion counted once."""

    self_weight: int = 0
    total_weight: int = 0
    self_samples: int = 0
    total_samples: int = 0


class _SampleGraph:
    """Functions and edges of the selected samples.

    Attributes:
        functions: Weights by function, a `group_id` of the symbols.
        edges: Weights by caller and callee.
        symbols: Name, module, path, line and column of each function, and whether they are of its declaration.
        total_weight: Weight of all samples.
    """

    def __init__(self, profile: SampleProfile, selection: SampleFilter) -> None:
        tree = call_tree(profile, selection)
        symbols, nodes = Columns(tree.symbols()), Columns(tree.nodes())
        self.symbols: dict[int, tuple[str, str | None, str | None, int | None, int | None, bool]] = {}
        names = ("group_id", "name", "module", "path", "line", "column", "is_declaration")
        for group, *rest in symbols.take(range(len(symbols)), names):
            self.symbols.setdefault(group, tuple(rest))
        self.functions: dict[int, _SampleWeight] = {}
        self.edges: dict[tuple[int, int], _SampleWeight] = {}
        self.total_weight = tree.total_weight
        groups = symbols["group_id"]
        for function, caller, row, is_first, is_first_edge in _iterate_nodes(nodes, groups):
            _add(self.functions.setdefault(function, _SampleWeight()), row, is_first)
            if caller is not None:
                _add(self.edges.setdefault((caller, function), _SampleWeight()), row, is_first_edge)


_WeightRow = tuple[int, int, int, int]
"""Self weight, total weight, self samples, total samples."""


def _iterate_nodes(nodes: Columns, groups: list[int]) -> Iterator[tuple[int, int | None, _WeightRow, bool, bool]]:
    """Every node with its function, its caller's function, and whether function and edge are new on the stack."""
    names = ("node_id", "parent_node_id", "symbol_id", "self_weight", "total_weight", "self_samples", "total_samples")
    stack: list[tuple[int, int]] = []
    open_functions: dict[int, int] = {}
    open_edges: dict[tuple[int, int], int] = {}
    for node, parent, symbol, *weights in zip(*map(nodes.__getitem__, names), strict=True):
        # Nodes are in preorder: nodes on the stack above the parent are complete.
        while stack and stack[-1][0] != parent:
            _, left = stack.pop()
            open_functions[left] -= 1
            if stack:
                open_edges[stack[-1][1], left] -= 1
        function = groups[symbol]
        caller = stack[-1][1] if stack else None
        seen = open_functions.get(function, 0)
        seen_edge = 0 if caller is None else open_edges.get((caller, function), 0)
        yield function, caller, tuple(weights), not seen, not seen_edge
        stack.append((node, function))
        open_functions[function] = seen + 1
        if caller is not None:
            open_edges[caller, function] = seen_edge + 1


def _add(to: _SampleWeight, row: _WeightRow, is_first: bool) -> None:
    self_weight, total_weight, self_samples, total_samples = row
    to.self_weight += self_weight
    to.self_samples += self_samples
    if is_first:
        to.total_weight += total_weight
        to.total_samples += total_samples


def _values_of_calls(one: Latency) -> StatisticValues:
    return {name: getattr(one, "num_calls" if name == "count" else f"{name}_ns") for name in STATISTICS}


def _values_of_samples(one: _SampleWeight) -> StatisticValues:
    return {"count": one.total_samples, "self": one.self_weight, "total": one.total_weight}
