"""Data for standard output that may be a terminal: control characters in names from files do not reach it."""

from __future__ import annotations

import codecs
import io
import re
import sys
from typing import IO, cast

from perfuse.errors import UsageError

_CONTROL = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
"""Control characters but for tab and line feed, and what changes the direction of text."""


def standard_output() -> IO[bytes]:
    """Standard output for bytes; if it is a terminal, text is escaped, and binary data is an error."""
    if sys.stdout.isatty():
        return cast("IO[bytes]", _Terminal(sys.stdout.buffer))
    return sys.stdout.buffer


class _Terminal(io.RawIOBase):
    """Writes text to a terminal, with control characters as `\\x1b` and the like."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        # Characters may be cut between two writes.
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def writable(self) -> bool:
        return True

    def write(self, data: bytes | bytearray | memoryview, /) -> int:  # type: ignore[override]
        content = bytes(data)
        if b"\0" in content:
            raise UsageError(
                "binary data is not written to a terminal", hint="give a file (-o FILE), or a program that reads it"
            )
        self._out.write(escaped(self._decoder.decode(content)).encode())
        return len(content)

    def flush(self) -> None:
        self._out.flush()


def escaped(text: str) -> str:
    """The text with control characters and changes of direction escaped; tabs and line feeds stay."""
    return re.sub(_CONTROL, lambda found: found[0].encode("unicode_escape", "surrogatepass").decode(), text)
