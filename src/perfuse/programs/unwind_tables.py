"""What a file with unwind tables contains: headers, covered code, and agreement with `.eh_frame`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from perfuse.value_class import value_class

if TYPE_CHECKING:
    from perfuse.recording import Recording


@value_class
class SectionHeader:
    """An SFrame header with its functions. A section has one where a linker merged its inputs, else several.

    Attributes:
        section: Index of the section that contains it.
        member: Member of the archive; empty where the file is not an archive.
        offset: Offset of the header in the file.
        address: Address of the header in memory.
        version: 1, 2 or 3.
        abi: Machine; None where unknown.
        flags: Flags of the header.
        num_functions: Functions, as the header states.
        num_rows: Rows, as the header states.
        header_bytes: Size of the header and of what follows it before the functions.
        entries_bytes: Size of the function entries.
        rows_bytes: Size of the rows; in version 3 with attributes of functions.
        size_bytes: Size of all.
        starts: What start fields are relative to: `section` or `field`.
        because: How `starts` was determined.
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


@value_class
class CodeSection:
    """How much of a section of code SFrame functions cover.

    Attributes:
        name: Its name.
        address: Its first address.
        size_bytes: Its size.
        covered_bytes: Bytes in functions of SFrame.
        eh_frame_bytes: Bytes in functions of `.eh_frame`.
    """

    name: str
    address: int
    size_bytes: int
    covered_bytes: int
    eh_frame_bytes: int


@value_class
class UncoveredFunction:
    """A function without SFrame rows.

    Attributes:
        address: Its first address.
        size_bytes: Its size.
        name: Its name; None where it has no symbol.
        why: The content of `.eh_frame` that SFrame cannot represent, or the program that left it out.
    """

    address: int
    size_bytes: int
    name: str | None
    why: str


@value_class
class EhFrameAgreement:
    """How far rows agree with `.eh_frame`.

    Attributes:
        num_functions: Functions that were compared.
        num_stretches: Ranges of code in which neither changes.
        num_bytes: Bytes of code that were compared.
        unmatched_bytes: Bytes of functions that are not in `.eh_frame`.
        num_disagreements: Rows that differ.
        is_complete: Whether everything was compared.
    """

    num_functions: int
    num_stretches: int
    num_bytes: int
    unmatched_bytes: int
    num_disagreements: int
    is_complete: bool


@value_class
class UnwindCoverage:
    """How much of a program a section covers.

    Attributes:
        section: Index of the section in the file.
        num_functions: Functions according to symbols and `.eh_frame`.
        eh_frame_bytes: Size of `.eh_frame` and of its index.
        eh_frame_functions: Functions in `.eh_frame`.
        code: Sections of code.
        without: Functions without rows, by address.
        agreement: How far rows agree with `.eh_frame`.
    """

    section: int
    num_functions: int
    eh_frame_bytes: int
    eh_frame_functions: int
    code: list[CodeSection]
    without: list[UncoveredFunction]
    agreement: EhFrameAgreement


class EncodableSection(Protocol):
    """A section that can be written; `perfuse.sframe.Section` is one."""

    def optimise(self) -> EncodableSection:
        """The same with equal rows shared."""
        ...

    def encode(self, address: int, *, sort: bool = True) -> bytes:
        """The section as bytes."""
        ...


class UnwindTables(Protocol):
    """An open file with unwind tables; `perfuse.sframe.SFrame` is one."""

    @property
    def recording(self) -> Recording:
        """The open file."""
        ...

    @property
    def headers(self) -> tuple[SectionHeader, ...]:
        """Headers in file order."""
        ...

    @property
    def sections(self) -> Sequence[EncodableSection]:
        """A section for each header."""
        ...

    @property
    def coverage(self) -> list[UnwindCoverage]:
        """Coverage of each section of a file that also has an `.eh_frame`."""
        ...
