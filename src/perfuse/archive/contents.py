"""What can be saved with a profile, and code as a saved profile has it."""

from collections.abc import Sequence
from typing import Literal, Protocol

CodeChoice = Literal["none", "sampled", "all"]
"""Which machine code is saved: none, that of code with samples, or all."""
SourceChoice = Literal["none", "used", "all"]
"""Which source texts are saved: none, those of lines with samples, or all that are found."""
LineChoice = Literal["sampled", "all"]
"""Of which code the table of lines is saved for other tools."""

Frames = list[tuple[str, str | None, int | None, int | None]]
"""A function and the calls inlined at an address, the outermost first: name, path, line and column of each."""
SymbolFrames = list[tuple[Frames, int | None]]
"""For each address its frames, and the address of its symbol."""


class NotSavedError(ValueError):
    """Code that a saved profile does not have, since it was not asked for."""

    def __init__(self) -> None:
        super().__init__("it was not saved")


class NativeCode(Protocol):
    """Code of a program or library; `_core.NativeModule` is one."""

    @property
    def file(self) -> str | None:
        """The file on the machine that has it."""
        ...

    @property
    def debug_file(self) -> str | None:
        """The separate file with its symbols and lines."""
        ...

    def function_code(self, address: int, /) -> tuple[int, bytes, int]:
        """First address, code and ELF machine of the function that contains an address of the file."""
        ...

    def frames(self, addresses: Sequence[int], /) -> SymbolFrames:
        """For each address of the file: the function and the calls inlined there, the outermost first."""
        ...
