"""The result of a command line, and its output without colour."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Done:
    """Exit code and output of a command line."""

    code: int
    out: str
    err: str


Perfuse = Callable[..., Done]


def report_json(perfuse: Perfuse, *words: str) -> Any:
    """What `perfuse report --json` prints."""
    done = perfuse("report", "--json", *words)
    assert done.code == 0, done.err
    return json.loads(done.out)


def plain(text: str) -> str:
    """The text without colour."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
