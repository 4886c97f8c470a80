"""The difference of two profiles as one Graphviz call graph: functions with more time are red, with less green."""

from collections.abc import Iterable, Iterator, Mapping

from perfuse.analysis.diff import Change, Difference, FunctionChange
from perfuse.exporters.dot import DotEdge, DotNode, dot_lines, heat
from perfuse.exporters.palette import hexadecimal
from perfuse.filters.names import function_text
from perfuse.reports.diff import amount_text, change_text
from perfuse.reports.names import source_place, where_texts

MORE, LESS = 28.0, 152.0
"""Hues of increases and decreases."""
_STYLES = {"new": "bold", "gone": "dashed"}


def dot_diff_lines(difference: Difference, *, order: str = "self", min_share: float = 0.005) -> Iterator[str]:
    """The graph, line by line.

    Args:
        difference: The difference of two graphs with edges.
        order: The statistic of labels and colours.
        min_share: Functions and calls with less than this share (0 to 1) of the total time, in both profiles, are left
            out.
    """
    whole = max(difference.whole.base or 0, difference.whole.new or 0)
    least = min_share * whole
    shown = [one for one in difference.functions if _weight(one.figures) >= least]
    keys = {one.key for one in shown}
    edges = [
        one
        for one in difference.edges
        if one.caller.key in keys and one.callee.key in keys and _weight(one.figures) >= least
    ]
    most_of_nodes = _most((one.figures for one in shown), order)
    most_of_edges = _most((one.figures for one in edges), "total")
    places = where_texts([one.named for one in shown], source_place)
    nodes = (
        DotNode(
            f"f{one.key}",
            (function_text(one.named.name), _change(difference, one.figures, order), *_presence(one)),
            "\n".join(filter(None, (one.named.name, where, _everything(difference, one.figures)))),
            _fill(one.figures[order].difference / most_of_nodes),
            {"style": f"filled,rounded,{_STYLES[side]}"} if (side := _only_in(one)) else {},
        )
        for one, where in zip(shown, places, strict=True)
    )
    arrows = (
        DotEdge(
            f"f{one.caller.key}",
            f"f{one.callee.key}",
            _change(difference, one.figures, "count"),
            f"{one.caller.named.name} calls {one.callee.named.name}\n{_everything(difference, one.figures)}",
            _weight(one.figures) / (whole or 1),
            {"color": _ink(one.figures["total"].difference / most_of_edges)},
        )
        for one in edges
    )
    left_out = len(difference.functions) - len(shown)
    notes = [f"to: {difference.new.runs[0].title}", "red: more; green: less; bold: new; dashed: gone"]
    if left_out:
        notes.append(f"{left_out} functions with less than {min_share:.2%} of the time left out")
    return dot_lines(f"from: {difference.base.runs[0].title}", notes, nodes, arrows)


def _change(difference: Difference, figures: Mapping[str, Change], statistic: str) -> str:
    """`1.20 ms > 1.42 ms (+18.3%)`, or `1.20 ms (=)`"""
    unit, change = difference.unit, figures[statistic]
    base, new = (amount_text(value, statistic, unit) for value in (change.base, change.new))
    if change.base == change.new:
        return f"{base} (=)"
    _, ratio = change_text(change, statistic, unit)
    return f"{base} > {new} ({ratio})" if ratio else f"{base} > {new}"


def _everything(difference: Difference, figures: Mapping[str, Change]) -> str:
    return "\n".join(f"{name} {_change(difference, figures, name)}" for name in figures)


def _only_in(one: FunctionChange) -> str | None:
    """`new` or `gone` for a function that one side has."""
    return None if one.has_base and one.has_new else "gone" if one.has_base else "new"


def _presence(one: FunctionChange) -> tuple[str, ...]:
    side = _only_in(one)
    return (side,) if side else ()


def _weight(figures: Mapping[str, Change]) -> float:
    total = figures["total"]
    return max(total.base or 0, total.new or 0, 0)


def _most(figures: Iterable[Mapping[str, Change]], statistic: str) -> float:
    """The largest change, at least 1."""
    return max((abs(one[statistic].difference) for one in figures), default=0) or 1


def _fill(share: float) -> str:
    return heat(abs(share), MORE if share > 0 else LESS)


def _ink(share: float) -> str:
    return hexadecimal(0.74 - 0.16 * abs(share), 0.01 + 0.13 * abs(share), MORE if share > 0 else LESS)
