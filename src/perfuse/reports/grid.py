"""Aligned tables, bars and headings for a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence

from perfuse.reports.text import Role, Style, cell_width, cut, pad, printable
from perfuse.value_class import value_class

GAP = "  "
Cell = str | tuple[str, Role]

WIDEST_ALIGNED = 120
"""Cells of files and pipes that are aligned: one name of a template may have thousands of columns."""

_STEPS = "▁▂▃▄▅▆▇█"
BAR_COLUMNS = 12
"""Width of bars, where a line has room for them."""


@value_class
class Column:
    """A column of a table."""

    title: str
    right: bool = False
    """Whether it is aligned right, for numbers."""
    role: Role = Role.PLAIN
    shrinks: int | None = None
    """The width it may be reduced to when lines are too long; None where it keeps its width."""
    cut: Callable[[str, int], str] = cut
    counts: int = 1
    """How many times its width counts in the search for the widest column, which is reduced first."""


def grid(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], style: Style, indent: str = "  ") -> Iterator[str]:
    """The lines of a table: a faint heading where any column has a title, then one line per row.

    Control characters in cells are escaped. Lines fit in `style.width` as far as the columns can be reduced. Where it
    is None, cells of more than `WIDEST_ALIGNED` columns are whole, and move what follows on their own line only.
    """
    cells = [[_cell(cell, column) for cell, column in zip(row, columns, strict=True)] for row in rows]
    widest = WIDEST_ALIGNED if style.width is None else sys.maxsize
    widths = [
        max([cell_width(column.title), *(width for row in cells if (width := cell_width(row[index][0])) <= widest)])
        for index, column in enumerate(columns)
    ]
    if style.width is not None:
        _shrink(widths, columns, style.width - len(indent) - len(GAP) * (len(columns) - 1))
    if any(column.title for column in columns):
        yield _line([(column.title, Role.FAINT) for column in columns], columns, widths, style, indent)
    for row in cells:
        yield _line(row, columns, widths, style, indent)


def fields(pairs: Sequence[tuple[str, Cell]], style: Style, indent: str = "  ") -> Iterator[str]:
    """Lines with a label and a value, aligned; an empty label continues the value above."""
    label = Column("", role=Role.FAINT)
    return grid([label, Column("", shrinks=20)], [(name, value) for name, value in pairs], style, indent)


def sparkline(values: Sequence[int]) -> str:
    """One character per value, with a height in proportion; 0 is a dot."""
    top = max(values, default=0)
    return "".join("·" if value == 0 else _STEPS[min(value * len(_STEPS) // top, len(_STEPS) - 1)] for value in values)


def bar(part: float, whole: float, width: int = BAR_COLUMNS) -> str:
    """A bar as long as `part` of `whole`, in eighths of a column, with spaces up to `width` columns."""
    share = part / whole if whole else 0.0
    full, rest = divmod(round(max(0.0, min(share, 1.0)) * width * 8), 8)
    return ("█" * full + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[rest]).ljust(width)


def _cell(cell: Cell, column: Column) -> tuple[str, Role]:
    text, role = cell if isinstance(cell, tuple) else (cell, column.role)
    return printable(text), role


def _shrink(widths: list[int], columns: Sequence[Column], room: int) -> None:
    """Reduces the widest reducible columns, until the line fits or none can be reduced."""
    floors = [
        width if column.shrinks is None else column.shrinks for width, column in zip(widths, columns, strict=True)
    ]
    widths[:] = [max(min(width, room), min(width, floor)) for width, floor in zip(widths, floors, strict=True)]
    while sum(widths) > room:
        reducible = [at for at, width in enumerate(widths) if width > floors[at]]
        if not reducible:
            return
        widths[max(reducible, key=lambda at: widths[at] * columns[at].counts)] -= 1


def _line(
    row: Sequence[tuple[str, Role]],
    columns: Sequence[Column],
    widths: Sequence[int],
    style: Style,
    indent: str,
) -> str:
    parts = []
    for index, ((text, role), column, width) in enumerate(zip(row, columns, widths, strict=True)):
        shown = text if style.width is None else column.cut(text, width)
        last = index == len(columns) - 1
        filled = shown if last and not column.right else pad(shown, width, right=column.right)
        # Painted after padding: escape sequences have no width.
        parts.append(filled.replace(shown, style.paint(shown, role), 1) if shown else filled)
    return (indent + GAP.join(parts)).rstrip()


@value_class
class Ranked:
    """A column with its cells, and how soon it is left out of a table that is too wide.

    Attributes:
        column: The column.
        cells: One per row.
        rank: 0 for a column that is always shown; of the others, the highest is left out first.
        comfort: For a reducible column: others are left out before it is reduced below this width.
    """

    column: Column
    cells: Sequence[Cell]
    rank: int = 0
    comfort: int = 0


def fitted(columns: Sequence[Ranked], style: Style, indent: str = "  ") -> Iterator[str]:
    """The lines of a table with the columns that fit."""
    shown = list(columns)
    widths = [_preferred_width(one) for one in shown]
    while style.width is not None and any(one.rank for one in shown):
        if len(indent) + sum(widths) + len(GAP) * (len(shown) - 1) <= style.width:
            break
        least = max(range(len(shown)), key=lambda index: shown[index].rank)
        del shown[least], widths[least]
    rows = list(zip(*(one.cells for one in shown), strict=True))
    return grid([one.column for one in shown], rows, style, indent)


def _preferred_width(one: Ranked) -> int:
    texts = (cell[0] if isinstance(cell, tuple) else cell for cell in one.cells)
    width = max([cell_width(one.column.title), *(cell_width(printable(text)) for text in texts)])
    return width if one.column.shrinks is None else min(width, max(one.comfort, one.column.shrinks))


def section(title: str, style: Style, note: str = "") -> Iterator[str]:
    """An empty line and a heading, followed by a faint note that is cut at the end of the line."""
    yield ""
    if note and style.width is not None:
        note = cut(note, style.width - cell_width(title) - 2)
    yield style.paint(title, Role.TITLE) + (style.paint(f"  {note}", Role.FAINT) if note else "")
