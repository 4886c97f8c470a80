"""The line table of an object file, as `objdump --dwarf=decodedline` reads it."""

import re
import subprocess
from bisect import bisect_right
from pathlib import Path

_ROW = re.compile(r"^\S+\s+(?P<line>\d+|-)\s+(?P<address>(?:0x)?[0-9a-f]+)(?:\s|$)")


class LineTable:
    """Source lines of instructions by address."""

    def __init__(self, path: Path) -> None:
        """Reads the object's whole line table; rows of one address are as in DWARF: the last one counts."""
        printed = subprocess.run(
            ["objdump", "--dwarf=decodedline", path], capture_output=True, text=True, check=True
        ).stdout
        by_address: dict[int, int | None] = {}
        for text in printed.splitlines():
            row = _ROW.match(text)
            if row:
                by_address[int(row["address"], 16)] = None if row["line"] == "-" else int(row["line"])
        self._addresses = sorted(by_address)
        self._lines = [by_address[address] for address in self._addresses]

    def line(self, address: int) -> int | None:
        """Line, from 1; None where the code belongs to no line (0 in DWARF) or to no row."""
        row = bisect_right(self._addresses, address)
        return (self._lines[row - 1] or None) if row else None
