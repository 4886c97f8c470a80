"""Durations of calls: exact statistics by function, thread and processor."""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, get_args

from perfuse.analysis.functions import Function, FunctionNames, ThreadIds
from perfuse.analysis.orders import ORDERS, Grouping, Order, Rank
from perfuse.analysis.profiles import CallProfile
from perfuse.errors import UsageError
from perfuse.filters.names import matcher
from perfuse.table import Columns, smallest_rows
from perfuse.value_class import field_names, value_class

_COLUMN_OF = {"count": "num_calls"}


@value_class
class Latency:
    """Number and durations of a group of calls. Times are in nanoseconds, None where no call has one.

    Attributes:
        num_calls: Number of calls.
        num_timed: Of them, those with known start and end: the statistics of durations are of these.
        min_ns: Shortest duration.
        median_ns: 50th percentile of the durations.
        p90_ns: 90th percentile.
        p99_ns: 99th percentile.
        max_ns: Longest duration.
        sum_ns: Sum of the durations; recursive calls are included each.
        self_ns: Time in the function itself, without the functions it called.
        total_ns: Time with the function on the stack, recursion counted once.
        recursive_calls: Calls made while the function was on the stack already.
        num_tail_calls: Calls that ended by jumping into another function.
        num_unwound: Calls that ended without an exit event, by an exception or `longjmp`; they have durations.
        num_truncated: Calls that were open at the end of the recording, without durations.
        num_lost: Calls that were open at its start, without durations.
        num_orphans: Exit events without an entry, within other calls.
    """

    num_calls: int
    num_timed: int
    min_ns: int | None
    median_ns: int | None
    p90_ns: int | None
    p99_ns: int | None
    max_ns: int | None
    sum_ns: int
    self_ns: int
    total_ns: int
    recursive_calls: int
    num_tail_calls: int
    num_unwound: int
    num_truncated: int
    num_lost: int
    num_orphans: int


LATENCY_COLUMNS = field_names(Latency)


@value_class
class FunctionLatency:
    """The calls of a function, in one thread or from one processor where they are grouped by these.

    Attributes:
        function: The function.
        thread: The thread; None for all.
        cpu: The processor; None for all, and where none was recorded.
        latency: Number and durations of the calls.
    """

    function: Function
    thread: ThreadIds | None
    cpu: int | None
    latency: Latency


@value_class
class ThreadActivity:
    """How long and how deep a thread was in calls.

    Attributes:
        thread: The thread.
        first_ns: Its first event, on the profile's clock; None where only sums were recorded.
        last_ns: Its last event.
        busy_ns: Time with any call open.
        num_events: Events recorded.
        num_calls: Calls.
        max_depth: Most calls open at a time.
        num_migrations: Changes of the processor.
    """

    thread: ThreadIds
    first_ns: int | None
    last_ns: int | None
    busy_ns: int
    num_events: int
    num_calls: int
    max_depth: int
    num_migrations: int


@value_class
class Migration:
    """Number of times a thread moved from one processor to another."""

    thread: ThreadIds
    from_cpu: int
    to_cpu: int
    num_migrations: int


@value_class
class Totals:
    """Totals of a trace.

    Attributes:
        num_events: Events recorded.
        num_calls: Calls reconstructed from them, without orphans.
        num_unwound: Of them, those without an exit event.
        num_truncated: Of them, those open at the end.
        num_lost: Of them, those open at the start.
        num_orphans: Exit events without an entry, within other calls.
        span_ns: First and last event; None where there are none.
    """

    num_events: int
    num_calls: int
    num_unwound: int
    num_truncated: int
    num_lost: int
    num_orphans: int
    span_ns: tuple[int, int] | None


class CallAccount:
    """Statistics of the calls of a profile, computed in one pass.

    A function that several recordings contain, or one several times, is one: name, module and declaration are equal.
    Of XRay logs, its number in the program is, too. Functions that have only a number are of their recording alone.

    Args:
        profile: The profile.
        by: Grouping of a function's calls: all together, by thread, or by the processor of their start.
        rank: Definition of percentiles: `nearest`, the smallest duration that so many percent of the calls do not
            exceed, or `llvm`, element `floor(n * p)` of the sorted durations, as in `llvm-xray account`.
        recursive_only: Only durations of calls made while their function was on the stack already.
        edges: Whether to compute edges, for `CallGraph`.
        paths: Whether to compute stacks, for `CallPaths`.

    Raises:
        UsageError: `by` or `rank` is unknown, or `rank` is `llvm` and the recording has sums of calls.
    """

    def __init__(
        self,
        profile: CallProfile,
        *,
        by: Grouping = "function",
        rank: Rank = "nearest",
        recursive_only: bool = False,
        edges: bool = False,
        paths: bool = False,
    ) -> None:
        for option, value, known in (("by", by, get_args(Grouping)), ("rank", rank, get_args(Rank))):
            if value not in known:
                raise UsageError(f"{option} is one of {', '.join(known)}, not {value!r}", field=option)
        if rank == "llvm" and profile.tables["call_sums"].num_rows:
            hint = "llvm-xray reads no recordings of sums; leave out --llvm-compat"
            raise UsageError("the statistics of llvm-xray need each call, and sums were recorded", hint=hint)
        self.names = FunctionNames(profile.tables)
        self.by: Grouping = by
        self.statistics = profile.call_statistics(
            by=by, rank=rank, recursive_only=recursive_only, edges=edges, paths=paths
        )

    @property
    def unit(self) -> str:
        """Unit of all times: `ns`, or `ticks` of an unknown rate."""
        return str(self._totals["unit"])

    @property
    def totals(self) -> Totals:
        """Totals of the trace."""
        known = self._totals
        span = None if known["first_ns"] is None else (known["first_ns"], known["last_ns"])
        counts = {name: known[name] for name in field_names(Totals) if name != "span_ns"}
        return Totals(**counts, span_ns=span)

    @cached_property
    def _totals(self) -> dict[str, Any]:
        (row,) = Columns(self.statistics.totals()).rows()
        return row

    def functions(
        self, limit: int | None = None, *, order: Order = "self", pattern: str | None = None
    ) -> list[FunctionLatency]:
        """Functions, those with the greatest value first.

        Args:
            limit: Largest number of rows; None for all.
            order: Statistic to sort by; `name` is from A to Z.
            pattern: Only functions of matching names: see `matcher`.
        """
        rows = smallest_rows(self._rows(pattern), limit, sort_key(self._functions, order, self.names))
        columns = self._functions
        latencies = latencies_of(columns, rows)
        functions = [self.names.function(key) for (key,) in columns.take(rows, ["function_id"])]
        threads = (
            [self.names.threads[row] for (row,) in columns.take(rows, ["thread_id"])] if self.by == "thread" else []
        )
        cpus = [cpu for (cpu,) in columns.take(rows, ["cpu"])] if self.by == "cpu" else []
        if cpus and all(cpu is None for cpu in cpus):
            raise UsageError("no processor was recorded", hint="XRay records it where it reads the processor's counter")
        return [
            FunctionLatency(function, threads[i] if threads else None, cpus[i] if cpus else None, latencies[i])
            for i, function in enumerate(functions)
        ]

    def num_functions(self, pattern: str | None = None) -> int:
        """Number of rows of `functions` without a limit."""
        return sum(1 for _ in self._rows(pattern))

    @property
    def num_called(self) -> int:
        """Number of functions."""
        return len({*self._functions["function_id"]})

    def threads(self) -> list[ThreadActivity]:
        """Threads, the busiest first."""
        columns = Columns(self.statistics.threads())
        names = (
            "thread_id",
            "first_ns",
            "last_ns",
            "busy_ns",
            "num_events",
            "num_calls",
            "max_depth",
            "num_migrations",
        )
        rows = columns.take(range(len(columns)), names)
        found = [ThreadActivity(self.names.threads[key], *rest) for key, *rest in rows]
        return sorted(found, key=lambda one: (-one.busy_ns, one.thread.pid, one.thread.tid))

    def migrations(self) -> list[Migration]:
        """Changes of the processor, the most frequent first."""
        columns = Columns(self.statistics.migrations())
        rows = columns.take(range(len(columns)), ("thread_id", "from_cpu", "to_cpu", "num_migrations"))
        found = [Migration(self.names.threads[key], *rest) for key, *rest in rows]
        return sorted(found, key=lambda one: (-one.num_migrations, one.thread.tid, one.from_cpu, one.to_cpu))

    def _rows(self, pattern: str | None) -> Iterator[int]:
        if pattern is None:
            return iter(range(len(self._functions)))
        matches, name = matcher(pattern), self.names.name
        return (row for row, key in enumerate(self._functions["function_id"]) if matches(name(key)))

    @cached_property
    def _functions(self) -> Columns:
        return Columns(self.statistics.functions())


def latencies_of(columns: Columns, rows: list[int]) -> list[Latency]:
    """The statistics of some rows of a table of the core."""
    return [Latency(*row) for row in columns.take(rows, LATENCY_COLUMNS)]


def sort_key(columns: Columns, order: str, names: FunctionNames) -> Callable[[int], Any]:
    """The sort key of rows of statistics.

    Raises:
        UsageError: There is no such order.
    """
    if order not in ORDERS:
        raise UsageError(f"order is one of {', '.join(ORDERS)}, not {order!r}", field="order")
    keys = columns["function_id"]
    if order == "name":
        return lambda row: (names.name(keys[row]), keys[row], row)
    values = columns[_COLUMN_OF.get(order, f"{order}_ns")]
    return lambda row: (-1 if values[row] is None else -values[row] - 2, row)
