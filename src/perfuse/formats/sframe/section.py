"""SFrame sections that can be changed and written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import NamedTuple, Self

from perfuse import _core
from perfuse.errors import UsageError
from perfuse.formats.sframe.unsupported import TEXTS, unsupported_text
from perfuse.output.file import check_target, output_file
from perfuse.value_class import value_class


class UnwindRule(NamedTuple):
    """How a value is computed: `base + offset`, or the memory at that address.

    Attributes:
        base: `sp`, `fp`, `cfa`, or another register by its DWARF number such as `r10`.
        offset: Bytes added to it.
        deref: Whether the value is read from memory at `base + offset`.
    """

    base: str
    offset: int = 0
    deref: bool = False


class UnwindRow(NamedTuple):
    """How to unwind from an offset of a function on, up to the next row.

    Attributes:
        start: Offset from the function's start, or in the repeated block.
        cfa: The stack pointer before the call; None for the outermost frame.
        fp: Location of the caller's frame pointer; None where it is still in its register.
        ra: Location of the return address; None where it is in its register, or where the header fixes it (amd64).
        ra_mangled: Whether the return address is signed (aarch64).
    """

    start: int
    cfa: UnwindRule | None
    fp: UnwindRule | None = None
    ra: UnwindRule | None = None
    ra_mangled: bool = False


@value_class
class UnsupportedItem:
    """Something that the target version cannot represent.

    Attributes:
        function: First address of the function; None for an item of the whole section.
        row: Zero-based index of the row, for an item of a row (of `.eh_frame`, in a section made from that).
        what: What is not representable.
        left_out: Whether the function was left out, because stacks would be unwound incorrectly with its other rows.
    """

    function: int | None
    row: int | None
    what: str
    left_out: bool


class Section:
    """A section that can be changed and written. `Section(3, "x86_64")` creates an empty one.

    Args:
        version: 1, 2 or 3.
        arch: `x86_64`, `aarch64`, `aarch64_be` or `s390x`.

    Raises:
        ValueError: The version does not exist, or SFrame has no ABI for the machine.
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
        """Number of functions."""
        return len(self._core)

    def add(
        self,
        start: int,
        size: int,
        rows: Iterable[UnwindRow],
        *,
        repeat_bytes: int = 0,
        signal: bool = False,
        key_b: bool = False,
    ) -> None:
        """Adds a function. In version 3, rows are written as FLEX where they need it.

        Args:
            start: First address.
            size: Size in bytes.
            rows: Its rows, ascending.
            repeat_bytes: Size of the repeated block of code, for a PLT; else 0.
            signal: Whether the kernel enters it for a signal (version 3).
            key_b: Whether it signs return addresses with key B (aarch64).

        Raises:
            ValueError: A row is not representable in this version.
        """
        try:
            self._core.add(start, size, list(rows), repeat_bytes, signal, key_b)
        except ValueError as error:
            code = str(error)
            raise ValueError(TEXTS.get(code, code)) from None

    def convert(self, version: int, *, arch: str | None = None, pcrel: bool | None = None) -> ConvertedSection:
        """The section in another version, with everything that is not representable there.

        Args:
            version: 1, 2 or 3.
            arch: `aarch64` or `aarch64_be`, to change the byte order.
            pcrel: Whether start addresses of version 2 are relative to their own fields
                (`SFRAME_F_FDE_FUNC_START_PCREL`), which binutils 2.45 and newer and LLVM read, or to the section, as
                binutils 2.41 to 2.44 read them. By default version 2 stays as it is, and other versions become
                relative to the section.

        Raises:
            ExportError: The machine is of another kind; rows refer to the registers of one machine.
            UsageError: `pcrel` is given for version 1 or 3.
        """
        if pcrel is not None and version != 2:
            fixed = "always" if version == 3 else "never"
            raise UsageError(f"start addresses of version {version} are {fixed} relative to their fields: omit pcrel")
        core, items = (self._core if arch is None else self._core.for_arch(arch)).convert(version, pcrel)
        return ConvertedSection(Section._of(core), [_unsupported_item(*item) for item in items])

    def optimise(self) -> Section:
        """The section in fewer bytes: functions with equal rows share them. Readers see the same content."""
        core, _ = self._core.optimised()
        return Section._of(core)

    def encode(self, address: int, *, sort: bool = True) -> bytes:
        """The section as bytes.

        Args:
            address: Its load address: start fields are relative to it.
            sort: Sort functions by address, as linkers do. False keeps their order.

        Raises:
            ExportError: A value does not fit its field: code more than 2 GiB away, in versions 1 and 2.
        """
        return self._core.encode(address, sort)

    def write_into(self, program: str | PathLike[str], path: str | PathLike[str]) -> None:
        """Writes a copy of a program or library with this section, in a loaded segment.

        It replaces an existing section where it fits there, else it is appended to the file in a segment of its own.
        Functions are sorted.

        Args:
            program: ELF file.
            path: File to write, with the program's permissions; it appears under its name only when it is complete.

        Raises:
            UnreadableInput: The program cannot be read.
            ExportError: It is an object file, or code is more than 2 GiB away (versions 1 and 2).
        """
        target = Path(path)
        check_target(target, Path(program))
        data = _core.sframe_into(fspath(program), self._core, True)
        with output_file(target) as out:
            out.write(data)
        if target.is_file():
            target.chmod(Path(program).stat().st_mode & 0o777)

    @staticmethod
    def merge(sections: Sequence[Section]) -> Section:
        """One sorted section with the functions of several, each function once.

        Raises:
            ExportError: They are of different versions or machines.
        """
        core, _ = _core.SFrameSection.merged([section._core for section in sections])
        return Section._of(core)


def _unsupported_item(
    function: int | None, row: int | None, code: str, left_out: bool, detail: str = ""
) -> UnsupportedItem:
    return UnsupportedItem(function, row, unsupported_text(code, detail), left_out)


@value_class
class ConvertedSection:
    """A section in another version.

    Attributes:
        section: The section.
        unsupported: Everything that version cannot represent, by function and row.
    """

    section: Section
    unsupported: list[UnsupportedItem]


def from_eh_frame(program: str | PathLike[str], *, version: int = 3) -> ConvertedSection:
    """A section made from the `.eh_frame` of a finished program.

    For a JITDUMP it is made from the unwinding records of the code that exists at its end.

    Args:
        program: ELF program, library or object file, for x86_64, aarch64 or s390x; or a JITDUMP.
        version: 1, 2 or 3. Version 3 represents the most.

    Returns:
        The section, and every function that is not in it, with the reason.

    Raises:
        UnreadableInput: The file is of another format, or has no `.eh_frame`.
        ValueError: The version does not exist.
    """
    core, items = _core.sframe_from_eh_frame(fspath(program), version)
    return ConvertedSection(Section._of(core), [_unsupported_item(*item) for item in items])
