"""The line that says how much a list has more than it shows."""

from __future__ import annotations

from collections.abc import Iterator

from perfuse.reports.runtime.gathering import RuntimeRequest
from perfuse.reports.style import Role, Style
from perfuse.reports.units import count_text


def rest(count: int, section: str, asked: RuntimeRequest, style: Style) -> Iterator[str]:
    """`… 12 more (--section gc shows them)`; nothing where there are none."""
    if count > 0:
        hint = f"--section {section} shows more" if asked.is_overview else "--limit 0 shows all"
        yield style.paint(f"  … {count_text(count)} more ({hint})", Role.FAINT)
