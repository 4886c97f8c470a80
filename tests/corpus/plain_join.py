"""The join as one would write it on a page: which code was at an address at a time. Slow, and nothing else's code.

For recordings that perf refuses or does not see it has no answer to compare with; this is the second opinion.
"""

import struct
from bisect import bisect_right
from pathlib import Path

_LOAD = 0
_PREFIX = struct.Struct("<IIQ")
_LOAD_BODY = struct.Struct("<IIQQQQ")
_LEN_HEADER = 40


class PlainJoin:
    """The JIT_CODE_LOAD records of a little-endian dump, searched for one address at a time."""

    def __init__(self, dump: Path) -> None:
        """Reads the records up to the first incomplete one."""
        data = dump.read_bytes()
        self._loads: list[tuple[int, int, int, int]] = []
        offset = _LEN_HEADER
        while offset + _PREFIX.size <= len(data):
            kind, size, ts_ns = _PREFIX.unpack_from(data, offset)
            if size < _PREFIX.size or offset + size > len(data):
                break
            if kind == _LOAD:
                _, _, _, address, code_size, code_index = _LOAD_BODY.unpack_from(data, offset + _PREFIX.size)
                self._loads.append((ts_ns, address, code_size, code_index))
            offset += size
        self._loads.sort(key=lambda load: load[0])
        self._times = [load[0] for load in self._loads]

    def code_index(self, address: int, ts_ns: int) -> int | None:
        """The latest code loaded at this address up to this time."""
        for _, start, size, code_index in reversed(self._loads[: bisect_right(self._times, ts_ns)]):
            if start <= address < start + size:
                return code_index
        return None
