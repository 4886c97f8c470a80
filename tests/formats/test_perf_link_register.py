"""`perf record -g` on 64-bit Arm: link registers, which have the callers of functions that store none."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

import perf_crafting as crafting
import perfuse as pf
from perf_crafting import Attribute, PerfFile

BASE, PID = 0x7F00_0000_0000, 700
LINK_REGISTER = 30
HEADER_ARCH = 6
FIELDS = crafting.IP | crafting.TID | crafting.TIME | crafting.CALLCHAIN | crafting.PERIOD


def _recorded(path: Path, program: Path, samples: list[tuple[list[int], int]]) -> Path:
    """Samples of a program, each with its chain in user mode and the link register."""
    plain = Attribute.of((1, 0), FIELDS)
    attr = bytearray(plain.attr)
    attr[24:32] = (FIELDS | crafting.REGS_USER).to_bytes(8, "little")
    attr[80:88] = (1 << LINK_REGISTER).to_bytes(8, "little")
    attribute = replace(plain, attr=bytes(attr))
    with program.open("rb") as file:
        loads = [one for one in ELFFile(file).iter_segments("PT_LOAD") if one["p_flags"] & 1]
    records = [crafting.comm(attribute, PID, PID, program.stem)]
    for load in loads:
        start, size = BASE + load["p_vaddr"], load["p_memsz"]
        records.append(crafting.mmap2(attribute, PID, str(program), start, size, load["p_offset"]))
    for number, (chain, link) in enumerate(samples):
        record = crafting.sample(
            plain, ip=chain[0], pid=PID, tid=PID, time=1000 + number, chain=[crafting.CONTEXT_USER, *chain]
        )
        records.append(replace(record, body=record.body + struct.pack("<QQ", 2, link)))
    architecture = struct.pack("<I", 64) + b"aarch64".ljust(64, b"\0")
    return PerfFile([attribute], records, {HEADER_ARCH: architecture}).write(path)


def _rows(program: Path) -> list[tuple[int, bool]]:
    """First addresses of rows of `.eh_frame`, and whether the return address is in the link register there."""
    rows = []
    with program.open("rb") as file:
        for entry in ELFFile(file).get_dwarf_info().EH_CFI_entries():
            if hasattr(entry.header, "initial_location"):
                decoded = entry.get_decoded().table
                rows += [(row["pc"], LINK_REGISTER not in row) for row in decoded if row["pc"] % 4 == 0]
    return rows


def _chains(path: Path) -> dict[int, list[int]]:
    rows = (
        pf.fuse(path)
        .sql("""
        WITH RECURSIVE up AS (
            SELECT ts_ns, stack_id, 0 AS n FROM samples
            UNION ALL
            SELECT ts_ns, parent_stack_id, n + 1 FROM up JOIN stacks USING (stack_id)
            WHERE parent_stack_id IS NOT NULL)
        SELECT ts_ns, list(address ORDER BY n) FROM up JOIN stacks USING (stack_id) JOIN frames USING (frame_id)
        WHERE inline_depth = 0 GROUP BY 1""")
        .fetchall()
    )
    return dict(rows)


@pytest.mark.parametrize("name", ["v1/aarch64/small.so", "v2/aarch64/libsqlite.so"])
def test_the_caller_of_a_leaf_is_in_the_link_register(tmp_path: Path, sframe_corpus: Path, name: str) -> None:
    """The register is used where `.eh_frame`, as pyelftools reads it, states no other place of the return address."""
    program = sframe_corpus / name
    rows = _rows(program)
    link, outer = BASE + rows[0][0] + 4, BASE + rows[-1][0] + 4
    samples = [([BASE + pc, outer], link) for pc, _ in rows]
    path = _recorded(tmp_path / "perf.data", program, samples)
    assert [one.code for one in pf.open(path).check()] == []
    found = _chains(path)
    expected = {
        1000 + number: [BASE + pc, *([link] if in_register else []), outer]
        for number, (pc, in_register) in enumerate(rows)
    }
    assert found == expected
    assert {in_register for _, in_register in rows} == {False, True}


def test_a_caller_is_not_added_twice(tmp_path: Path, sframe_corpus: Path) -> None:
    program = sframe_corpus / "v1" / "aarch64" / "small.so"
    rows = _rows(program)
    pc = next(pc for pc, in_register in rows if in_register)
    caller, outer = BASE + rows[-1][0] + 4, BASE + rows[0][0] + 4
    recorded = [([BASE + pc, caller, outer], caller)]
    assert _chains(_recorded(tmp_path / "perf.data", program, recorded)) == {1000: [BASE + pc, caller, outer]}
