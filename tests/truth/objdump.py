"""The instructions that GNU objdump prints of an ELF file, by symbol, in a form in which two disassemblers agree.

What is ignored is listed in docs/decisions/2026-11-23-disassemblers.md.
"""

from __future__ import annotations

import itertools
import re
import subprocess
from bisect import bisect_left
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from elftools.elf.elffile import ELFFile

_WITHOUT_EFFECT = re.compile(r"^((?:lock|repz?|repnz|notrack|bnd|fs|gs) )*((?:rex(?:\.\w+)?|data16|cs|ds|es|ss) )+")
_BRANCH = re.compile(
    r"^((?:[a-z]+ )*(?:call|jmp|j[a-z]+(?:,p[nt])?|loop\w*|xbegin"
    r"|b|bl|b\.\w+|cbn?z \w+,|tbn?z \w+, #\d+,|adrp? \w+,|ldr \w+,|ldrsw \w+,|prfm \w+,))"
    r" (?:0x)?([0-9a-f]+)$"
)


class Line(NamedTuple):
    """An instruction: its offset in the function, its size and its text."""

    offset: int
    size: int
    text: str


@dataclass(frozen=True, slots=True)
class Function:
    """A symbol with its code and its instructions, which are empty where they were not asked for."""

    name: str
    address: int
    code: bytes
    lines: list[Line]


def functions(elf: Path, objdump: str = "objdump", chosen: Container[int] | None = None) -> Iterator[Function]:
    """The functions of an ELF file, in the order of its symbol table; instructions only of chosen numbers in it."""
    done = subprocess.run([objdump, "-d", "-w", "-z", elf], capture_output=True, check=True)
    at: dict[int, tuple[int, str]] = {}
    for line in done.stdout.decode(errors="replace").split("\n"):
        # `  4f0:`, the bytes, and the instruction, which is absent where bytes continue on another line.
        address, *columns = line.split("\t", 2)
        if columns and address.endswith(":"):
            at[int(address[:-1], 16)] = len(columns[0].replace(" ", "")) // 2, columns[1] if len(columns) > 1 else ""
    addresses = sorted(at)
    numbers = itertools.count()
    image = elf.read_bytes()
    with elf.open("rb") as file:
        table = ELFFile(file)
        sections = list(table.iter_sections())
        for symbol in table.get_section_by_name(".symtab").iter_symbols():
            if symbol["st_info"]["type"] != "STT_FUNC" or not symbol["st_size"]:
                continue
            start, size = symbol["st_value"], symbol["st_size"]
            section = sections[symbol["st_shndx"]]
            offset = start - section["sh_addr"] + section["sh_offset"]
            inside = addresses[bisect_left(addresses, start) : bisect_left(addresses, start + size)]
            if chosen is not None and next(numbers) not in chosen:
                inside = []
            lines = [Line(one - start, at[one][0], common_form(at[one][1], start)) for one in inside]
            yield Function(symbol.name, start, image[offset : offset + size], lines)


def common_form(text: str, start: int) -> str:
    """An instruction without comments, names, and prefixes without an effect; targets are relative to `start`."""
    operation, target = _parts(text)
    return operation if target is None else f"{operation} {(target - start) % (1 << 64):x}"


@cache
def _parts(text: str) -> tuple[str, int | None]:
    """The common form of an instruction; for a branch without its target, which is apart."""
    text = " ".join(re.split(r"\s*(?:# |//|<)", text, maxsplit=1)[0].split())
    if text.startswith(".byte "):
        # An instruction that the end of the code cuts.
        return "(bad)", None
    text = text.removeprefix("{evex} ")
    text = _WITHOUT_EFFECT.sub(lambda match: match[1] or "", text)
    branch = _BRANCH.match(text)
    return (branch[1], int(branch[2], 16)) if branch else (text, None)
