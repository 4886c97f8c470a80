"""Stacks and call trees for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from perfuse.analysis.callgraph import CallStack
from perfuse.analysis.functions import Function
from perfuse.reports.calls import CallTree, StackList
from perfuse.reports.grid import Cell, Column, grid
from perfuse.reports.names import function_text
from perfuse.reports.style import Role, Style
from perfuse.reports.text import ELLIPSIS, cell_width, cut, printable
from perfuse.reports.units import count_text, duration_text, percent_text

ARROW = " → "
INDENT_MOST = 40
"""A call tree goes no further to the right than this; deeper nodes tell their depth by a number."""


def stack_lines(top: StackList, style: Style, time: Callable[[int], str] = duration_text) -> Iterator[str]:
    """A line a stack: the innermost functions, and the outermost, as far as there is room."""
    numbers = [
        [time(one.self_ns), percent_text(one.self_ns, top.whole_ns), count_text(one.num_calls)] for one in top.stacks
    ]
    heads = [Column("self", right=True), Column("", right=True), Column("calls", right=True)]
    taken = 2 + sum(
        2 + max([len(head.title), *(len(row[index]) for row in numbers)]) for index, head in enumerate(heads)
    )
    room = None if style.width is None else style.width - taken
    rows: list[list[Cell]] = [[*row, path_text(one, room)] for row, one in zip(numbers, top.stacks, strict=True)]
    return grid([*heads, Column("stack, outermost first")], rows, style)


def stack_blocks(top: StackList, style: Style, time: Callable[[int], str] = duration_text) -> Iterator[str]:
    """A paragraph a stack, with all its functions."""
    for index, one in enumerate(top.stacks):
        if index:
            yield ""
        share = one.total_ns if top.order == "total" else one.self_ns
        numbers = {
            "self": f"{time(one.self_ns)} self",
            "total": f"{time(one.total_ns)} in all",
            "count": f"{count_text(one.num_calls)} call{'' if one.num_calls == 1 else 's'}",
        }
        lead = numbers.pop(top.order)
        part = "" if top.order == "count" else f"  {percent_text(share, top.whole_ns)}"
        yield f"  {style.paint(lead + part, Role.TITLE)}  {style.paint(', '.join(numbers.values()), Role.FAINT)}"
        yield from _wrapped(names_of(one), style)


def tree_lines(tree: CallTree, style: Style, time: Callable[[int], str] = duration_text) -> Iterator[str]:
    """A line a node, indented by its depth."""
    rows: list[list[Cell]] = []
    for node in tree.nodes:
        depth = node.depth if node.depth <= INDENT_MOST else INDENT_MOST
        deeper = f"{node.depth}: " if node.depth > INDENT_MOST else ""
        name = "  " * depth + deeper + function_text(node.function.name)
        own: Cell = time(node.self_ns) if node.self_ns else ("-", Role.FAINT)
        part = percent_text(node.total_ns, tree.whole_ns)
        rows.append([time(node.total_ns), part, own, count_text(node.num_calls), name])
    columns = [
        Column("total", right=True),
        Column("", right=True),
        Column("self", right=True),
        Column("calls", right=True),
        Column("function", shrinks=24),
    ]
    return grid(columns, rows, style)


def path_text(stack: CallStack, room: int | None) -> str:
    """A stack in `room` columns: functions in its middle are left out, never the innermost."""
    names = names_of(stack)
    text = ARROW.join(names)
    if room is None or cell_width(text) <= room:
        return text
    for kept in range(len(names) - 2, 0, -1):
        text = ARROW.join([names[0], ELLIPSIS, *names[-kept:]])
        if cell_width(text) <= room:
            return text
    text = ARROW.join([ELLIPSIS, names[-1]])
    return text if cell_width(text) <= room else cut(names[-1], max(room, 16))


def names_of(stack: CallStack) -> list[str]:
    """FunctionNames, outermost first; a function that calls itself again and again is told once, with how often."""
    told = []
    for function, run in groupby(stack.functions):
        times = sum(1 for _ in run)
        told.append(printable(_name(function)) + (f" (x{times})" if times > 1 else ""))
    return told


def _name(function: Function) -> str:
    return function_text(function.name)


def _wrapped(names: Sequence[str], style: Style) -> Iterator[str]:
    indent = "    "
    width = style.width or 10**9
    line = indent
    for index, name in enumerate(names):
        part = name if index == len(names) - 1 else name + ARROW.rstrip()
        part = cut(part, width - len(indent))
        if line != indent and cell_width(line) + 1 + cell_width(part) > width:
            yield line
            line = indent
        line += part if line == indent else " " + part
    yield line
