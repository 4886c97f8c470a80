"""`record.json`: what `perfuse record` notes of a run beside its files.

perf stores neither the program's command line where it is attached to a process, nor which process wrote a collected
dump: two containers may both have written `jit-1.dump`. CPython names functions without lines: the sources have them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from perfuse import _core
from perfuse.value_class import value_class

NAME = "record.json"
MOST_BYTES = 32 << 20
VERSION = 1


@value_class
class Note:
    """A note of a run.

    Attributes:
        command: The program with its arguments; empty where running processes were recorded.
        title: What was recorded.
        pids: The process that wrote a file, by the file's name.
        definitions: Lines of functions in the dumps and maps; None where none are noted.
    """

    command: tuple[str, ...]
    title: str | None
    pids: Mapping[str, int]
    definitions: _core.DefinedLines | None


def note_beside(path: str) -> Note | None:
    """The note in a recording's directory; None where there is none, or it is not readable."""
    note = os.path.join(os.path.dirname(path), NAME)
    try:
        status = os.lstat(note)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
            return None
        return _read(note, status.st_mtime_ns)
    except (OSError, ValueError, RecursionError):
        return None


@lru_cache(maxsize=64)
def _read(path: str, _mtime_ns: int) -> Note | None:
    import json

    with open(path, encoding="utf-8") as file:
        document: Any = json.load(file)
    if not isinstance(document, dict) or document.get("version") != VERSION:
        return None
    command = document.get("command")
    files, title = document.get("files"), document.get("title")
    return Note(
        tuple(word for word in command if isinstance(word, str)) if isinstance(command, list) else (),
        title if isinstance(title, str) else None,
        {
            one["name"]: one["pid"]
            for one in (files if isinstance(files, list) else [])
            if isinstance(one, dict) and isinstance(one.get("name"), str) and type(one.get("pid")) is int
        },
        read_definitions(document.get("lines")),
    )


def read_definitions(lines: Any) -> _core.DefinedLines | None:
    """Lines of functions by file and name; None where there are none.

    Raises:
        ValueError: A part of it is not of that form.
    """
    if not lines:
        return None
    try:
        return _core.DefinedLines(lines)
    except (TypeError, OverflowError) as error:
        raise ValueError("not lines of functions") from error
