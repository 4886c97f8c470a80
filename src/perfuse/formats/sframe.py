"""SFrame: addresses looked up, sections converted, made smaller, merged and written.

import perfuse as pf

program = pf.sframe.open("a.out")
program.find([0x401136, 0x401160]).to_arrow()       # function, row and rules for each address
section = program.sections[0].convert(3).section.optimise()
program.replace(section, "a.out.new")
made = pf.sframe.from_eh_frame("/usr/bin/git")      # for a program that has none; made.misfits are what it lacks
made.section.write_into("/usr/bin/git", "git.sframe")
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import NamedTuple, Self

from perfuse import _core
from perfuse.errors import UsageError
from perfuse.formats.sframe_coverage import Coverage, coverage_of
from perfuse.recording import Input, Recording
from perfuse.recording import open as open_recording
from perfuse.table import Table

__all__ = [
    "STYLES",
    "Converted",
    "Lookups",
    "Misfit",
    "Piece",
    "Row",
    "Rule",
    "SFrame",
    "Section",
    "from_eh_frame",
    "open",
]

STYLES = ("readelf-2.40", "readelf-2.44", "readelf-2.47")
"""Versions of readelf whose text `SFrame.readelf` writes."""


class Rule(NamedTuple):
    """How a value is found: `base + offset`, or what memory has there.

    Attributes:
        base: `sp`, `fp`, `cfa`, or another register by its DWARF number such as `r10`.
        offset: Bytes added to it.
        deref: Whether the value is read from memory there.
    """

    base: str
    offset: int = 0
    deref: bool = False


class Row(NamedTuple):
    """How to unwind from an offset of a function on, up to the next row.

    Attributes:
        start: Offset from the function's start, or in the block that repeats.
        cfa: The stack pointer before the call; None for the outermost frame.
        fp: Where the caller's frame pointer is; None where it is in its register still.
        ra: Where the return address is; None where it is in its register, or where the header says (amd64).
        ra_mangled: Whether the return address is signed (aarch64).
    """

    start: int
    cfa: Rule | None
    fp: Rule | None = None
    ra: Rule | None = None
    ra_mangled: bool = False


@dataclass(frozen=True, slots=True)
class Misfit:
    """Something another version has no room for.

    Attributes:
        function: First address of the function; None for what is about the whole section.
        row: Zero-based index of the row, where it is about one (of `.eh_frame`, in a section made of that).
        what: What does not fit.
        left_out: Whether the function was left out, because with the rest of its rows stacks would be unwound
            wrongly.
    """

    function: int | None
    row: int | None
    what: str
    left_out: bool


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


class Section:
    """A section that can be changed and written. `Section(3, "x86_64")` begins an empty one.

    Args:
        version: 1, 2 or 3.
        arch: `x86_64`, `aarch64`, `aarch64_be` or `s390x`.

    Raises:
        ValueError: There is no such version, or SFrame has no ABI for the machine.
    """

    def __init__(self, version: int, arch: str) -> None:
        self._core = _core.SFrameSection(version, arch)

    @classmethod
    def _of(cls, core: _core.SFrameSection) -> Self:
        section = cls.__new__(cls)
        section._core = core
        return section

    @property
    def version(self) -> int:
        """1, 2 or 3."""
        return self._core.version

    @property
    def arch(self) -> str | None:
        """Machine; None where the ABI is unknown."""
        return self._core.arch

    def __len__(self) -> int:
        """Functions."""
        return len(self._core)

    def add(
        self,
        start: int,
        size: int,
        rows: Iterable[Row],
        *,
        repeat_bytes: int = 0,
        signal: bool = False,
        key_b: bool = False,
    ) -> None:
        """Adds a function. In version 3 its rows are written as FLEX where they need it.

        Args:
            start: First address.
            size: Size in bytes.
            rows: Its rows, ascending.
            repeat_bytes: Size of the block of code that repeats, for a PLT; else 0.
            signal: Whether the kernel enters it for a signal (version 3).
            key_b: Whether it signs return addresses with key B (aarch64).

        Raises:
            ValueError: A row says what this version cannot.
        """
        self._core.add(start, size, list(rows), repeat_bytes, signal, key_b)

    def convert(self, version: int, *, arch: str | None = None) -> Converted:
        """The same in another version, with everything that does not fit.

        Args:
            version: 1, 2 or 3.
            arch: `aarch64` or `aarch64_be`: the other byte order.

        Raises:
            ExportError: The machine is of another kind; rows are about the registers of one.
        """
        core, misfits = (self._core if arch is None else self._core.for_arch(arch)).convert(version)
        return Converted(Section._of(core), [Misfit(*misfit) for misfit in misfits])

    def optimise(self) -> Section:
        """The same in fewer bytes: functions whose rows are equal share them. Nothing that readers see changes."""
        core, _ = self._core.optimised()
        return Section._of(core)

    def encode(self, address: int, *, sort: bool = True) -> bytes:
        """The section as bytes.

        Args:
            address: Where it will be loaded to: start fields count from there.
            sort: Sort functions by address, as linkers do. False keeps their order.

        Raises:
            ExportError: Something does not fit its field: code more than 2 GiB away, in versions 1 and 2.
        """
        return self._core.encode(address, sort)

    def write_into(self, program: str | PathLike[str], path: str | PathLike[str]) -> None:
        """Writes a program or library with this section, which is loaded with it; the program itself stays as it is.

        It takes the place of a section that is there already where it fits there, else it is put behind all that is
        in the file, in a segment of its own. Functions are sorted.

        Args:
            program: ELF file.
            path: File to write; executable if the program is.

        Raises:
            UnreadableInput: The program cannot be read.
            ExportError: It is an object file, or code is more than 2 GiB away (versions 1 and 2).
        """
        data = _core.sframe_into(fspath(program), self._core, True)
        Path(path).write_bytes(data)
        Path(path).chmod(Path(program).stat().st_mode & 0o777)

    @staticmethod
    def merge(sections: Sequence[Section]) -> Section:
        """One sorted section of several, each function once.

        Raises:
            ExportError: They are of different versions or machines.
        """
        core, _ = _core.SFrameSection.merged([section._core for section in sections])
        return Section._of(core)


@dataclass(frozen=True, slots=True)
class Converted:
    """A section in another version.

    Attributes:
        section: The section.
        misfits: Everything that version has no room for, by function and row.
    """

    section: Section
    misfits: list[Misfit]


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

    def readelf(self, style: str) -> Iterator[bytes]:
        """The text of `readelf --sframe` as one of its versions writes it, in blocks.

        Args:
            style: One of `STYLES`.

        Raises:
            UsageError: That version shows nothing of the section.
        """
        try:
            return iter(_core.SFrameText(self.recording._core, style))
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


def from_eh_frame(program: str | PathLike[str], *, version: int = 3) -> Converted:
    """A section made of a finished program's `.eh_frame`, whatever it was built with.

    Of a JITDUMP it is made of the unwinding records of the code that is there at its end.

    Args:
        program: ELF program, library or object file, for x86_64, aarch64 or s390x; or a JITDUMP.
        version: 1, 2 or 3. Version 3 has words for the most.

    Returns:
        The section, and every function that is not in it, with the reason.

    Raises:
        UnreadableInput: It is no such file, or has no `.eh_frame`.
        ValueError: There is no such version.
    """
    core, misfits = _core.sframe_from_eh_frame(fspath(program), version)
    return Converted(Section._of(core), [Misfit(*misfit) for misfit in misfits])


def _native(addresses: Iterable[int]) -> bytes:
    try:
        view = memoryview(addresses)  # type: ignore[arg-type]  # whether it is a buffer shows when it is tried
    except TypeError:
        return array("Q", addresses).tobytes()
    if view.itemsize != 8 or view.format.lstrip("@=") not in ("Q", "L", "q", "l", "N"):
        raise UsageError(f"addresses are 64-bit numbers, not of format {view.format!r}")
    return view.tobytes()
