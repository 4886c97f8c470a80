"""Sections of SFrame that can be changed and written; `perfuse.formats.sframe` has them under its own name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import NamedTuple, Self

from perfuse import _core


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
