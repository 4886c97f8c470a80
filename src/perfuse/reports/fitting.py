"""Tables with more columns than a terminal may have room for: the less a column matters, the sooner it is left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from perfuse.reports.grid import GAP, Cell, Column, grid
from perfuse.reports.style import Style
from perfuse.reports.text import cell_width, printable


@dataclass(frozen=True)
class Ranked:
    """A column with its cells.

    Attributes:
        column: The column.
        cells: One a row.
        rank: 0 is always shown; of the others, the highest goes first.
        comfort: Where the column shrinks: others are left out before it gets less wide than this.
    """

    column: Column
    cells: Sequence[Cell]
    rank: int = 0
    comfort: int = 0


def fitted(columns: Sequence[Ranked], style: Style, indent: str = "  ") -> Iterator[str]:
    """The lines of a table of those columns that have room."""
    kept = list(columns)
    wanted = [_wanted(one) for one in kept]
    while style.width is not None and any(one.rank for one in kept):
        if len(indent) + sum(wanted) + len(GAP) * (len(kept) - 1) <= style.width:
            break
        least = max(range(len(kept)), key=lambda index: kept[index].rank)
        del kept[least], wanted[least]
    rows = list(zip(*(one.cells for one in kept), strict=True))
    return grid([one.column for one in kept], rows, style, indent)


def _wanted(one: Ranked) -> int:
    texts = (cell[0] if isinstance(cell, tuple) else cell for cell in one.cells)
    width = max([cell_width(one.column.title), *(cell_width(printable(text)) for text in texts)])
    return width if one.column.shrinks is None else min(width, max(one.comfort, one.column.shrinks))
