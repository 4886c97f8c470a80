"""How the stacks of a native program are recorded, by what its file contains."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

from perfuse.capture.runtime import Stacks

MOSTLY = 0.5
"""Share of functions with a frame pointer from which a program counts as compiled with them."""
FEW_FUNCTIONS = 24
"""A program with fewer functions consists mostly of those that the C library adds, which have none."""
FRAME_POINTERS_ARE_USUAL = frozenset({"aarch64"})
"""Machines whose compilers set up frame records by default, while their tables refer to the stack pointer."""


@dataclass(frozen=True, slots=True)
class StackMethod:
    """A way to record stacks, and why it was chosen."""

    stacks: Stacks
    why: str


def of_native(program: Path) -> StackMethod:
    """The way that gives a native program's callers.

    SFrame and `.eh_frame` are used on copies of stacks: no kernel unwinds with them itself.
    """
    sections = _sections(program)
    if ".gopclntab" in sections or ".go.buildinfo" in sections:
        return StackMethod("fp", "Go keeps frame pointers")
    if ".sframe" in sections:
        return StackMethod("dwarf", "the program has SFrame tables, which unwind copied stacks")
    if platform.machine() in FRAME_POINTERS_ARE_USUAL:
        return StackMethod("fp", "compilers for this machine keep frame pointers")
    return _by_functions(*_frame_pointers(program))


def _by_functions(num_with: int, num_functions: int) -> StackMethod:
    if num_functions == 0:
        return StackMethod("fp", "the program has no .eh_frame to unwind copied stacks with")
    share = num_with / num_functions
    if share >= MOSTLY or (num_functions <= FEW_FUNCTIONS and num_with > 0):
        return StackMethod("fp", f"{num_with} of {num_functions} functions of the program set up frame pointers")
    return StackMethod("dwarf", f"only {num_with} of {num_functions} functions of the program set up frame pointers")


def _frame_pointers(program: Path) -> tuple[int, int]:
    """How many functions of `.eh_frame` find their frame by the frame pointer, of how many; 0 where unreadable."""
    import perfuse
    from perfuse import sframe
    from perfuse.table import Columns

    try:
        made = sframe.from_eh_frame(program)
        if len(made.section) == 0:
            return 0, 0
        table = Columns(perfuse.open(made.section.encode(0)).tables["unwind_rows"])
    except (perfuse.PerfuseError, OSError):
        return 0, 0
    functions = set(table["unwind_function_id"])
    with_pointer = {
        function for function, base in zip(table["unwind_function_id"], table["cfa_base"], strict=True) if base == "fp"
    }
    return len(with_pointer), len(functions)


def _sections(program: Path) -> frozenset[str]:
    """Names of the sections of an ELF file; none where it is not one."""
    import struct

    try:
        with program.open("rb") as file:
            head = file.read(64)
            if head[:6] != b"\x7fELF\x02\x01":
                return frozenset()
            (offset,) = struct.unpack_from("<Q", head, 0x28)
            entry_bytes, num_sections, names_index = struct.unpack_from("<HHH", head, 0x3A)
            if entry_bytes != 64 or not num_sections:
                return frozenset()
            file.seek(offset)
            headers = file.read(entry_bytes * num_sections)
            names_at, names_bytes = struct.unpack_from("<QQ", headers, names_index * 64 + 0x18)
            file.seek(names_at)
            names = file.read(min(names_bytes, 1 << 20))
    except (OSError, struct.error):
        return frozenset()
    found = set()
    for start in range(0, len(headers) - 63, 64):
        (name_at,) = struct.unpack_from("<I", headers, start)
        found.add(names[name_at : names.find(b"\0", name_at)].decode("ascii", "replace"))
    return frozenset(found)


def has_instrumentation_map(program: Path) -> bool:
    """Whether a program was compiled with `-fxray-instrument`."""
    return "xray_instr_map" in _sections(program)
