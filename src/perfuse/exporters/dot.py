"""The call graph for Graphviz: boxes are functions, arrows are calls, warm is where the time goes."""

from dataclasses import dataclass
from typing import IO, Any, Literal

from perfuse.analysis.callgraph import CallGraph
from perfuse.analysis.latency import CallAccount
from perfuse.errors import UsageError
from perfuse.exporters.dot_text import Edge, Node, dot_lines, heat
from perfuse.reports.latency_text import where_text
from perfuse.reports.names import function_text
from perfuse.reports.units import counted, duration_text

Statistic = Literal["none", "count", "self", "sum", "total", "min", "median", "p90", "p99", "max"]

_OF_CALLS = {"count": "num_calls"}
_OF_SAMPLES = {"count": "total_samples", "self": "self_weight", "sum": "total_weight", "total": "total_weight"}
_BACK = "root"


@dataclass(frozen=True, slots=True)
class Choice:
    """What labels and colours tell."""

    node_label: Statistic
    node_color: Statistic
    edge_label: Statistic
    edge_color: Statistic


def write(
    profile: Any,
    out: IO[bytes],
    *,
    node_label: Statistic = "self",
    node_color: Statistic = "self",
    edge_label: Statistic = "count",
    edge_color: Statistic = "sum",
    min_share: float = 0.005,
    event: str | None = None,
) -> None:
    """Writes a directed graph, of traced calls where there are any, else of samples: `dot -Tsvg calls.dot -o calls.svg`.

    Samples have no durations of single calls: of the statistics they know `count`, `self`, `sum` and `total`.

    Args:
        profile: What to write.
        out: Where to.
        node_label: What boxes tell beside names.
        node_color: What boxes are coloured by.
        edge_label: What arrows tell.
        edge_color: What the colour and width of arrows are.
        min_share: Functions and edges with less than this share (0 to 1) of the whole time are left out.
        event: Draw the samples of this event.

    Raises:
        UsageError: An option has no such value; the profile has no such event.
        ExportError: There are neither calls nor samples.
    """
    choice = Choice(node_label, node_color, edge_label, edge_color)
    if not 0 <= min_share < 1:
        raise UsageError(f"min_share is from 0 to 1, not {min_share}", field="min_share")
    make = traced_lines if profile.has_calls and event is None else sampled_lines
    for line in make(profile, choice, min_share, event):
        out.write(line.encode("utf-8", "backslashreplace") + b"\n")


def traced_lines(profile: Any, choice: Choice, min_share: float, _event: None) -> Any:
    """The graph of traced calls."""
    account = CallAccount(profile, edges=True)
    functions = account.functions()
    edges = CallGraph(account).edges()
    whole = sum(one.latency.self_ns for one in functions)
    kept = {one.function.function_id: one for one in functions if one.latency.total_ns >= min_share * whole}
    most_of_nodes = _most((one.latency for one in kept.values()), choice.node_color)
    nodes = [
        Node(
            f"f{key}",
            (function_text(one.function.name), *_statistics(one.latency, choice.node_label, whole)),
            f"{one.function.name}\n{where_text(one.function)}\n{_everything(one.latency)}",
            heat(_value(one.latency, choice.node_color) / most_of_nodes),
        )
        for key, one in kept.items()
    ]
    shown = [
        one
        for one in edges
        if one.callee.function_id in kept
        and (one.caller is not None and one.caller.function_id in kept)
        and one.latency.total_ns >= min_share * whole
    ]
    most_of_edges = _most((one.latency for one in shown), choice.edge_color)
    arrows = [
        Edge(
            f"f{one.caller.function_id}",
            f"f{one.callee.function_id}",
            " ".join(_statistics(one.latency, choice.edge_label, 0)),
            f"{one.caller.name} calls {one.callee.name}\n{_everything(one.latency)}",
            _value(one.latency, choice.edge_color) / most_of_edges,
        )
        for one in shown
        if one.caller is not None
    ]
    totals = account.totals
    notes = [f"{counted(totals.num_calls, 'call')} of {counted(len(functions), 'function')}, {duration_text(whole)}"]
    return dot_lines(profile.title, notes + _left_out(len(functions) - len(kept), min_share), nodes, arrows)
