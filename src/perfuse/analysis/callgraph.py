"""Who called whom, and over which paths: edges, stacks and the call tree of traced calls."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from perfuse.analysis.functions import Function, ThreadIds
from perfuse.analysis.latency import CallAccount, Latency, latencies_of, matcher, ordering
from perfuse.errors import UsageError
from perfuse.table import Columns, smallest_rows

StackOrder = Literal["self", "total", "count"]


@dataclass(frozen=True, slots=True)
class CallEdge:
    """Calls of one function by another.

    Attributes:
        caller: Who called; None where nobody is known to: the outermost calls of threads.
        callee: Who was called.
        latency: How many calls, and how long the callee took.
    """

    caller: Function | None
    callee: Function
    latency: Latency


@dataclass(frozen=True, slots=True)
class CallStack:
    """Calls that had the same functions around them.

    Attributes:
        functions: The functions, outermost first.
        num_calls: Calls of the innermost.
        total_ns: Time in them.
        self_ns: Time in them, without what they called.
    """

    functions: tuple[Function, ...]
    num_calls: int
    total_ns: int
    self_ns: int


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A place in the call tree; `depth` is 0 at its roots."""

    function: Function
    depth: int
    num_calls: int
    total_ns: int
    self_ns: int


class CallGraph:
    """Edges of an account that was made with `edges=True`."""

    def __init__(self, account: CallAccount) -> None:
        self._names = account.names
        self._edges = Columns(account.statistics.edges())

    def edges(self, limit: int | None = None, *, order: str = "sum", pattern: str | None = None) -> list[CallEdge]:
        """Edges, those with the greatest value first.

        Args:
            limit: How many; None for all.
            order: By what: see `CallAccount.functions`.
            pattern: Only edges from or to functions of such names: see `matcher`.
        """
        rows = smallest_rows(self._rows(pattern), limit, ordering(self._edges, order, self._names))
        ends = self._edges.take(rows, ("caller_id", "function_id"))
        return [
            CallEdge(None if caller is None else self._names.function(caller), self._names.function(callee), latency)
            for (caller, callee), latency in zip(ends, latencies_of(self._edges, rows), strict=True)
        ]

    def num_edges(self, pattern: str | None = None) -> int:
        """How many rows `edges` has without a limit."""
        return sum(1 for _ in self._rows(pattern))

    def _rows(self, pattern: str | None) -> Iterator[int]:
        if pattern is None:
            return iter(range(len(self._edges)))
        matches = matcher(pattern)
        meant = {key for key in {*self._edges["function_id"]} if matches(self._names.name(key))}
        meant |= {key for key in {*self._edges["caller_id"]} - {None} if matches(self._names.name(key))}
        ends = zip(self._edges["caller_id"], self._edges["function_id"], strict=True)
        return (row for row, (caller, callee) in enumerate(ends) if caller in meant or callee in meant)


class CallPaths:
    """Call paths of an account that was made with `paths=True`.

    Args:
        account: Whose paths.
        thread: Only those of this thread; all threads' together where None.
    """

    def __init__(self, account: CallAccount, thread: ThreadIds | None = None) -> None:
        self._account = account
        self._thread = thread
        self._names = account.names

    @cached_property
    def whole_ns(self) -> int:
        """Time in all calls."""
        return sum(self._nodes.self_ns)

    def __len__(self) -> int:
        return len(self._nodes.parents)

    def top(
        self, limit: int | None = None, *, order: StackOrder = "self", pattern: str | None = None
    ) -> list[CallStack]:
        """The stacks that weigh most.

        Args:
            limit: How many; None for all.
            order: By time in the innermost function alone, with all it called, or by number of calls.
            pattern: Only stacks whose innermost function has such a name: see `matcher`.

        Raises:
            UsageError: There is no such order.
        """
        if order not in get_args(StackOrder):
            raise UsageError(f"order is one of {', '.join(get_args(StackOrder))}, not {order!r}", field="order")
        nodes = self._nodes
        values = {"self": nodes.self_ns, "total": nodes.total_ns, "count": nodes.num_calls}[order]
        rows: Iterable[int] = (row for row, value in enumerate(values) if value)
        if pattern is not None:
            matches, functions = matcher(pattern), nodes.functions
            meant = {key for key in {*functions} if matches(self._names.name(key))}
            rows = (row for row in rows if functions[row] in meant)
        chosen = smallest_rows(rows, limit, lambda row: (-values[row], row))
        return [
            CallStack(self._functions(row), nodes.num_calls[row], nodes.total_ns[row], nodes.self_ns[row])
            for row in chosen
        ]

    def tree(self, *, min_share: float = 0.01, max_depth: int | None = None) -> Iterator[TreeNode]:
        """The call tree, callers before what they called, the heaviest first.

        Args:
            min_share: Nodes lighter than this share (0 to 1) of the whole are left out.
            max_depth: Nodes below this depth are left out.
        """
        nodes = self._nodes
        least = min_share * self.whole_ns
        children: dict[int, list[int]] = defaultdict(list)
        for row, total in enumerate(nodes.total_ns):
            if total >= least:
                children[nodes.parents[row]].append(row)
        open_rows = [(row, 0) for row in sorted(children[-1], key=lambda row: nodes.total_ns[row])]
        while open_rows:
            row, depth = open_rows.pop()
            function = self._names.function(nodes.functions[row])
            yield TreeNode(function, depth, nodes.num_calls[row], nodes.total_ns[row], nodes.self_ns[row])
            if max_depth is None or depth < max_depth:
                below = sorted(children[row], key=lambda row: nodes.total_ns[row])
                open_rows += [(child, depth + 1) for child in below]

    def _functions(self, row: int) -> tuple[Function, ...]:
        functions = []
        while row >= 0:
            functions.append(self._names.function(self._nodes.functions[row]))
            row = self._nodes.parents[row]
        return tuple(reversed(functions))

    @cached_property
    def _nodes(self) -> "_Nodes":
        columns = Columns(self._account.statistics.paths())
        wanted = None if self._thread is None else self._thread.thread_id
        nodes = _Nodes()
        node_of: dict[int | None, int] = {None: -1}
        names = ("path_id", "parent_path_id", "function_id", "thread_id", "num_calls", "total_ns", "self_ns")
        for path, parent, function, thread, calls, total, own in zip(*map(columns.__getitem__, names), strict=True):
            if wanted is None or thread == wanted:
                if path not in node_of:
                    node_of[path] = nodes.new(node_of.get(parent, -1), function)
                nodes.add(node_of[path], calls, total, own)
        return nodes


class _Nodes:
    """Call paths, a list a column: paths are many. A parent comes before its children."""

    def __init__(self) -> None:
        self.parents: list[int] = []
        self.functions: list[int] = []
        self.num_calls: list[int] = []
        self.total_ns: list[int] = []
        self.self_ns: list[int] = []

    def new(self, parent: int, function: int) -> int:
        """One more node; its number."""
        self.parents.append(parent)
        self.functions.append(function)
        for numbers in (self.num_calls, self.total_ns, self.self_ns):
            numbers.append(0)
        return len(self.parents) - 1

    def add(self, node: int, num_calls: int, total_ns: int, self_ns: int) -> None:
        """Adds to a node what another thread did in it."""
        self.num_calls[node] += num_calls
        self.total_ns[node] += total_ns
        self.self_ns[node] += self_ns
