"""Lines of functions of dumps, which neither the dumps nor, for all of their functions, saved tables have."""

import json
from collections.abc import Sequence
from typing import Any

from perfuse import _core
from perfuse.archive.xz import packed, unpacked

MEMBER = "resolved/definitions.json.xz"
MAX_BYTES = 256 << 20
"""Most bytes that it may become."""


class DefinitionWriter:
    """Collects the lines of several dumps; those of one directory are the same and are stored once."""

    def __init__(self) -> None:
        self._found: list[dict[str, dict[str, int]]] = []

    def add(self, definitions: _core.DefinedLines | None) -> int | None:
        """The number of the lines of a dump; None where it has none."""
        if definitions is None:
            return None
        lines = definitions.lines()
        if lines not in self._found:
            self._found.append(lines)
        return self._found.index(lines)

    def member(self) -> bytes | None:
        """The content of the member; None where no dump has lines."""
        text = json.dumps(self._found, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
        return packed(text.encode("ascii")) if self._found else None


def read_definitions(member: bytes, numbers: Sequence[int | None]) -> list[_core.DefinedLines | None]:
    """The lines of each recording, by their numbers in the member.

    Raises:
        ValueError: The member is damaged, or has not so many.
        TypeError: It contains something else.
        OverflowError: It contains a line that cannot be.
    """
    try:
        found: Any = json.loads(unpacked(member, MAX_BYTES))
    except RecursionError as error:
        raise ValueError("the definitions of functions are nested too deeply") from error
    if not isinstance(found, list):
        raise TypeError("the definitions of functions are not a list")
    if any(number is not None and number >= len(found) for number in numbers):
        raise ValueError("the definitions of a recording are missing")
    read = [_core.DefinedLines(lines) for lines in found]
    return [None if number is None else read[number] for number in numbers]
