"""SFrame: addresses looked up, sections converted, made smaller, merged and written.

import perfuse as pf

program = pf.sframe.open("a.out")
program.find([0x401136, 0x401160]).to_arrow()       # function, row and rules for each address
program.unwind({"pc": 0x401136, "sp": 0x7ffd3000, "fp": 0}, stack).frames
section = program.sections[0].convert(3).section.optimise()
program.replace(section, "a.out.new")
made = pf.sframe.from_eh_frame("/usr/bin/git")      # for a program that has none; made.misfits are what it lacks
made.section.write_into("/usr/bin/git", "git.sframe")
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import IO, NamedTuple

from perfuse import _core
from perfuse.errors import UsageError
from perfuse.formats.sframe_coverage import Coverage, coverage_of
from perfuse.formats.sframe_section import Converted, Misfit, Row, Rule, Section, from_eh_frame
from perfuse.output_descriptor import descriptor_of
from perfuse.recording import Input, Recording
from perfuse.recording import open as open_recording
from perfuse.table import Table

__all__ = [
    "STYLES",
    "Converted",
    "Frame",
    "Lookups",
    "Misfit",
    "Piece",
    "Row",
    "Rule",
    "SFrame",
    "Section",
    "Unwound",
    "from_eh_frame",
    "open",
]

STYLES = ("readelf-2.40", "readelf-2.44", "readelf-2.47")
"""Versions of readelf whose text `SFrame.readelf` writes."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A header with its functions: one where a linker merged sections, several where it did not.

    Attributes:
        section: Index of the section it is in.
        member: Member of the archive; empty where the file is none.
        offset: Of its header, in the file.
        address: Of its header, in memory.
        version: 1, 2 or 3.
        abi: Machine; None where unknown.
        flags: As in the header.
        num_functions: Functions, as the header says.
        num_rows: Rows, as the header says.
        header_bytes: Size of the header, and of what follows it before the functions.
        entries_bytes: Size of the function entries.
        rows_bytes: Size of the rows; in version 3 with functions' attributes.
        size_bytes: Size of all.
        starts: What start fields count from: `section` or `field`.
        because: How that is known.
    """

    section: int
    member: str
    offset: int
    address: int
    version: int
    abi: str | None
    flags: int
    num_functions: int
    num_rows: int
    header_bytes: int
    entries_bytes: int
    rows_bytes: int
    size_bytes: int
    starts: str
    because: str


class Frame(NamedTuple):
    """A frame of a stack that was unwound.

    Attributes:
        pc: Where it runs; of all but the innermost, where it returns to.
        sp: Its stack pointer.
    """

    pc: int
    sp: int


@dataclass(frozen=True, slots=True)
class Unwound:
    """A stack that was unwound.

    Attributes:
        frames: Its frames, innermost first.
        stop: Why there are no more: `outermost`, `cut` (the next lies behind the bytes given), `no_rule` (no row for an
            address), `bad_read`, `lost_register`, `not_monotonic`, `bad_return_address` or `depth_limit`.
    """

    frames: tuple[Frame, ...]
    stop: str


class Lookups(Table):
    """The answer to `SFrame.find`: a table as any other, but none of a profile's."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names."""
        return tuple(self.to_arrow().column_names)


class SFrame:
    """An open file with SFrame sections; `perfuse.sframe.open` makes it."""

    def __init__(self, recording: Recording) -> None:
        if recording.format != "sframe":
            raise UsageError(f"{recording.path} is {recording.format}, not SFrame")
        self.recording = recording

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """Headers, in file order, each with what its start fields count from, and how that is known."""
        return tuple(Piece(**piece) for piece in _core.sframe_pieces(self.recording._core))

    @property
    def sections(self) -> tuple[Section, ...]:
        """A section to change and write for each piece."""
        return tuple(Section._of(core) for core in _core.SFrameSection.all_of(self.recording._core))

    @cached_property
    def coverage(self) -> list[Coverage]:
        """How much of the program's code has rows, which functions have none, and how far rows agree with `.eh_frame`.

        One for each section of a file that has an `.eh_frame` too.
        """
        return coverage_of(self.recording)

    def find(self, addresses: Iterable[int]) -> Lookups:
        """Function and row of each address, in their order.

        Args:
            addresses: Addresses as the file is laid out: numbers, or a buffer of 64-bit ones such as a NumPy array.

        Returns:
            A row an address: function, offset its row begins at, rules for CFA, frame pointer and return address.
        """
        data = _native(addresses)
        return Lookups("unwind_lookups", lambda: _core.sframe_find(self.recording._core, data))

    def unwind(self, registers: Mapping[str, int], stack: bytes | bytearray | memoryview, *, bias: int = 0) -> Unwound:
        """Unwinds a stack by the rows of this file alone; a `perf.data` is unwound by `perfuse.fuse`.

        Args:
            registers: `pc` and `sp` at least; `fp`, on machines with a link register `ra`, and others by their DWARF
                number such as `r10`, where rows name them.
            stack: Bytes from the stack pointer up, as the machine had them.
            bias: What was added to the file's addresses when it was loaded.

        Raises:
            ValueError: There is no such register, `pc` or `sp` is missing, or the machine is unknown.
        """
        data = bytes(stack)
        frames, stop = _core.sframe_unwind(self.recording._core, registers, data, bias)
        return Unwound(tuple(Frame(*frame) for frame in frames), stop)

    def readelf(self, style: str) -> Iterator[bytes]:
        """The text of `readelf --sframe` as one of its versions writes it, in blocks.

        Args:
            style: One of `STYLES`.

        Raises:
            UsageError: That version shows nothing of the section.
        """
        return iter(self._text(style))

    def write_readelf(self, style: str, out: IO[bytes]) -> None:
        """Writes the text of `readelf`; faster than block by block, where the file is a plain one.

        Args:
            style: One of `STYLES`.
            out: An open file.

        Raises:
            UsageError: That version shows nothing of the section.
        """
        self._text(style).write(descriptor_of(out))

    def _text(self, style: str) -> _core.SFrameText:
        try:
            return _core.SFrameText(self.recording._core, style)
        except ValueError as error:
            raise UsageError(f"{self.recording.path}: {error}") from None

    def merge(self) -> Section:
        """One sorted section of all pieces of the first section."""
        pieces = zip(self.pieces, self.sections, strict=True)
        return Section.merge([section for piece, section in pieces if piece.section == 0])

    def replace(self, section: Section, path: str | PathLike[str], *, index: int = 0) -> None:
        """Writes the file with another section in the place of one of its own; the file itself stays as it is.

        Args:
            section: What to put there. It must not be larger than what is there.
            path: File to write.
            index: Which of the file's sections.

        Raises:
            ExportError: It is larger, or the file is an object file, whose relocations point into the section.
        """
        address = next(piece.address for piece in self.pieces if piece.section == index)
        data = _core.sframe_put_back(self.recording._core, index, section.encode(address))
        Path(path).write_bytes(data)


def open(source: Input | Recording, *, address: int | None = None) -> SFrame:
    """Opens a file with SFrame sections: ELF, object file, archive, or a section cut out.

    Args:
        source: As for `perfuse.open`, or a recording that is open.
        address: Where a section that was cut out is loaded to; 0 where not given.

    Raises:
        UnreadableInput: There is no section in it, or none that begins with a header.
        UsageError: It is another format.
    """
    if isinstance(source, Recording):
        return SFrame(source)
    if address is None:
        return SFrame(open_recording(source))
    if isinstance(source, str | PathLike):
        path = fspath(source)
        return SFrame(Recording(_core.sframe_at(path, None, address), path))
    data = bytes(source) if isinstance(source, bytes | bytearray | memoryview) else source.read()
    return SFrame(Recording(_core.sframe_at("<bytes>", data, address), "<bytes>"))


def _native(addresses: Iterable[int]) -> bytes:
    try:
        view = memoryview(addresses)  # type: ignore[arg-type]  # whether it is a buffer shows when it is tried
    except TypeError:
        return array("Q", addresses).tobytes()
    if view.itemsize != 8 or view.format.lstrip("@=") not in ("Q", "L", "q", "l", "N"):
        raise UsageError(f"addresses are 64-bit numbers, not of format {view.format!r}")
    return view.tobytes()
