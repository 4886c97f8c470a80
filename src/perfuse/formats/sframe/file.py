"""A file with SFrame sections: its headers, lookups of addresses, unwinding, and the text of readelf."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain
from os import PathLike, fspath
from pathlib import Path
from struct import iter_unpack
from typing import IO, NamedTuple

from perfuse import _core
from perfuse.errors import UsageError
from perfuse.formats.sframe.section import ConvertedSection, Section, UnsupportedItem
from perfuse.formats.sframe.unsupported import unsupported_text
from perfuse.output.descriptor import descriptor_of
from perfuse.output.file import output_file
from perfuse.programs.unwind_tables import (
    CodeSection,
    EhFrameAgreement,
    SectionHeader,
    UncoveredFunction,
    UnwindCoverage,
)
from perfuse.recording import Input, Recording
from perfuse.recording import open as open_recording
from perfuse.table import Columns, Table
from perfuse.value_class import value_class

STYLES = ("readelf-2.40", "readelf-2.44", "readelf-2.47")
"""Versions of readelf whose text `SFrame.readelf` writes."""


class UnwoundFrame(NamedTuple):
    """A frame of an unwound stack.

    Attributes:
        pc: Its instruction pointer; of all but the innermost, its return address.
        sp: Its stack pointer.
    """

    pc: int
    sp: int


@value_class
class UnwoundStack:
    """The frames that unwinding found, and why it ended.

    Attributes:
        frames: Its frames, innermost first.
        stop: Why unwinding ended: `outermost`, `cut` (the next frame is not in the given bytes), `no_rule` (no row for
            an address), `bad_read`, `lost_register`, `not_monotonic`, `bad_return_address` or `depth_limit`.
    """

    frames: tuple[UnwoundFrame, ...]
    stop: str


class LookupTable(Table):
    """The result of `SFrame.find`: a table that is not one of the common tables."""

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
    def headers(self) -> tuple[SectionHeader, ...]:
        """Headers in file order."""
        return tuple(SectionHeader(**row) for row in _core.sframe_pieces(self.recording._core))

    @property
    def sections(self) -> tuple[Section, ...]:
        """A section to change and write for each header."""
        return tuple(Section._of(core) for core in _core.SFrameSection.all_of(self.recording._core))

    @cached_property
    def coverage(self) -> list[UnwindCoverage]:
        """How much of the program's code has rows, which functions have none, and how far rows agree with `.eh_frame`.

        One for each section of a file that also has an `.eh_frame`.
        """
        return [
            UnwindCoverage(
                section=row["section"],
                num_functions=row["num_functions"],
                eh_frame_bytes=row["eh_frame_bytes"],
                eh_frame_functions=row["eh_frame_functions"],
                code=[CodeSection(*one) for one in row["code"]],
                without=[
                    UncoveredFunction(start, size, name, unsupported_text(code, detail))
                    for start, size, name, code, detail in row["without"]
                ],
                agreement=EhFrameAgreement(
                    num_functions=row["compared_functions"],
                    num_stretches=row["compared_stretches"],
                    num_bytes=row["compared_bytes"],
                    unmatched_bytes=row["unmatched_bytes"],
                    num_disagreements=row["num_disagreements"],
                    is_complete=row["is_complete"],
                ),
            )
            for row in _core.sframe_coverage(self.recording._core)
        ]

    def find(self, addresses: Iterable[int]) -> LookupTable:
        """Function and row of each address, in the order of the addresses.

        Args:
            addresses: Addresses as the file is laid out: numbers, or a buffer of 64-bit numbers such as a NumPy array.

        Returns:
            A row per address: function, offset of the unwind row, rules for CFA, frame pointer and return address.

        Raises:
            UsageError: Functions of an object file or an archive overlap at an address: sections begin at 0.
        """
        data = _as_uint64_bytes(addresses)
        if any(header.address == 0 for header in self.headers):
            self._check_not_shared(data)
        return LookupTable("unwind_lookups", lambda: _core.sframe_find(self.recording._core, data))

    def _check_not_shared(self, data: bytes | memoryview) -> None:
        """In an object file, each section of code begins at 0: an address may be in functions of several."""
        starts, ends = [], []
        end = 0
        table = Columns(self.recording.tables["unwind_functions"])
        for start, size in sorted(table.tuples("start_address", "size_bytes")):
            if size and start < end:
                starts.append(start)
                ends.append(max(start + size, end))
            end = max(start + size, end)
        for (address,) in iter_unpack("=Q", data):
            last = bisect_right(starts, address) - 1
            if last >= 0 and address < ends[last]:
                raise UsageError(
                    f"{self.recording.path}: functions overlap around {address:#x}",
                    hint="each section of an object file begins at 0: link it, so that addresses are unique",
                )

    def unwind(
        self, registers: Mapping[str, int], stack: bytes | bytearray | memoryview, *, bias: int = 0
    ) -> UnwoundStack:
        """Unwinds a stack with the rows of this file only; `perfuse.fuse` unwinds the stacks of a `perf.data`.

        Args:
            registers: `pc` and `sp` at least; `fp`, on machines with a link register `ra`, and others by their DWARF
                number such as `r10`, where rows refer to them.
            stack: Bytes from the stack pointer upwards, in the machine's byte order.
            bias: Difference between the addresses in memory and in the file.

        Raises:
            ValueError: A register does not exist, `pc` or `sp` is missing, or the machine is unknown.
        """
        data = bytes(stack)
        frames, stop = _core.sframe_unwind(self.recording._core, registers, data, bias)
        return UnwoundStack(tuple(UnwoundFrame(*frame) for frame in frames), stop)

    def readelf(self, style: str) -> Iterator[bytes]:
        """The text of `readelf --sframe` as one of its versions writes it, in blocks.

        The text of an archive is that of each member, after its name.

        Args:
            style: One of `STYLES`.

        Raises:
            UsageError: That version does not print a section.
        """
        texts = [self._text(style, index) for index in self._members or (0,)]
        return chain.from_iterable(chain([title] if title else [], text) for title, text in texts)

    def write_readelf(self, style: str, out: IO[bytes]) -> None:
        """Writes the text of `readelf`; faster than `readelf` where `out` is a plain file.

        Args:
            style: One of `STYLES`.
            out: An open file.

        Raises:
            UsageError: That version does not print a section.
        """
        for index in self._members or (0,):
            title, text = self._text(style, index)
            out.write(title)
            text.write(descriptor_of(out))

    @property
    def _members(self) -> dict[int, str]:
        """Names of the members of an archive by the index of their section."""
        return {header.section: header.member for header in self.headers if header.member}

    def _text(self, style: str, section: int) -> tuple[bytes, _core.SFrameText]:
        """The title of a section, which is empty unless the file is an archive, and its text."""
        if style not in STYLES:
            raise UsageError(f"no style {style!r}", field="style", hint=f"known: {', '.join(STYLES)}")
        member = self._members.get(section)
        where = self.recording.path if member is None else f"{self.recording.path}({member})"
        try:
            text = _core.SFrameText(self.recording._core, style, section)
        except ValueError as error:
            raise UsageError(f"{where}: {error}") from None
        return (b"" if member is None else f"\nFile: {where}\n".encode()), text

    def merge(self) -> Section:
        """One sorted section with the functions of all headers of the first section."""
        return Section.merge(self._first_section)

    def convert(
        self, version: int | None = None, *, arch: str | None = None, pcrel: bool | None = None
    ) -> ConvertedSection:
        """The first section in another version, with everything that is not representable there.

        The functions of several headers are merged into one sorted section.

        Args:
            version: 1, 2 or 3. Default: that of each header.
            arch: As for `Section.convert`.
            pcrel: As for `Section.convert`.

        Raises:
            ExportError: Headers differ in version or machine, and `version` or `arch` is not given.
            UsageError: `pcrel` is given for version 1 or 3.
        """
        sections = self._first_section
        unsupported: list[UnsupportedItem] = []
        if (version, arch, pcrel) != (None, None, None):
            converted = [section.convert(version or section.version, arch=arch, pcrel=pcrel) for section in sections]
            sections = [one.section for one in converted]
            unsupported = [item for one in converted for item in one.unsupported]
        return ConvertedSection(sections[0] if len(sections) == 1 else Section.merge(sections), unsupported)

    @property
    def _first_section(self) -> list[Section]:
        """A section for each header of the first section of the file."""
        rows = zip(self.headers, self.sections, strict=True)
        return [section for header, section in rows if header.section == 0]

    def replace(self, section: Section, path: str | PathLike[str], *, index: int = 0) -> None:
        """Writes a copy of the file in which a section is replaced.

        Args:
            section: The new section. It must not be larger than the one it replaces.
            path: File to write; it appears under its name only when it is complete.
            index: Index of the section to replace.

        Raises:
            ExportError: The section is larger, or the file is an object file, whose relocations refer to the section.
        """
        address = next(header.address for header in self.headers if header.section == index)
        data = _core.sframe_put_back(self.recording._core, index, section.encode(address))
        with output_file(Path(path)) as out:
            out.write(data)


def open(source: Input | Recording, *, address: int | None = None) -> SFrame:
    """Opens a file with SFrame sections: ELF, object file, archive, or a section extracted from one.

    Args:
        source: As for `perfuse.open`, or an open recording.
        address: Load address of an extracted section; 0 by default.

    Raises:
        UnreadableInput: The file has no section, or none that begins with a header.
        UsageError: The file is of another format.
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


def _as_uint64_bytes(addresses: Iterable[int]) -> bytes:
    """Addresses as 64-bit numbers in native byte order."""
    try:
        view = memoryview(addresses)  # type: ignore[arg-type]  # raises where it is not a buffer
    except TypeError:
        return array("Q", addresses).tobytes()
    if view.itemsize != 8 or view.format.lstrip("@=") not in ("Q", "L", "q", "l", "N"):
        raise UsageError(f"addresses are 64-bit numbers, not of format {view.format!r}")
    return view.tobytes()
