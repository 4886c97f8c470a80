"""The call graph for Graphviz: boxes are functions, arrows are calls, warm is where the time goes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any, Literal

from perfuse.analysis.measured import Measured, MeasuredFunction, Values, measured
from perfuse.errors import ExportError, UsageError
from perfuse.exporters.dot_text import Edge, Node, dot_lines, heat
from perfuse.reports.measured_text import everything_text, value_text, where_text
from perfuse.reports.names import function_text
from perfuse.reports.units import counted, percent_text

Told = Literal["none", "count", "self", "sum", "total", "min", "median", "p90", "p99", "max"]


@dataclass(frozen=True, slots=True)
class Choice:
    """What labels and colours tell."""

    node_label: str
    node_color: str
    edge_label: str
    edge_color: str


def write(
    profile: Any,
    out: IO[bytes],
    *,
    node_label: Told = "self",
    node_color: Told = "self",
    edge_label: Told = "count",
    edge_color: Told = "total",
    min_share: float = 0.005,
    event: str | None = None,
) -> None:
    """Writes a directed graph, of traced calls where there are any, else of samples; `dot -Tsvg` makes a picture of it.

    Samples have no durations of single calls: of the statistics they know `count`, `self` and `total`.

    Args:
        profile: What to write.
        out: Where to.
        node_label: What boxes tell beside names.
        node_color: What boxes are coloured by.
        edge_label: What arrows tell.
        edge_color: What the colour and width of arrows are.
        min_share: Functions and calls with less than this share (0 to 1) of the whole on the stack are left out.
        event: Draw the samples of this event.

    Raises:
        UsageError: An option has no such value; the profile has no such event.
        ExportError: There are neither calls nor samples.
    """
    if not 0 <= min_share < 1:
        raise UsageError(f"min_share is from 0 to 1, not {min_share}", field="min_share")
    graph = measured(profile, event, edges=True)
    if not graph.functions:
        raise ExportError("there are neither calls nor samples with a stack")
    choice = Choice(node_label, node_color, edge_label, edge_color)
    for option, told in (("node_label", node_label), ("node_color", node_color), ("edge_label", edge_label),
                         ("edge_color", edge_color)):  # fmt: skip
        if told not in (*graph.statistics, "none"):
            known = ", ".join(("none", *graph.statistics))
            raise UsageError(f"{option} of {graph.kind} is one of {known}, not {told!r}", field=option)
    for line in _lines(graph, choice, min_share):
        out.write(line.encode("utf-8", "backslashreplace") + b"\n")


def _lines(graph: Measured, choice: Choice, min_share: float) -> Iterator[str]:
    least = min_share * graph.whole
    kept = {key: one for key, one in graph.functions.items() if (one.values["total"] or 0) >= least}
    shown = {
        (caller, callee): values
        for (caller, callee), values in graph.edges.items()
        if caller in kept and callee in kept and (values["total"] or 0) >= least
    }
    warmest = _most((one.values for one in kept.values()), choice.node_color)
    heaviest = _most(shown.values(), choice.edge_color)
    nodes = (
        Node(
            f"f{key}",
            (function_text(one.name), *_node_label(one, choice.node_label, graph)),
            "\n".join(filter(None, (one.name, where_text(one), everything_text(one.values, graph)))),
            heat(_value(one.values, choice.node_color) / warmest),
        )
        for key, one in kept.items()
    )
    arrows = (
        Edge(
            f"f{caller}",
            f"f{callee}",
            "" if choice.edge_label == "none" else value_text(values, choice.edge_label, graph),
            f"{kept[caller].name} calls {kept[callee].name}\n{everything_text(values, graph)}",
            _value(values, choice.edge_color) / heaviest,
        )
        for (caller, callee), values in shown.items()
    )
    return dot_lines(graph.title, _notes(graph, len(kept), min_share), nodes, arrows)


def _node_label(one: MeasuredFunction, statistic: str, graph: Measured) -> tuple[str, ...]:
    if statistic == "none":
        return ()
    told = value_text(one.values, statistic, graph)
    if statistic in ("self", "total"):
        told += f" ({percent_text(_value(one.values, statistic), graph.whole)})"
    return (told if statistic in ("self", "count") else f"{statistic} {told}",)


def _notes(graph: Measured, num_kept: int, min_share: float) -> list[str]:
    noun = graph.kind.removesuffix("s")
    whole = value_text({"self": graph.whole}, "self", graph)
    of = f" of {graph.event}" if graph.event else ""
    notes = [f"{counted(graph.num_counted, noun)}{of}, {counted(len(graph.functions), 'function')}, {whole}"]
    if num_kept < len(graph.functions):
        left = counted(len(graph.functions) - num_kept, "function")
        notes.append(f"{left} with less than {min_share:.2%} of it left out")
    return notes


def _most(values: Iterable[Values], statistic: str) -> int:
    """The greatest value, to divide by."""
    return max((_value(one, statistic) for one in values), default=0) or 1


def _value(values: Values, statistic: str) -> int:
    # A profiling-mode log has negative times where its runtime subtracted too much.
    return max(values.get(statistic) or 0, 0)
