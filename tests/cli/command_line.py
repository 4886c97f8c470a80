"""The result of a command line, and its output without colour."""

import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Done:
    """Exit code and output of a command line."""

    code: int
    out: str
    err: str


Perfuse = Callable[..., Done]


def plain(text: str) -> str:
    """The text without colour."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
