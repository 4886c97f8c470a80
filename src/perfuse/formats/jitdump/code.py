"""What a JIT compiler states about a code object: lines, inlined calls, unwinding information."""

from dataclasses import dataclass
from typing import NamedTuple


class Line(NamedTuple):
    """A source line, valid up to the offset of the next one. Any tuple of these four values is accepted.

    Attributes:
        offset: Bytes from the start of the code.
        path: Source file.
        line: Line, from 1; 0 for code without a line.
        column: Column, from 1; 0 where unknown.
    """

    offset: int
    path: str
    line: int
    column: int = 0


class Declaration(NamedTuple):
    """Where a function is declared: name, file, line and column from 1; 0 and "" where unknown."""

    name: str
    path: str = ""
    line: int = 0
    column: int = 0


class InlineCall(NamedTuple):
    """A range of code that a function was inlined into.

    Attributes:
        offset: Bytes from the start of the code.
        size: Length of the range in bytes.
        depth: 0 for a call from the function itself, 1 for a call from a function inlined at depth 0, and so
            on.
        function: The function that was inlined.
        call_path: File of the call, in the caller.
        call_line: Line of the call, from 1; 0 where unknown.
        call_column: Column of the call, from 1; 0 where unknown.
    """

    offset: int
    size: int
    depth: int
    function: Declaration
    call_path: str
    call_line: int
    call_column: int = 0


class Unwinding(NamedTuple):
    """How to unwind through a function.

    Attributes:
        eh_frame: Contents of `.eh_frame`, position-independent.
        eh_frame_hdr: Contents of `.eh_frame_hdr`.
        mapped_size: Bytes of both that the process has mapped directly after the code; 0 where it has not.
    """

    eh_frame: bytes
    eh_frame_hdr: bytes
    mapped_size: int = 0


@dataclass(frozen=True, slots=True)
class UnsupportedCounts:
    """Number of values that the dialect cannot represent and that were left out so far.

    Attributes:
        offsets: Lines and calls at offsets of more than 32 bits.
        unknown_columns: Unknown columns, which `debug_info2` can only write as the first.
        paths: Files of calls that are not their caller's own (`debug_info2`), files of lines that are not
            their function's own (`frames`).
    """

    offsets: int = 0
    unknown_columns: int = 0
    paths: int = 0
