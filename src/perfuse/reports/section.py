"""A heading in a report."""

from __future__ import annotations

from collections.abc import Iterator

from perfuse.reports.style import Role, Style
from perfuse.reports.text import cell_width, cut


def section(title: str, style: Style, note: str = "") -> Iterator[str]:
    """An empty line and a heading; the faint note behind it is cut where the line ends."""
    yield ""
    if note and style.width is not None:
        note = cut(note, style.width - cell_width(title) - 2)
    yield style.paint(title, Role.TITLE) + (style.paint(f"  {note}", Role.FAINT) if note else "")
