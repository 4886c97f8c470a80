"""Functions and calls with their numbers, from traces or from samples alike: for what draws or compares them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from perfuse.analysis.callgraph import CallGraph
from perfuse.analysis.latency import CallAccount, Latency
from perfuse.analysis.sampled import Selection, chosen_event
from perfuse.analysis.sampled_graph import SampledGraph, Weight

Statistic = Literal["count", "self", "sum", "total", "min", "median", "p90", "p99", "max"]
STATISTICS: tuple[str, ...] = get_args(Statistic)
OF_SAMPLES: tuple[str, ...] = ("count", "self", "total")

Values = Mapping[str, int | None]
"""Numbers by statistic: `count` is calls, or samples with it on their stack; all others are in the unit."""


@dataclass(frozen=True, slots=True)
class MeasuredFunction:
    """A function with its numbers.

    Attributes:
        name: Its name.
        module: File it is in.
        path: Source file.
        line: Line in it, from 1.
        values: Its numbers.
    """

    name: str
    module: str | None
    path: str | None
    line: int | None
    values: Values


@dataclass(frozen=True, slots=True)
class Measured:
    """What a profile tells of functions and of who called whom.

    Attributes:
        title: What was recorded.
        kind: What it was told from.
        event: Which event's samples; None for calls.
        unit: What all but `count` is in: `ns`, `events` or `calls`.
        statistics: Which numbers there are.
        num_counted: Calls, or samples, in all.
        whole: Sum of `self` of all functions.
        functions: By a key that means nothing elsewhere, in the order in which the recording numbers them.
        edges: Numbers of the calls of one function by another, by the keys of caller and callee.
    """

    title: str
    kind: Literal["calls", "samples"]
    event: str | None
    unit: str
    statistics: tuple[str, ...]
    num_counted: int
    whole: int
    functions: dict[int, MeasuredFunction]
    edges: dict[tuple[int, int], Values] = field(default_factory=dict)


def measured(profile: Any, event: str | None = None, *, edges: bool = False) -> Measured:
    """Functions, and calls of one by another where `edges`: of traced calls where there are any, else of samples.

    Args:
        profile: Where to look.
        event: Look at the samples of this event instead.
        edges: Whether calls of one by another are wanted too.

    Raises:
        UsageError: The profile has no such event.
    """
    return _traced(profile, edges) if profile.has_traces and event is None else _sampled(profile, event)


def _traced(profile: Any, edges: bool) -> Measured:
    account = CallAccount(profile, edges=edges)
    rows = account.functions(order="name")
    rows.sort(key=lambda one: (one.function.native_id or 0, one.function.function_id))
    functions = {}
    for one in rows:
        known = one.function
        values = _of_calls(one.latency)
        functions[known.function_id] = MeasuredFunction(known.name, known.module, known.path, known.line, values)
    calls = CallGraph(account).edges() if edges else []
    return Measured(
        profile.title,
        "calls",
        None,
        "ns",
        STATISTICS,
        account.totals.num_calls,
        sum(one.latency.self_ns for one in rows),
        functions,
        # Nobody is known to have called what a thread began with.
        {
            (one.caller.function_id, one.callee.function_id): _of_calls(one.latency)
            for one in calls
            if one.caller is not None
        },
    )


def _sampled(profile: Any, event: str | None) -> Measured:
    chosen = chosen_event(profile, event)
    graph = SampledGraph(profile, Selection(event=chosen.name))
    functions = {}
    for key, weight in graph.functions.items():
        name, module, path, line, _ = graph.symbols[key]
        functions[key] = MeasuredFunction(name, module, path, line, _of_samples(weight))
    edges = {ends: _of_samples(weight) for ends, weight in graph.edges.items()}
    return Measured(
        profile.title,
        "samples",
        chosen.name,
        chosen.unit,
        OF_SAMPLES,
        chosen.num_samples,
        graph.whole,
        functions,
        edges,
    )


def _of_calls(one: Latency) -> Values:
    return {name: getattr(one, "num_calls" if name == "count" else f"{name}_ns") for name in STATISTICS}


def _of_samples(one: Weight) -> Values:
    return {"count": one.total_samples, "self": one.self_weight, "total": one.total_weight}
