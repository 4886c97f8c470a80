"""Colour and width of a terminal; plain text everywhere else."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from enum import Enum
from typing import TextIO


class Role(Enum):
    """What a piece of text is; the value is how a terminal shows it (SGR parameters)."""

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


@dataclass(frozen=True)
class Style:
    """How one output stream wants its text."""

    colour: bool = False
    width: int | None = None
    """Columns to keep to; None where lines may be as long as they are (files, pipes)."""

    @classmethod
    def of(cls, stream: TextIO, mode: str = "auto") -> Style:
        """What suits a stream. `mode` is `auto`, `always` or `never`; NO_COLOR counts in `auto` only."""
        terminal = stream.isatty()
        if mode == "auto":
            # https://no-color.org: set and not empty means no colour.
            colour = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        else:
            colour = mode == "always"
        wants_width = terminal or os.environ.get("COLUMNS", "").isdecimal()
        width = max(shutil.get_terminal_size((100, 24)).columns, 40) if wants_width else None
        return cls(colour, width)

    def paint(self, text: str, role: Role) -> str:
        """The text in the colour of its role."""
        if not self.colour or not role.value or not text:
            return text
        return f"\x1b[{role.value}m{text}\x1b[0m"
