"""The call graph of traced calls: edges and stacks."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import accumulate, takewhile
from typing import Literal, get_args

from perfuse.analysis.functions import Function, ThreadIds
from perfuse.analysis.latency import CallAccount, Latency, latencies_of, sort_key
from perfuse.errors import UsageError
from perfuse.filters.names import matcher
from perfuse.table import Columns, smallest_rows
from perfuse.value_class import value_class

StackOrder = Literal["self", "total", "count"]


@value_class
class CallEdge:
    """Calls of one function by another.

    Attributes:
        caller: The calling function; None for the outermost calls of threads.
        callee: The called function.
        latency: Number of calls, and durations of the callee.
    """

    caller: Function | None
    callee: Function
    latency: Latency


@value_class
class CallStack:
    """Calls with the same functions on the stack.

    Attributes:
        functions: The functions, outermost first.
        num_calls: Calls of the innermost function.
        total_ns: Time in these calls.
        self_ns: Time in these calls, without the calls they made.
    """

    functions: tuple[Function, ...]
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
            limit: Largest number of rows; None for all.
            order: Statistic to sort by: see `CallAccount.functions`.
            pattern: Only edges from or to functions of matching names: see `matcher`.
        """
        rows = smallest_rows(self._rows(pattern), limit, sort_key(self._edges, order, self._names))
        ends = self._edges.take(rows, ("caller_id", "function_id"))
        return [
            CallEdge(None if caller is None else self._names.function(caller), self._names.function(callee), latency)
            for (caller, callee), latency in zip(ends, latencies_of(self._edges, rows), strict=True)
        ]

    def num_edges(self, pattern: str | None = None) -> int:
        """Number of rows of `edges` without a limit."""
        return sum(1 for _ in self._rows(pattern))

    def _rows(self, pattern: str | None) -> Iterator[int]:
        if pattern is None:
            return iter(range(len(self._edges)))
        matches = matcher(pattern)
        matching = {key for key in {*self._edges["function_id"]} if matches(self._names.name(key))}
        matching |= {key for key in {*self._edges["caller_id"]} - {None} if matches(self._names.name(key))}
        ends = zip(self._edges["caller_id"], self._edges["function_id"], strict=True)
        return (row for row, (caller, callee) in enumerate(ends) if caller in matching or callee in matching)


class CallPaths:
    """Call paths of an account that was made with `paths=True`.

    Args:
        account: The account.
        thread: Only paths of this thread; None for the sums of all threads.
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
        self,
        limit: int | None = None,
        *,
        order: StackOrder = "self",
        pattern: str | None = None,
        most_functions: int | None = None,
    ) -> list[CallStack]:
        """The stacks with the greatest values.

        Args:
            limit: Largest number of rows; None for all.
            order: By time in the innermost function alone, with all it called, or by number of calls.
            pattern: Only stacks whose innermost function has a matching name: see `matcher`.
            most_functions: Largest number of functions of all rows together, of which the first row may have more: the
                stacks of a recursion of depth n have n²/2. None for all.

        Raises:
            UsageError: There is no such order.
        """
        if order not in get_args(StackOrder):
            raise UsageError(f"order is one of {', '.join(get_args(StackOrder))}, not {order!r}", field="order")
        nodes = self._nodes
        values = {"self": nodes.self_ns, "total": nodes.total_ns, "count": nodes.num_calls}[order]
        rows: Iterable[int] = range(len(values))
        if pattern is not None:
            matches, functions = matcher(pattern), nodes.functions
            matching = {key for key in {*functions} if matches(self._names.name(key))}
            rows = (row for row in rows if functions[row] in matching)
        selected = smallest_rows(rows, limit, lambda row: (-values[row], row))
        if most_functions is not None:
            depths = nodes.depths()
            sums = accumulate(depths[row] for row in selected)
            selected = selected[: max(1, sum(1 for _ in takewhile(most_functions.__ge__, sums)))]
        return [
            CallStack(self._functions(row), nodes.num_calls[row], nodes.total_ns[row], nodes.self_ns[row])
            for row in selected
        ]

    def _functions(self, row: int) -> tuple[Function, ...]:
        functions = []
        while row >= 0:
            functions.append(self._names.function(self._nodes.functions[row]))
            row = self._nodes.parents[row]
        return tuple(reversed(functions))

    @cached_property
    def _nodes(self) -> "_PathNodes":
        columns = Columns(self._account.statistics.paths())
        thread_id = None if self._thread is None else self._thread.thread_id
        nodes = _PathNodes()
        node_of: dict[int | None, int] = {None: -1}
        names = ("path_id", "parent_path_id", "function_id", "thread_id", "num_calls", "total_ns", "self_ns")
        for path, parent, function, thread, calls, total, own in zip(*map(columns.__getitem__, names), strict=True):
            if thread_id is None or thread == thread_id:
                if path not in node_of:
                    node_of[path] = nodes.new(node_of.get(parent, -1), function)
                nodes.add(node_of[path], calls, total, own)
        return nodes


class _PathNodes:
    """Call paths, a list per column, as there are many. A parent precedes its children."""

    def __init__(self) -> None:
        self.parents: list[int] = []
        self.functions: list[int] = []
        self.num_calls: list[int] = []
        self.total_ns: list[int] = []
        self.self_ns: list[int] = []

    def depths(self) -> list[int]:
        """Number of functions of each path."""
        depths: list[int] = []
        for parent in self.parents:
            depths.append(1 if parent < 0 else depths[parent] + 1)
        return depths

    def new(self, parent: int, function: int) -> int:
        """Appends a node, and returns its number."""
        self.parents.append(parent)
        self.functions.append(function)
        for numbers in (self.num_calls, self.total_ns, self.self_ns):
            numbers.append(0)
        return len(self.parents) - 1

    def add(self, node: int, num_calls: int, total_ns: int, self_ns: int) -> None:
        """Adds the calls of a thread to a node."""
        self.num_calls[node] += num_calls
        self.total_ns[node] += total_ns
        self.self_ns[node] += self_ns
