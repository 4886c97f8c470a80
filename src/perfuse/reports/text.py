"""Text for a terminal: printable characters, widths, cutting, colours."""

from __future__ import annotations

import os
import re
import sys
from enum import Enum
from typing import TextIO

from perfuse.value_class import value_class

ELLIPSIS = "…"

_UNUSUAL = "[^\0-\u02ff→…\u2500-\u259f]"
"""Characters that may be combined with others, or two columns wide."""


def printable(text: str) -> str:
    r"""The text with control characters, escape sequences and bidirectional overrides as `\x1b`, `\u202e` and the like.

    Names come from untrusted files.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def cell_width(text: str) -> int:
    """The width of printable text in columns of a terminal."""
    if text.isascii() or not (unusual := re.findall(_UNUSUAL, text)):
        return len(text)
    import unicodedata

    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in unusual if not unicodedata.combining(c))
    return len(text) + wide - sum(unicodedata.combining(c) > 0 for c in unusual)


def cut(text: str, width: int) -> str:
    """The text in at most `width` columns; an ellipsis replaces its end where it is longer."""
    if cell_width(text) <= width:
        return text
    return _head(text, width - 1) + ELLIPSIS if width > 0 else ""


def cut_middle(text: str, width: int) -> str:
    """The text in at most `width` columns; an ellipsis replaces its middle where it is longer, as for paths."""
    if cell_width(text) <= width:
        return text
    if width < 8:
        return cut(text, width)
    tail_width = (width - 1) * 2 // 3
    head = _head(text, width - 1 - tail_width)
    tail = _head(text[::-1], tail_width)[::-1]
    return head + ELLIPSIS + tail


def pad(text: str, width: int, *, right: bool = False) -> str:
    """The text padded to `width` columns, on its left where `right`."""
    fill = " " * (width - cell_width(text))
    return fill + text if right else text + fill


def _head(text: str, width: int) -> str:
    if text.isascii() or not re.search(_UNUSUAL, text):
        return text[: max(width, 0)]
    taken = 0
    for index, char in enumerate(text):
        taken += cell_width(char)
        if taken > width:
            return text[:index]
    return text


class Role(Enum):
    """The role of a piece of text; the value is its colour in a terminal (SGR parameters)."""

    PLAIN = ""
    TITLE = "1"
    FAINT = "2"
    NAME = "36"
    JIT = "32"
    NATIVE = "34"
    KERNEL = "33"
    INFO = "34"
    WARNING = "33"
    DATA_LOSS = "35"
    ERROR = "31"
    GOOD = "32"


ORIGIN_ROLES = {"jit": Role.JIT, "native": Role.NATIVE, "kernel": Role.KERNEL}
SEVERITY_ROLES = {
    "info": Role.INFO,
    "warning": Role.WARNING,
    "data_loss": Role.DATA_LOSS,
    "error": Role.ERROR,
}


def _terminal_columns() -> int:
    """The width of the terminal, as `shutil.get_terminal_size` finds it: that module loads three decompressors."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 100  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return 100


@value_class
class Style:
    """Colour and width of an output stream."""

    colour: bool = False
    width: int | None = None
    """Width of lines in columns; None where they are not cut (files, pipes)."""

    @classmethod
    def of(cls, stream: TextIO, mode: str = "auto") -> Style:
        """The style for a stream. `mode` is `auto`, `always` or `never`; NO_COLOR has an effect in `auto` only."""
        terminal = stream.isatty()
        if mode == "auto":
            # https://no-color.org: set and not empty means no colour.
            colour = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        else:
            colour = mode == "always"
        wants_width = terminal or os.environ.get("COLUMNS", "").isdecimal()
        width = max(_terminal_columns(), 40) if wants_width else None
        return cls(colour, width)

    def paint(self, text: str, role: Role) -> str:
        """The text in the colour of its role; what controls a terminal is escaped."""
        if not text.isprintable():
            text = printable(text)
        if not self.colour or not role.value or not text:
            return text
        return f"\x1b[{role.value}m{text}\x1b[0m"
