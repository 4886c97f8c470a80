"""Source positions of optimized code as V8 itself prints them (`node --print-opt-code`)."""

import re
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path

_BODY_SIZE = re.compile(r"^Instructions \(size = (\d+)\)$", re.MULTILINE)
_FIRST_INSTRUCTION = re.compile(r"^0x([0-9a-f]+) +0 ", re.MULTILINE)
_NAME = re.compile(r"^name = (.+)$", re.MULTILINE)
_POSITIONS = re.compile(r"^Source positions:\n.*\n((?: +[0-9a-f]+ +\d+.*\n)*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Listing:
    """One optimized code object."""

    name: str
    start_address: int
    size_bytes: int
    offsets: list[int]
    positions: list[int]
    """Characters from the start of the script, for each of the offsets."""

    def position(self, code_offset: int) -> int | None:
        """Position in the script of the instruction at this offset."""
        row = bisect_right(self.offsets, code_offset)
        return self.positions[row - 1] if row else None


def read(path: Path) -> list[Listing]:
    """Every named code object in a listing."""
    found = []
    for code in path.read_text(encoding="utf-8", errors="replace").split("--- Optimized code ---")[1:]:
        name, start, size, positions = (p.search(code) for p in (_NAME, _FIRST_INSTRUCTION, _BODY_SIZE, _POSITIONS))
        if name and start and size and positions:
            rows = [line.split() for line in positions[1].splitlines()]
            offsets, chars = [int(row[0], 16) for row in rows], [int(row[1]) for row in rows]
            found.append(Listing(name[1], int(start[1], 16), int(size[1]), offsets, chars))
    return found


def line_and_column(script: str, position: int) -> tuple[int, int]:
    """Line and column, both from 1, of a character of the script."""
    before = script[:position]
    return before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1
