"""Graphs in Graphviz's language: https://graphviz.org/doc/info/lang.html."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from perfuse.exporters.palette import hexadecimal
from perfuse.reports.text import cut_middle, printable

_FONT = "Helvetica,Arial,sans-serif"
_LONGEST_LABEL = 60
_INK = "#24292f"
_QUIET = "#57606a"


@dataclass(frozen=True, slots=True)
class Node:
    """A box.

    Attributes:
        key: What edges name it by.
        lines: Its text; the first is its title.
        tooltip: What is told where the pointer rests on it, line by line.
        fill: Its colour, `#rrggbb`.
        attributes: Anything more Graphviz knows.
    """

    key: str
    lines: tuple[str, ...]
    tooltip: str
    fill: str
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Edge:
    """An arrow; `heat` is how heavy it is, 0 to 1."""

    tail: str
    head: str
    label: str
    tooltip: str
    heat: float
    attributes: dict[str, str] = field(default_factory=dict)


def dot_lines(title: str, notes: Iterable[str], nodes: Iterable[Node], edges: Iterable[Edge]) -> Iterator[str]:
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
        told = {"label": _escaped_lines(edge.label), "tooltip": _escaped_lines(edge.tooltip)}
        yield _statement(f"{edge.tail} -> {edge.head}", {**told, **drawn, **edge.attributes})
    yield "}"


def heat(share: float, hue: float = 65) -> str:
    """The colour of a box that has this share (0 to 1) of what is looked at: white, then more and more of the hue."""
    share = min(max(share, 0.0), 1.0)
    return hexadecimal(0.985 - 0.19 * share, 0.005 + 0.125 * share, hue)


def ink(share: float) -> str:
    """The colour of an arrow of that weight: grey, then a dark orange."""
    return hexadecimal(0.74 - 0.22 * share, 0.01 + 0.12 * share, 55)


def _statement(subject: str, attributes: dict[str, str]) -> str:
    told = ", ".join(f'{name}="{value}"' for name, value in attributes.items() if value)
    return f"  {subject} [{told}];"


def _escaped_lines(text: str) -> str:
    return r"\n".join(_escaped(line) for line in text.split("\n"))


def _escaped(text: str) -> str:
    # Graphviz reads entities in labels: an ampersand of a C++ reference must not begin one.
    return printable(text).replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
