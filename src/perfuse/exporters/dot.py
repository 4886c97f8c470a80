"""The call graph in Graphviz's language, https://graphviz.org/doc/info/lang.html: boxes are functions, arrows calls."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any, Literal

from perfuse.analysis.function_graph import FunctionGraph, GraphFunction, StatisticValues, function_graph
from perfuse.analysis.sampled import nothing_selected
from perfuse.errors import ExportError, UsageError
from perfuse.exporters.contents import contents, note_other_events
from perfuse.exporters.palette import hexadecimal
from perfuse.reports.measured_text import everything_text, value_text
from perfuse.reports.names import function_texts, source_place, where_texts
from perfuse.reports.text import cut_middle, printable
from perfuse.reports.units import counted, percent_text

Label = Literal["none", "count", "self", "sum", "total", "min", "median", "p90", "p99", "max"]


@dataclass(frozen=True, slots=True)
class GraphStyle:
    """The statistics that labels and colours show."""

    node_label: str
    node_color: str
    edge_label: str
    edge_color: str


CONTENTS = contents(
    samples="sums of functions, and of who calls whom, of one event",
    calls="sums of functions, and of who calls whom",
    call_sums="sums of functions, and of who calls whom",
    allocations="sums of functions, and of who calls whom, of one event",
)


def write(
    profile: Any,
    out: IO[bytes],
    *,
    node_label: Label = "self",
    node_color: Label = "self",
    edge_label: Label = "count",
    edge_color: Label = "total",
    min_share: float = 0.005,
    event: str | None = None,
) -> None:
    """Writes a directed graph, of traced calls where there are any, else of samples; `dot -Tsvg` makes a picture of it.

    Samples have no durations of single calls: they have statistics `count`, `self` and `total`.

    Args:
        profile: The profile.
        out: A binary file object.
        node_label: Statistic in boxes, beside names.
        node_color: Statistic of the colour of boxes.
        edge_label: Statistic at arrows.
        edge_color: Statistic of the colour and width of arrows.
        min_share: Functions and calls with less than this share (0 to 1) of the whole on the stack are left out.
        event: Use the samples of this event.

    Raises:
        UsageError: An option has an invalid value; the profile has no such event.
        ExportError: There are neither calls nor samples.
    """
    if not 0 <= min_share < 1:
        raise UsageError(f"min_share is from 0 to 1, not {min_share}", field="min_share")
    graph = function_graph(profile, event, edges=True)
    if not graph.functions:
        if (left := nothing_selected(profile)) is not None:
            raise ExportError(str(left), hint=left.hint)
        raise ExportError(
            "there are neither calls nor samples with a stack", hint="`perfuse report` prints what was recorded"
        )
    if event is None:
        note_other_events(profile, graph.event or "wall-time")
    style = GraphStyle(node_label, node_color, edge_label, edge_color)
    for option, value in (("node_label", node_label), ("node_color", node_color), ("edge_label", edge_label),
                         ("edge_color", edge_color)):  # fmt: skip
        if value not in (*graph.statistics, "none"):
            names = ", ".join(("none", *graph.statistics))
            raise UsageError(f"{option} of {graph.kind} is one of {names}, not {value!r}", field=option)
    for line in _lines(graph, style, min_share):
        out.write(line.encode("utf-8", "backslashreplace") + b"\n")


def _lines(graph: FunctionGraph, style: GraphStyle, min_share: float) -> Iterator[str]:
    least = min_share * graph.whole
    drawn = {key: one for key, one in graph.functions.items() if (one.values["total"] or 0) >= least}
    shown = {
        (caller, callee): values
        for (caller, callee), values in graph.edges.items()
        if caller in drawn and callee in drawn and (values["total"] or 0) >= least
    }
    warmest = _most((one.values for one in drawn.values()), style.node_color)
    heaviest = _most(shown.values(), style.edge_color)
    texts = function_texts([one.name for one in drawn.values()])
    places = where_texts(list(drawn.values()), source_place)
    nodes = (
        DotNode(
            f"f{key}",
            (text, *_node_label(one, style.node_label, graph)),
            "\n".join(filter(None, (one.name, where, everything_text(one.values, graph)))),
            heat(_value(one.values, style.node_color) / warmest),
        )
        for (key, one), text, where in zip(drawn.items(), texts, places, strict=True)
    )
    arrows = (
        DotEdge(
            f"f{caller}",
            f"f{callee}",
            "" if style.edge_label == "none" else value_text(values, style.edge_label, graph),
            f"{drawn[caller].name} calls {drawn[callee].name}\n{everything_text(values, graph)}",
            _value(values, style.edge_color) / heaviest,
        )
        for (caller, callee), values in shown.items()
    )
    return dot_lines(graph.title, _notes(graph, len(drawn), min_share), nodes, arrows)


def _node_label(one: GraphFunction, statistic: str, graph: FunctionGraph) -> tuple[str, ...]:
    if statistic == "none":
        return ()
    label = value_text(one.values, statistic, graph)
    if statistic in ("self", "total"):
        label += f" ({percent_text(_value(one.values, statistic), graph.whole)})"
    return (label if statistic in ("self", "count") else f"{statistic} {label}",)


def _notes(graph: FunctionGraph, num_kept: int, min_share: float) -> list[str]:
    noun = graph.kind.removesuffix("s")
    whole = value_text({"self": graph.whole}, "self", graph)
    of = f" of {graph.event}" if graph.event else ""
    notes = [f"{counted(graph.num_counted, noun)}{of}, {counted(len(graph.functions), 'function')}, {whole}"]
    if num_kept < len(graph.functions):
        left = counted(len(graph.functions) - num_kept, "function")
        notes.append(f"{left} with less than {min_share:.2%} of it left out")
    return notes


def _most(values: Iterable[StatisticValues], statistic: str) -> int:
    """The largest value, at least 1."""
    return max((_value(one, statistic) for one in values), default=0) or 1


def _value(values: StatisticValues, statistic: str) -> int:
    return values.get(statistic) or 0


_FONT = "Helvetica,Arial,sans-serif"
_LONGEST_LABEL = 60
_INK = "#24292f"
_QUIET = "#57606a"


@dataclass(frozen=True, slots=True)
class DotNode:
    """A box of a graph.

    Attributes:
        key: Its identifier in edges.
        lines: Its text; the first line is its title.
        tooltip: Text of its tooltip.
        fill: Its colour, `#rrggbb`.
        attributes: Further Graphviz attributes.
    """

    key: str
    lines: tuple[str, ...]
    tooltip: str
    fill: str
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DotEdge:
    """An arrow of a graph; `heat` is its relative weight, 0 to 1."""

    tail: str
    head: str
    label: str
    tooltip: str
    heat: float
    attributes: dict[str, str] = field(default_factory=dict)


def dot_lines(title: str, notes: Iterable[str], nodes: Iterable[DotNode], edges: Iterable[DotEdge]) -> Iterator[str]:
    """A directed graph, line by line; every text is escaped."""
    yield "digraph calls {"
    caption = r"\l".join(_escaped(line) for line in (title, *notes)) + r"\l"
    yield f'  graph [label="{caption}", labelloc="t", labeljust="l", fontname="{_FONT}", fontsize="11", ' + (
        f'fontcolor="{_QUIET}", ranksep="0.35", nodesep="0.25"];'
    )
    yield f'  node [shape="box", style="filled,rounded", fontname="{_FONT}", fontsize="10", fontcolor="{_INK}", ' + (
        'color="#d0d7de", margin="0.12,0.06"];'
    )
    yield f'  edge [fontname="{_FONT}", fontsize="8", fontcolor="{_QUIET}", arrowsize="0.6"];'
    for node in nodes:
        label = r"\n".join(_escaped(cut_middle(printable(line), _LONGEST_LABEL)) for line in node.lines)
        yield _statement(
            node.key,
            {"label": label, "tooltip": _escaped_lines(node.tooltip), "fillcolor": node.fill, **node.attributes},
        )
    for edge in edges:
        drawn = {"penwidth": f"{0.6 + 3.4 * edge.heat:.2f}", "color": ink(edge.heat)}
        text = {"label": _escaped_lines(edge.label), "tooltip": _escaped_lines(edge.tooltip)}
        yield _statement(f"{edge.tail} -> {edge.head}", {**text, **drawn, **edge.attributes})
    yield "}"


def heat(share: float, hue: float = 65) -> str:
    """The colour of a box with this share (0 to 1) of the total: from white to the hue."""
    share = min(max(share, 0.0), 1.0)
    return hexadecimal(0.985 - 0.19 * share, 0.005 + 0.125 * share, hue)


def ink(share: float) -> str:
    """The colour of an arrow with this relative weight (0 to 1): from grey to dark orange."""
    return hexadecimal(0.74 - 0.22 * share, 0.01 + 0.12 * share, 55)


def _statement(subject: str, attributes: dict[str, str]) -> str:
    text = ", ".join(f'{name}="{value}"' for name, value in attributes.items() if value)
    return f"  {subject} [{text}];"


def _escaped_lines(text: str) -> str:
    return r"\n".join(_escaped(line) for line in text.split("\n"))


def _escaped(text: str) -> str:
    # Graphviz reads entities in labels: an ampersand of a C++ reference must not begin one.
    return printable(text).replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
