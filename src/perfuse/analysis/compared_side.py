"""One side of a comparison: what is compared of each of its runs."""

from dataclasses import dataclass, replace
from typing import Any

from perfuse.analysis.function_graph import (
    RETAINED_STATISTICS,
    FunctionGraph,
    Grouping,
    empty_graph,
    function_graph,
)
from perfuse.analysis.run_selection import RunSelection
from perfuse.analysis.sampled import Event, events, nothing_selected, select_event
from perfuse.errors import UsageError
from perfuse.table import RETAINED, WEIGHTS


@dataclass(frozen=True, slots=True)
class Compared:
    """What is compared of each run.

    Attributes:
        by: What frames are grouped by.
        event: Name of an event; by default that of the first run.
        weight: One of `WEIGHTS`, or `RETAINED`, which stands for its event.
        edges: Whether calls of one function by another are compared.
        nodes: Whether call trees are compared.
        bins: Whether weights in equal parts of the recorded time are needed.
        per: The work that numbers are divided by.
    """

    by: Grouping = "function"
    event: str | None = None
    weight: str | None = None
    edges: bool = False
    nodes: bool = False
    bins: bool = False
    per: str | None = None

    @property
    def requested_event(self) -> str | None:
        """The event that `event` or `weight` names."""
        return self.event if self.weight is None else WEIGHTS.get(self.weight)

    def is_of_heap(self, profile: Any) -> bool:
        """Whether the retained sizes of a profile's last heap snapshot are compared."""
        if RETAINED in (self.weight, self.event):
            return True
        is_default = self.weight is None and self.event is None
        return is_default and profile.has("heap_snapshots") and not profile.has_traces and not events(profile)


@dataclass(frozen=True, slots=True)
class _Part:
    """The part of a run that is compared.

    Attributes:
        source: A profile, what a filter of stacks leaves of one, or retained sizes.
        event: The event of its samples.
        is_of_heap: Whether it is retained sizes.
        is_traced: Whether it is recorded calls.
        nothing_left_of: The event of which a filter leaves nothing.
    """

    source: Any
    event: str | None
    is_of_heap: bool = False
    is_traced: bool = False
    nothing_left_of: Event | None = None


class ComparedSide:
    """The runs of one side; of each profile only what is compared stays in memory.

    Attributes:
        selection: The filter of stacks, and what it selected so far.
        graphs: The functions of each run.
        trees: The call tree of each run; empty where they are not compared.
        units: The units of work of each run; empty where nothing is divided by them.
    """

    def __init__(self, compared: Compared, selection: RunSelection, first: FunctionGraph | None = None) -> None:
        """A side without runs; `first` is the first run of the other side, whose event is compared."""
        self.selection = selection
        self.graphs: list[FunctionGraph] = []
        self.trees: list[FunctionGraph] = []
        self.units: list[float] = []
        self._compared = compared
        self._first = first

    def add(self, profile: Any, run: str) -> FunctionGraph:
        """Adds a run, a profile without a filter of stacks, which errors call `run`; returns its functions.

        Raises:
            UsageError: The profile does not have what is compared.
        """
        compared = self._compared
        try:
            part = self._selected(profile)
            graph = self._graph(part, compared.by)
        except UsageError as error:
            raise self._without_event(error, profile, run) from error
        self.graphs.append(graph)
        if compared.nodes:
            self.trees.append(graph if graph.nodes is not None else self._graph(part, "function", nodes=True))
        if compared.per is not None:
            from perfuse.analysis.work import units_of_work

            self.units.append(units_of_work(profile, compared.per))
        self._first = self._first or graph
        return graph

    def _selected(self, profile: Any) -> _Part:
        """What is compared of a profile."""
        event = self._compared.requested_event
        is_of_heap = self._compared.is_of_heap(profile)
        source = profile
        if is_of_heap:
            from perfuse.analysis.heap import selected_retained_sizes

            source, event = selected_retained_sizes(profile), None
        elif event is None and self._first is not None and not profile.has_traces:
            event = self._first.event
        if not self.selection.stack_filter:
            is_traced = profile.has_traces and event is None and not is_of_heap
            return _Part(source, event, is_of_heap=is_of_heap, is_traced=is_traced)
        whole = select_event(source, event)
        selected = self.selection.select(source, whole)
        if selected is None:
            return _Part(source, whole.name, nothing_left_of=whole)
        return _Part(selected, whole.name, is_of_heap=is_of_heap)

    def _graph(self, part: _Part, by: Grouping, *, nodes: bool = False) -> FunctionGraph:
        """The functions of a run; `nodes` is for the call tree of recorded calls, which is that of their times."""
        if part.nothing_left_of is not None:
            return empty_graph(part.source.title, part.nothing_left_of)
        compared = self._compared
        if part.is_of_heap and by == "type":
            by = "function"  # All frames of retained sizes are types.
        nodes = nodes or (compared.nodes and by == "function" and not part.is_traced)
        graph = function_graph(part.source, part.event, edges=compared.edges, by=by, nodes=nodes, bins=compared.bins)
        if part.is_of_heap:
            # Its samples are paths, whose number says nothing of that of objects.
            graph = replace(graph, statistics=RETAINED_STATISTICS)
        if by == "type" and not graph.functions and (graph.num_counted or graph.whole):
            raise UsageError(
                f"{graph.event or 'what was recorded'} has no types",
                field="by",
                hint="types are those of allocations (--weight bytes) and of heap snapshots (--weight retained)",
            )
        return graph

    def _without_event(self, error: UsageError, profile: Any, run: str) -> UsageError:
        """The error for a run without the compared event, which names its side; `error` where that is not wrong."""
        first = None if self._first is None else self._first.event
        event = self._compared.requested_event or first
        names = [one.name for one in events(profile)]
        if error.field != "event" or event is None or event in names:
            return error
        run_text = f"{self.selection.side} ({run})"
        if (left := nothing_selected(profile, event or None)) is not None:
            return UsageError(f"{run_text}: {left}", field="event", hint=left.hint)
        has = f"{run_text} has {', '.join(names) or 'no samples'}"
        if not event:
            return UsageError("A has no samples that could be compared", field="event", hint=has)
        of_first = ", the event of A" if first == event else ""
        joined = "files of one run are joined with +: perf.data+jit-1.dump"
        choice = "; --event NAME compares an event that both sides have" if names else f"; {joined}"
        return UsageError(
            f"{run_text} has no samples of event {event!r}{of_first}", field="event", hint=f"{has}{choice}"
        )
