"""How much of a program SFrame covers, and how far it agrees with the program's `.eh_frame`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfuse import _core

if TYPE_CHECKING:
    from perfuse.recording import Recording


@dataclass(frozen=True, slots=True)
class CodeSection:
    """A section of code.

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


@dataclass(frozen=True, slots=True)
class WithoutRows:
    """A function that SFrame says nothing about.

    Attributes:
        address: Its first address.
        size_bytes: Its size.
        name: Its name; None where no symbol has one.
        why: What `.eh_frame` has of it that SFrame has no words for, or who left it out.
    """

    address: int
    size_bytes: int
    name: str | None
    why: str


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far rows agree with `.eh_frame`.

    Attributes:
        num_functions: Functions that were compared.
        num_stretches: Stretches of code in which neither changes.
        num_bytes: Bytes of code that were compared.
        unmatched_bytes: Bytes of functions that `.eh_frame` says nothing about.
        num_disagreements: Rows that say something else.
        is_complete: Whether all was compared.
    """

    num_functions: int
    num_stretches: int
    num_bytes: int
    unmatched_bytes: int
    num_disagreements: int
    is_complete: bool


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a section tells of its program.

    Attributes:
        section: Index of the section in the file.
        num_functions: Functions by symbols and `.eh_frame`.
        eh_frame_bytes: Size of `.eh_frame` and of the index to it.
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
    without: list[WithoutRows]
    agreement: Agreement


def coverage_of(recording: Recording) -> list[Coverage]:
    """Of each section that has an `.eh_frame` beside it."""
    return [
        Coverage(
            section=row["section"],
            num_functions=row["num_functions"],
            eh_frame_bytes=row["eh_frame_bytes"],
            eh_frame_functions=row["eh_frame_functions"],
            code=[CodeSection(*one) for one in row["code"]],
            without=[WithoutRows(*one) for one in row["without"]],
            agreement=Agreement(
                num_functions=row["compared_functions"],
                num_stretches=row["compared_stretches"],
                num_bytes=row["compared_bytes"],
                unmatched_bytes=row["unmatched_bytes"],
                num_disagreements=row["num_disagreements"],
                is_complete=row["is_complete"],
            ),
        )
        for row in _core.sframe_coverage(recording._core)
    ]
