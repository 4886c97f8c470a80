"""Backtraces for a terminal: on one line, or a line a function."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from perfuse.reports.style import Role, Style
from perfuse.reports.text import cell_width, cut, printable

_PARAMETERS = re.compile(r" \(.*\)$")
_WRAPPER = re.compile(r"^\(wrapper ([\w-]+)\) ")
_NAMESPACES = re.compile(r"(?<![\w.])(?:\w+\.)+(?=[^\s:]*:)")
NOTHING = "(no backtrace)"


def short_name(name: str) -> str:
    """A method without namespaces and parameters.

    >>> short_name("(wrapper managed-to-native) System.Threading.Thread:SleepInternal (int)")
    'Thread:SleepInternal'
    """
    return _NAMESPACES.sub("", _PARAMETERS.sub("", _WRAPPER.sub("", name))) or name


def one_line(backtrace: Sequence[str], width: int | None) -> str:
    """`… → Main → Domains`: as many of the innermost functions as there is room for; not those the runtime made up."""
    own = list(backtrace)
    while own and own[-1].startswith("(wrapper") and any(not name.startswith("(wrapper") for name in own):
        own.pop()
    names = [printable(short_name(name)) for name in own]
    if not names:
        return NOTHING
    shown = names[-1]
    for at in range(len(names) - 2, -1, -1):
        longer = f"{names[at]} → {shown}"
        if width is not None and cell_width(longer) + (4 if at else 0) > width:
            return cut(f"… → {shown}", width)
        shown = longer
    return shown if width is None else cut(shown, width)


def block(backtrace: Sequence[str], frames: int | None, style: Style, indent: str = "      ") -> Iterator[str]:
    """A line a function, innermost first as a debugger has them; what is cut off is counted."""
    names = list(reversed(backtrace))
    shown = names if frames is None else names[:frames]
    for name in shown:
        text = indent + printable(name)
        yield style.paint(text if style.width is None else cut(text, style.width), Role.FAINT)
    if len(names) > len(shown):
        yield style.paint(f"{indent}… {len(names) - len(shown)} more", Role.FAINT)
    if not names:
        yield style.paint(indent + NOTHING, Role.FAINT)
