"""A command line that was run."""

import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Done:
    """How a command line ended."""

    code: int
    out: str
    err: str


Perfuse = Callable[..., Done]


def plain(text: str) -> str:
    """The text without colour."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
