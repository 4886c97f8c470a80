"""Views of weighted stacks: trees of callees and callers, whole stacks, groups by function, thread, module and so on.

Samples, recorded calls, allocations, retained sizes and collapsed stacks are all rows of table `samples`; there is one
implementation for them.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heappop, heappush
from typing import Any

from perfuse import _core
from perfuse.analysis.orders import StackGrouping, StackViewOrder
from perfuse.analysis.profiles import SampleProfile
from perfuse.analysis.sampled import NAMED_SAMPLES, Event, events, nothing_selected, select_event, task_names, tasks
from perfuse.errors import UsageError, nearest_hint
from perfuse.filters.names import NO_MODULE, FramePattern
from perfuse.filters.stacks import FrameSymbols
from perfuse.table import COUNTED_EVENTS, Columns, TablesOfStacks

OF_SAMPLES = ("command", "thread", "process", "cpu")
"""Groupings of samples; the others are of frames."""
DEPTH_FACTOR = 0.9
"""By this factor a node is less worth showing than its parent, at the same weight."""


@dataclass(frozen=True, slots=True)
class StackFunction:
    """A function as it is on stacks, in one tier.

    Attributes:
        name: Its name.
        function_id: Its key; None where it has no name.
        module: Its module.
        kind: `jit`, `native`, `kernel`, `traced`, `type` and so on.
        tier: Its tier; None for code that is not JIT-compiled.
        path: Source file.
        line: Line in it, from 1.
        is_inlined: Whether the call was inlined.
    """

    name: str
    function_id: int | None
    module: str | None
    kind: str
    tier: str | None
    path: str | None
    line: int | None
    is_inlined: bool

    @property
    def handle(self) -> str | None:
        """The handle by which it can be selected."""
        return None if self.function_id is None else f"f{self.function_id}"


@dataclass(frozen=True, slots=True)
class Weight:
    """Weights, and the numbers of samples, calls or allocations that have them.

    Attributes:
        self_weight: Weight of the samples that end there.
        total_weight: Weight of all that contain it; each counts once.
        self_count: Number of those samples, or of calls or allocations.
        total_count: Number of all that contain it.
    """

    self_weight: int
    total_weight: int
    self_count: int
    total_count: int


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A node of a tree of stacks.

    Attributes:
        node: Its number in the tree; parents precede their children.
        parent: Number of its parent; None for a root.
        depth: Number of nodes above it.
        function: Its function.
        weight: Its weights.
        stack_id: Key of the stack that it stands for; None in an inverted tree.
        left_out: Total weight of its children that are not shown.
    """

    node: int
    parent: int | None
    depth: int
    function: StackFunction
    weight: Weight
    stack_id: int | None
    left_out: int


@dataclass(frozen=True, slots=True)
class StackTree:
    """A tree of stacks.

    Attributes:
        nodes: The nodes that are shown, in preorder, the heaviest first.
        num_nodes: Number of all nodes.
        total_weight: Weight of the samples in it.
        total_count: Their number.
        left_out: Total weight of the roots that are not shown.
        is_inverted: Whether children are callers.
    """

    nodes: list[TreeNode]
    num_nodes: int
    total_weight: int
    total_count: int
    left_out: int
    is_inverted: bool


@dataclass(frozen=True, slots=True)
class WholeStack:
    """Samples with the same functions on their stack.

    Attributes:
        functions: The functions, outermost first.
        weight: Their weight.
        count: Their number.
        stack_id: Key of the stack, or of the first of several with these functions.
    """

    functions: tuple[StackFunction, ...]
    weight: int
    count: int
    stack_id: int | None


@dataclass(frozen=True, slots=True)
class Group:
    """Samples of a thread, in a module and so on.

    Attributes:
        name: Name of the group.
        kind: Kind of the code with the most weight in it; empty for groups of samples.
        handle: Handle of a function or thread.
        function: The function, where groups are functions or lines.
        weight: Its weights. Those of groups of samples are all theirs alone.
    """

    name: str
    kind: str
    handle: str | None
    function: StackFunction | None
    weight: Weight


@dataclass(frozen=True, slots=True)
class FunctionView:
    """A function with its callers and callees.

    Attributes:
        function: The function; of several tiers, the heaviest.
        tiers: Its tiers, the heaviest first.
        weight: Its weights.
        callers: Its callers and theirs: the root is the function.
        callees: Its callees and theirs: the root is the function.
    """

    function: StackFunction
    tiers: tuple[str, ...]
    weight: Weight
    callers: StackTree
    callees: StackTree


@dataclass(frozen=True, slots=True)
class TreeRequest:
    """How much of a tree is shown.

    Attributes:
        limit: Largest number of nodes; None for all.
        percent_limit: Nodes below this percentage of the whole are left out.
        depth: Nodes with so many above them, and those below, are left out.
        order: Order of the children of a node.
    """

    limit: int | None = None
    percent_limit: float = 0.0
    depth: int | None = None
    order: StackViewOrder = "total"


class StackGroups:
    """Views of the samples of one event.

    Args:
        source: A profile, or retained sizes of a heap.
        event: Name of the event; by default the one with the most samples, else time of calls, else bytes.

    Raises:
        UsageError: There is no such event, or no sample at all.
    """

    def __init__(self, source: SampleProfile, event: str | None = None) -> None:
        self.source = source
        self.event: Event = select_event(source, event)
        if not self.event.num_samples:
            raise nothing_selected(source) or UsageError("there are no samples, calls or allocations to report")
        counted = COUNTED_EVENTS.get(self.event.name)
        known = {one.name for one in events(source)}
        self._counted_event = counted if counted in known and self.event.is_sum else None
        # The weights of calls and allocations are their numbers; a row is many of them.
        self._counts_weight = self.event.is_sum and self.event.name in COUNTED_EVENTS.values()
        self.counted = self.event.name if self._counts_weight else self._counted_event

    @property
    def whole(self) -> Weight:
        """Weight and number of all samples."""
        return self._sum(self._whole_tree)

    def whole_of(self, recorded: Mapping[str, Event]) -> Weight:
        """The same of all that was recorded, by the sums of its events."""
        of_event = recorded[self.event.name]
        count = of_event.weight if self._counts_weight else of_event.num_samples
        if self._counted_event is not None:
            count = recorded[self._counted_event].weight
        return Weight(of_event.weight, of_event.weight, count, count)

    def functions(self, limit: int | None = None, *, order: StackViewOrder = "self") -> list[Group]:
        """Functions by weight; all tiers of a function are one."""
        return self.groups("function", limit, order=order)

    def groups(self, by: StackGrouping, limit: int | None = None, *, order: StackViewOrder = "self") -> list[Group]:
        """Groups of samples, the heaviest first.

        Args:
            by: `function`, `line`, `module` and `tier` of frames; `thread`, `process`, `cpu`, and `command` of samples:
                the name of the thread at the time of the sample.
            limit: Largest number of groups; None for all.
            order: Sort by self or total weight, by number or by name.

        Raises:
            UsageError: The event is of no thread, or of no processor.
        """
        if by == "cpu":
            found = self._groups_by_cpu()
        elif by in OF_SAMPLES:
            found = self._groups_of_tasks(by)
        elif by == "line":
            found = _lines(self._rows(self._fold(by_line=True), "function"))
        else:
            found = [_group(row, by) for row in self._rows(self._whole_tree, by)]
        found = [one for one in found if one.weight.total_weight or one.weight.total_count]
        return sorted(found, key=_group_key(order))[:limit]

    def tree(self, request: TreeRequest = TreeRequest(), *, inverted: bool = False) -> StackTree:
        """The tree of callees; inverted, of callers from the innermost functions on."""
        return self._shown(self._fold(inverted=inverted), request, inverted)

    def stacks(self, limit: int | None = None, *, order: StackViewOrder = "self") -> tuple[list[WholeStack], int]:
        """Whole stacks, the heaviest first, and the number of all."""
        nodes = _Nodes(self._whole_tree, counts_weight=self._counts_weight)
        ends = [number for number in range(len(nodes)) if nodes.self_weight[number] or nodes.self_count[number]]
        values = nodes.self_count if order == "count" else nodes.self_weight
        if order == "total":
            values = nodes.total_weight
        ends.sort(key=lambda number: (-values[number], number))
        shown = ends[:limit]
        found = [
            WholeStack(nodes.path(number), nodes.self_weight[number], nodes.self_count[number], nodes.stack_id[number])
            for number in shown
        ]
        if order == "name":
            found.sort(key=lambda one: [function.name for function in one.functions])
        return found, len(ends)

    def view(self, pattern: str, request: TreeRequest = TreeRequest(), limit: int | None = None) -> list[FunctionView]:
        """Functions that match a pattern, the heaviest first, each with its callers and callees.

        A call by itself is not a caller: trees begin at the outermost call of the function.

        Raises:
            UsageError: No function on the stacks matches.
        """
        views = []
        for group, number in self._matching(pattern)[:limit]:
            tiers = [row for row in self._rows(self._whole_tree, "tiered") if _is_same(row, group)]
            trees = [self._around(number, inverted, request) for inverted in (True, False)]
            assert group.function is not None
            names = dict.fromkeys(row["tier"] for row in tiers if row["tier"])
            views.append(FunctionView(group.function, tuple(names), group.weight, *trees))
        return views

    def matching(self, pattern: str) -> list[Group]:
        """Functions that match a pattern, those with the greatest total first.

        Raises:
            UsageError: None matches.
        """
        return [group for group, _ in self._matching(pattern)]

    def _matching(self, pattern: str) -> list[tuple[Group, int | None]]:
        """Functions, each with the number of the group of its symbols."""
        symbols = FrameSymbols(self._symbols, TablesOfStacks(self.source.tables))
        marked = symbols.matching(pattern)
        groups = {group for group, is_marked in zip(self._symbols["group_id"], marked, strict=True) if is_marked}
        found = [
            (group, number)
            for group, number in self._numbered_functions
            if number in groups and group.weight.total_weight + group.weight.total_count
        ]
        if groups and not found:
            hint = "samples with it are not among those that --event, --between, --thread, --process and filters leave"
            raise UsageError(f"no selected sample has a function on its stack that matches {pattern!r}", hint=hint)
        if not found:
            bare = FramePattern.parse(pattern).pattern.strip("/*")
            hint = nearest_hint(bare, symbols.function_names())
            raise UsageError(f"no function on a stack matches {pattern!r}", hint=hint)
        return sorted(found, key=lambda one: _group_key("total")(one[0]))

    def _around(self, number: int | None, inverted: bool, request: TreeRequest) -> StackTree:
        """Callers or callees of a function: the tree of the stacks that are cut at its outermost call."""
        transform = _core.StackTransform(TablesOfStacks(self.source.tables))
        marked = [group == number for group in self._symbols["group_id"]]
        for step in ("only", "leaf") if inverted else ("root",):
            transform.apply(step, marked)
        tables = dict(self.source.tables)
        tables["stacks"] = transform.table("stacks", False)
        tables["samples"] = transform.samples(self.source.tables["samples"], False)
        return self._shown(self._fold(tables, inverted=inverted), request, inverted)

    def _groups_of_tasks(self, by: str) -> list[Group]:
        if not len(Columns(self.source.tables["threads"])):
            raise UsageError(f"{self.event.name} sizes have no {by}", hint="a heap belongs to all threads of a process")
        if by == "command":
            # Sums have no time: they are of a thread's latest name.
            if not self.event.is_sum and _have_several_names(Columns(self.source.tables["thread_names"])):
                return self._groups_by_name()
            names = {task.thread_id: task.command for task in tasks(self.source)}
        else:
            names = task_names(self.source, "threads" if by == "thread" else "processes")
        sums: dict[str, list[int]] = {}
        keys: dict[str, int] = {}
        for row in self._rows(self._fold(split_threads=True), "thread"):
            name = names.get(row["thread_id"], "?")
            keys.setdefault(name, row["thread_id"])
            weights = sums.setdefault(name, [0, 0])
            weights[0] += row["self_weight"]
            weights[1] += row["self_samples"]
        return [
            Group(name, "", f"t{keys[name]}" if by == "thread" else None, None, Weight(weight, weight, count, count))
            for name, (weight, count) in sums.items()
        ]

    def _groups_by_name(self) -> list[Group]:
        """Samples by the name of their thread at their time."""
        return [_group_of_samples(name, *sums) for name, *sums in self._sums_of_samples("command", NAMED_SAMPLES)]

    def _groups_by_cpu(self) -> list[Group]:
        """Samples by the processor that they were taken on.

        Raises:
            UsageError: None was recorded.
        """
        sums = [] if self.event.is_sum else self._sums_of_samples("cpu", "FROM samples")
        if self.event.is_sum or (sums and all(cpu is None for cpu, *_ in sums)):
            hint = "`perf record --sample-cpu` records it; -a does, too"
            if self.event.is_sum:
                hint = "sums have none; without --event, recorded calls are grouped by their processors"
            raise UsageError(f"no processor was recorded for {self.event.name}", hint=hint)
        return [_group_of_samples("?" if cpu is None else f"cpu {cpu}", *weights) for cpu, *weights in sums]

    def _sums_of_samples(self, column: str, samples: str) -> list[tuple[Any, int, int]]:
        """Sums of weights, and numbers, of the samples of the event with each value of a column."""
        query = f"SELECT {column}, event::VARCHAR, sum(weight)::BIGINT, count(*) FROM ({samples}) GROUP BY ALL"
        rows = self.source.sql(query).fetchall()
        return [(value, weight, count) for value, event, weight, count in rows if event == self.event.name]

    @cached_property
    def _whole_tree(self) -> _core.CallTree:
        return self._fold()

    @cached_property
    def _symbols(self) -> Columns:
        return Columns(self._whole_tree.symbols())

    @cached_property
    def _numbered_functions(self) -> list[tuple[Group, int | None]]:
        """Functions, each with the number of the group of its symbols."""
        columns = ("name", "module", "path", "line", "function_id", "unnamed_because")
        numbers: dict[tuple[Any, ...], int] = {}
        for *key, number in zip(*(self._symbols[name] for name in (*columns, "group_id")), strict=True):
            numbers.setdefault(tuple(key), number)
        rows = self._rows(self._whole_tree, "function")
        return [(_group(row, "function"), numbers.get(tuple(row[name] for name in columns))) for row in rows]

    def _fold(self, tables: Mapping[str, Any] | None = None, **options: Any) -> _core.CallTree:
        source = self.source.tables if tables is None else tables
        return _core.call_tree(
            TablesOfStacks(source), event=self.event.name, counted_event=self._counted_event, **options
        )

    def _rows(self, tree: _core.CallTree, by: str) -> list[dict[str, Any]]:
        """The weights of a tree by group, with the numbers of what they are made of."""
        rows = list(Columns(tree.weights(by)).rows())
        if self._counts_weight:
            rows = [{**row, "self_samples": row["self_weight"], "total_samples": row["total_weight"]} for row in rows]
        return rows

    def _sum(self, tree: _core.CallTree) -> Weight:
        count = tree.total_weight if self._counts_weight else tree.total_samples
        return Weight(tree.total_weight, tree.total_weight, count, count)

    def _shown(self, tree: _core.CallTree, request: TreeRequest, inverted: bool) -> StackTree:
        nodes = _Nodes(tree, counts_weight=self._counts_weight)
        return _shown(nodes, self._sum(tree), request, inverted, self.whole.total_weight)


def _have_several_names(thread_names: Columns) -> bool:
    """Whether a thread has had several names."""
    return len(set(thread_names["thread_id"])) < len(thread_names)


def _is_same(row: Mapping[str, Any], group: Group) -> bool:
    """Whether a row, of a tier, is of a function."""
    function = group.function
    return (
        function is not None
        and (row["name"], row["module"]) == (function.name, function.module)
        and (row["function_id"] == function.function_id or (row["path"], row["line"]) == (function.path, function.line))
    )


def _function(row: Mapping[str, Any]) -> StackFunction:
    values = (
        row["name"] or "",
        row["function_id"],
        row["module"],
        row["kind"] or "",
        row["tier"],
        row["path"],
        row["line"],
    )
    return StackFunction(*values, row["origin"] == "inlined")


def _weight(row: Mapping[str, Any]) -> Weight:
    return Weight(row["self_weight"], row["total_weight"], row["self_samples"], row["total_samples"])


def _group_of_samples(name: str, weight: int, count: int) -> Group:
    return Group(name, "", None, None, Weight(weight, weight, count, count))


def _group(row: Mapping[str, Any], by: str) -> Group:
    function = _function(row) if by in ("function", "line") else None
    name = row["name"]
    if function is not None:
        return Group(function.name, function.kind, function.handle, function, _weight(row))
    return Group(name or NO_MODULE, row["kind"] or "", None, None, _weight(row))


def _lines(rows: Sequence[Mapping[str, Any]]) -> list[Group]:
    groups = []
    for row in rows:
        group = _group(row, "line")
        if group.function is not None:
            path, line = group.function.path, group.function.line
            place = f"{path}:{line}" if path and line else path or "[no line]"
            groups.append(replace(group, name=place))
    return groups


def _group_key(order: StackViewOrder) -> Callable[[Group], Any]:
    def key(one: Group) -> Any:
        weight = one.weight
        first = {
            "self": (-weight.self_weight, -weight.total_weight),
            "total": (-weight.total_weight, -weight.self_weight),
            "count": (-weight.self_count, -weight.self_weight),
            "name": (),
        }[order]
        line = (one.function.line or 0) if one.function else 0
        return (*first, one.name, (one.function.module or "") if one.function else "", line)

    return key


class _Nodes:
    """The nodes of a tree of the core, a list per column."""

    def __init__(self, tree: _core.CallTree, *, counts_weight: bool = False) -> None:
        columns = Columns(tree.nodes())
        self.parent: list[int | None] = columns["parent_node_id"]
        self.symbol: list[int] = columns["symbol_id"]
        self.stack_id: list[int | None] = columns["stack_id"]
        self.self_weight: list[int] = columns["self_weight"]
        self.total_weight: list[int] = columns["total_weight"]
        self.self_count: list[int] = self.self_weight if counts_weight else columns["self_samples"]
        self.total_count: list[int] = self.total_weight if counts_weight else columns["total_samples"]
        self._symbols = Columns(tree.symbols())
        self._functions: dict[int, StackFunction] = {}

    def __len__(self) -> int:
        return len(self.parent)

    def function(self, number: int) -> StackFunction:
        """The function of a node."""
        symbol = self.symbol[number]
        if symbol not in self._functions:
            columns = ("name", "function_id", "module", "kind", "tier", "path", "line", "origin")
            self._functions[symbol] = _function({name: self._symbols[name][symbol] for name in columns})
        return self._functions[symbol]

    def path(self, number: int) -> tuple[StackFunction, ...]:
        """The functions from the root to a node."""
        functions = []
        at: int | None = number
        while at is not None:
            functions.append(self.function(at))
            at = self.parent[at]
        return tuple(reversed(functions))

    def weight(self, number: int) -> Weight:
        """The weights of a node."""
        return Weight(
            self.self_weight[number], self.total_weight[number], self.self_count[number], self.total_count[number]
        )


def _shown(nodes: _Nodes, of: Weight, request: TreeRequest, inverted: bool, whole: int) -> StackTree:
    """The most important nodes of a tree with a weight, best first, so that they are connected."""
    children: dict[int | None, list[int]] = defaultdict(list)
    for number, parent in enumerate(nodes.parent):
        children[parent].append(number)
    weighs = nodes.total_count if request.order == "count" else nodes.total_weight
    least = request.percent_limit * whole / 100
    chosen: set[int] = set()
    open_nodes = [(-float(weighs[root]), root, 0) for root in children[None]]
    open_nodes.sort()
    while open_nodes and (request.limit is None or len(chosen) < request.limit):
        _, number, depth = heappop(open_nodes)
        if nodes.total_weight[number] < least or (request.depth is not None and depth >= request.depth):
            continue
        chosen.add(number)
        factor = DEPTH_FACTOR ** (depth + 1)
        for child in children[number]:
            heappush(open_nodes, (-weighs[child] * factor, child, depth + 1))
    shown: list[TreeNode] = []
    key = _child_key(nodes, request.order)
    stack: list[tuple[int, int | None, int]] = []

    def descend(parent: int | None, number: int | None, depth: int) -> int:
        """Queues the chosen children of a node; returns the weight of the others."""
        below = [child for child in children[parent] if child in chosen]
        stack.extend((child, number, depth) for child in sorted(below, key=key, reverse=True))
        return sum(nodes.total_weight[child] for child in children[parent]) - sum(
            nodes.total_weight[child] for child in below
        )

    left_of_roots = descend(None, None, 0)
    while stack:
        number, parent, depth = stack.pop()
        mine = len(shown)
        left = descend(number, mine, depth + 1)
        stack_id = None if inverted else nodes.stack_id[number]
        shown.append(TreeNode(mine, parent, depth, nodes.function(number), nodes.weight(number), stack_id, left))
    return StackTree(shown, len(nodes), of.total_weight, of.total_count, left_of_roots, inverted)


def _child_key(nodes: _Nodes, order: StackViewOrder) -> Callable[[int], Any]:
    if order == "name":
        return lambda number: (nodes.function(number).name, number)
    values: Sequence[int] = {
        "self": nodes.self_weight,
        "count": nodes.total_count,
    }.get(order, nodes.total_weight)
    return lambda number: (-values[number], number)
