"""Functions and the calls between them with their statistics, from traced calls or from samples."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from perfuse.analysis.callgraph import CallGraph
from perfuse.analysis.function_matching import FunctionIdentity
from perfuse.analysis.latency import CallAccount, Latency
from perfuse.analysis.profiles import SampleProfile
from perfuse.analysis.sampled import Event, SampleFilter, call_tree, select_event
from perfuse.analysis.time_bins import binned_tree
from perfuse.filters.names import NO_MODULE
from perfuse.table import COUNTED_EVENTS, Columns

Statistic = Literal["count", "self", "sum", "total", "min", "median", "p90", "p99", "max"]
STATISTICS: tuple[str, ...] = get_args(Statistic)
SAMPLE_STATISTICS: tuple[str, ...] = ("count", "self", "total")
"""The statistics that samples have: they have no durations of single calls."""
RETAINED_STATISTICS: tuple[str, ...] = ("self", "total")
"""Those of retained sizes, whose samples are paths of types."""

Grouping = Literal["function", "module", "tier", "type"]
"""What frames are grouped by; `type` is that of allocated objects, or of those on the heap."""
GROUPINGS: tuple[str, ...] = get_args(Grouping)

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
        num_self: Number of samples or calls that `self` is made of.
        num_total: Number of those that `total` is made of.
        bins: Weight of `self` and `total` in equal parts of the recorded time; empty where that was not asked for.
    """

    name: str
    module: str | None
    path: str | None
    line: int | None
    values: StatisticValues
    identity: FunctionIdentity
    num_self: int = 0
    num_total: int = 0
    bins: Mapping[str, list[int]] = field(default_factory=dict)

    @property
    def column(self) -> int | None:
        """Column at which it is declared, from 1."""
        return self.identity.column


@dataclass(frozen=True, slots=True)
class StackNodes:
    """The call tree of samples; nodes are in preorder, and columns of equal length describe them.

    Attributes:
        parents: Number of the caller's node; -1 for outermost ones.
        functions: Key of the function.
        self_weights: Weight of the samples with exactly this stack.
        self_samples: Number of these samples, calls or allocations.
        total_weights: Weight of the samples whose stack starts with this one.
        total_samples: Number of these samples, calls or allocations.
    """

    parents: list[int]
    functions: list[int]
    self_weights: list[int]
    self_samples: list[int]
    total_weights: list[int]
    total_samples: list[int]


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
        nodes: The call tree; None where that was not asked for.
        span_ns: First and last time of the samples or calls; None where they have none.
        is_selection: Whether a filter of stacks was applied: then nothing may be left.
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
    nodes: StackNodes | None = None
    span_ns: tuple[int, int] | None = None
    is_selection: bool = False


def function_graph(
    profile: Any,
    event: str | None = None,
    *,
    edges: bool = False,
    by: Grouping = "function",
    nodes: bool = False,
    bins: bool = False,
) -> FunctionGraph:
    """The graph of traced calls where the profile has any and no filter of stacks, else of samples.

    Args:
        profile: The profile.
        event: Use the samples of this event instead.
        edges: Whether to include calls of one function by another.
        by: What frames are grouped by; by other than functions, recorded calls are compared by their times.
        nodes: Whether to include the call tree, which for calls is that of their times.
        bins: Whether to include weights in equal parts of the recorded time, where samples have times.

    Raises:
        UsageError: The profile has no such event.
    """
    traced = getattr(profile, "has_traces", False) and event is None
    # Filters of stacks select no single calls, whose times are sums by stack, too.
    if traced and by == "function" and not nodes and not getattr(profile, "stack_filter", None):
        return _graph_of_calls(profile, edges)
    return _graph_of_samples(profile, "wall-time" if traced else event, by, nodes, bins)


def empty_graph(title: str, event: Event) -> FunctionGraph:
    """The graph of a recording of which a filter of stacks leaves nothing."""
    columns: tuple[list[int], ...] = ([], [], [], [], [], [])
    return FunctionGraph(
        title,
        "samples",
        event.name,
        event.unit,
        SAMPLE_STATISTICS,
        0,
        0,
        {},
        nodes=StackNodes(*columns),
        is_selection=True,
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
        num_calls = one.latency.num_calls
        functions[function.function_id] = GraphFunction(*named, values, identity, num_calls, num_calls)
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
        span_ns=profile.span_ns,
    )


def _graph_of_samples(profile: Any, event: str | None, by: Grouping, nodes: bool, bins: bool) -> FunctionGraph:
    selected = select_event(profile, event)
    graph = _SampleGraph(profile, SampleFilter(event=selected.name), by)
    counts: _SampleGraph | None = None
    if selected.unit == "samples" or selected.name in COUNTED_EVENTS.values():
        counts = graph
    elif selected.name in COUNTED_EVENTS:
        counts = _SampleGraph(profile, SampleFilter(event=COUNTED_EVENTS[selected.name]), by)
    is_of_calls = "calls" in {selected.name, COUNTED_EVENTS.get(selected.name)}
    in_time = _binned(profile, selected, by) if bins and selected.last_ns > selected.first_ns else {}
    functions = {}
    for key, weight in graph.functions.items():
        name, module, path, line, column, is_declaration = graph.symbols[key]
        declared = FunctionIdentity(name, module, path, line, column)
        identity = declared if is_declaration else FunctionIdentity(name, module, sampled_path=path)
        numbers = (weight.self_samples, weight.total_samples)
        if counts is not None and (counted := counts.functions.get(key)) is not None:
            numbers = (counted.self_weight, counted.total_weight)
        # A row of sums is many allocations or calls. Samples below a function are its own, too, and calls are not.
        values = {**_values_of_samples(weight), "count": numbers[0 if is_of_calls else 1]}
        functions[key] = GraphFunction(name, module, path, line, values, identity, *numbers, in_time.get(key, {}))
    edges = {ends: _values_of_samples(weight) for ends, weight in graph.edges.items()}
    return FunctionGraph(
        profile.title,
        "samples",
        selected.name,
        selected.unit,
        SAMPLE_STATISTICS,
        sum(one.num_self for one in functions.values()) if selected.is_sum else selected.num_samples,
        graph.total_weight,
        functions,
        edges,
        unsampled_functions(profile, {one.identity for one in functions.values()}) if by == "function" else (),
        graph.nodes(counts) if nodes else None,
        (selected.first_ns, selected.last_ns) if selected.last_ns > selected.first_ns else None,
    )


def _binned(profile: Any, event: Event, by: Grouping) -> dict[int, dict[str, list[int]]]:
    """Weights of each function in equal parts of the recorded time."""
    tree = binned_tree(profile, event)
    symbols, nodes = Columns(tree.symbols()), Columns(tree.nodes())
    groups, _ = _grouped(symbols, by)
    found: dict[int, dict[str, list[int]]] = {}
    bins = nodes["thread_id"]
    num_bins = max(bins, default=0) + 1
    for place, (function, _, row, is_first, _) in enumerate(_iterate_nodes(nodes, groups)):
        sums = found.setdefault(function, {"self": [0] * num_bins, "total": [0] * num_bins})
        sums["self"][bins[place]] += row[0]
        if is_first:
            sums["total"][bins[place]] += row[1]
    return found


_Named = tuple[str, str | None, str | None, int | None, int | None, bool]
"""Name, module, path, line, column, and whether the last three are of a declaration."""

_UNGROUPED = -1
"""The group of frames that are of none."""


def _grouped(symbols: Columns, by: Grouping) -> tuple[list[int], dict[int, _Named]]:
    """The group of each symbol, and what each group is called."""
    if by == "function":
        names = ("group_id", "name", "module", "path", "line", "column", "is_declaration")
        named: dict[int, _Named] = {}
        for group, *rest in symbols.take(range(len(symbols)), names):
            named.setdefault(group, (rest[0], rest[1], rest[2], rest[3], rest[4], rest[5]))
        return symbols["group_id"], named
    numbers: dict[str, int] = {}
    groups = []
    for name, module, tier, kind in symbols.tuples("name", "module", "tier", "kind"):
        if by == "type":
            # The retained sizes of a heap have no frames but types, and are not called one.
            text = name if kind == "type" else None
        else:
            text = (module or NO_MODULE) if by == "module" else (tier or kind)
        groups.append(_UNGROUPED if text is None else numbers.setdefault(text, len(numbers)))
    return groups, {number: (text, None, None, None, None, False) for text, number in numbers.items()}


def unsampled_functions(profile: SampleProfile, sampled: set[FunctionIdentity]) -> tuple[FunctionIdentity, ...]:
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

    def __init__(self, profile: SampleProfile, selection: SampleFilter, by: Grouping = "function") -> None:
        tree = call_tree(profile, selection)
        symbols, nodes = Columns(tree.symbols()), Columns(tree.nodes())
        groups, self.symbols = _grouped(symbols, by)
        self.functions: dict[int, _SampleWeight] = {}
        self.edges: dict[tuple[int, int], _SampleWeight] = {}
        self.total_weight = tree.total_weight
        for function, caller, row, is_first, is_first_edge in _iterate_nodes(nodes, groups):
            _add(self.functions.setdefault(function, _SampleWeight()), row, is_first)
            if caller is not None:
                _add(self.edges.setdefault((caller, function), _SampleWeight()), row, is_first_edge)
        self.functions.pop(_UNGROUPED, None)
        self.edges = {ends: weight for ends, weight in self.edges.items() if _UNGROUPED not in ends}
        self._columns, self._groups = nodes, groups

    def nodes(self, counts: "_SampleGraph | None") -> StackNodes:
        """The call tree; numbers of samples are the weights of `counts`, whose samples have the same stacks."""
        columns = self._columns
        numbers = {node: number for number, node in enumerate(columns["node_id"])}
        self_samples, total_samples = columns["self_samples"], columns["total_samples"]
        if counts is not None:
            self_samples, total_samples = self._counted(counts)
        return StackNodes(
            [numbers.get(parent, -1) for parent in columns["parent_node_id"]],
            [self._groups[symbol] for symbol in columns["symbol_id"]],
            columns["self_weight"],
            self_samples,
            columns["total_weight"],
            total_samples,
        )

    def _counted(self, counts: "_SampleGraph") -> tuple[list[int], list[int]]:
        """Self and total weights of `counts` for each node; of nodes with equal stacks, the first has those of all."""
        numbers: dict[tuple[int, int], int] = {}
        found: dict[int, tuple[int, int]] = {}
        weights = zip(counts._columns["self_weight"], counts._columns["total_weight"], strict=True)
        for stack, (own, total) in zip(counts._stacks(numbers), weights, strict=True):
            before = found.get(stack, (0, 0))
            found[stack] = before[0] + own, before[1] + total
        rows = [found.pop(stack, (0, 0)) for stack in self._stacks(numbers)]
        return [own for own, _ in rows], [total for _, total in rows]

    def _stacks(self, numbers: dict[tuple[int, int], int]) -> list[int]:
        """The number of each node's stack of functions; `numbers` has those so far, by the caller's and function."""
        columns = self._columns
        of_node: dict[int, int] = {}
        for node, parent, symbol in zip(
            *(columns[name] for name in ("node_id", "parent_node_id", "symbol_id")), strict=True
        ):
            of_node[node] = numbers.setdefault((of_node.get(parent, -1), self._groups[symbol]), len(numbers))
        return list(of_node.values())


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
