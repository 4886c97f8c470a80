"""Text for a terminal: what can be shown, how wide it is, how it is cut."""

from __future__ import annotations

import unicodedata

ELLIPSIS = "…"


def printable(text: str) -> str:
    r"""The text with everything a terminal would act on written out.

    Names come from files nobody vouches for: control characters, escape sequences and bidirectional overrides become
    `\x1b`, `\u202e` and the like.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def cell_width(text: str) -> int:
    """Columns of a terminal that printable text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def cut(text: str, width: int) -> str:
    """The text in at most `width` columns; an ellipsis stands for what is left out at the end."""
    if cell_width(text) <= width:
        return text
    return _head(text, width - 1) + ELLIPSIS if width > 0 else ""


def cut_middle(text: str, width: int) -> str:
    """The text in at most `width` columns, its ends kept: for paths, whose last part tells most."""
    if cell_width(text) <= width:
        return text
    if width < 8:
        return cut(text, width)
    tail_width = (width - 1) * 2 // 3
    head = _head(text, width - 1 - tail_width)
    tail = _head(text[::-1], tail_width)[::-1]
    return head + ELLIPSIS + tail


def pad(text: str, width: int, *, right: bool = False) -> str:
    """The text filled with spaces to `width` columns, on the left of it when `right`."""
    fill = " " * (width - cell_width(text))
    return fill + text if right else text + fill


def _head(text: str, width: int) -> str:
    if text.isascii():
        return text[: max(width, 0)]
    taken = 0
    for index, char in enumerate(text):
        taken += cell_width(char)
        if taken > width:
            return text[:index]
    return text
