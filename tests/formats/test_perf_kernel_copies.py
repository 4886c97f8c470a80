"""Symbols of the recorded kernel that are beside the recording: `perf record --kcore`, and lists in `--symbols`."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import perf_crafting as crafting
import perfuse as pf
from perf_crafting import Attribute, PerfFile, Record

TEXT = 0xFFFFFFFF9A000000
MODULE = 0xFFFFFFFFC0B00000
KALLSYMS = f"""\
{TEXT:x} T _text
{TEXT + 0x100:x} t do_work
{TEXT + 0x200:x} T other_work
{MODULE:x} t module_start\t[crafted_module]
{MODULE + 0x80:x} t module_work\t[crafted_module]
{MODULE + 0x100:x} t module_end\t[crafted_module]
"""
MODULES = f"crafted_module 16384 0 - Live 0x{MODULE:016x}\n"


def _mapping(attribute: Attribute, path: str, start: int, size: int, offset: int) -> Record:
    body = struct.pack("<IIQQQ", 0xFFFFFFFF, 0, start, size, offset) + crafting.text(path)
    return Record(crafting.MMAP, 1, body + attribute.sample_id())


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A directory with two samples in the kernel and one in a module, without the kernel's symbols."""
    head = crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD
    attribute = Attribute.of((1, 0), head | crafting.CALLCHAIN)
    addresses = (TEXT + 0x110, TEXT + 0x240, MODULE + 0x90)
    records = [
        _mapping(attribute, "[kernel.kallsyms]_text", TEXT, 0x1000000, TEXT),
        _mapping(attribute, "[crafted_module]", MODULE, 0x4000, 0),
        *(crafting.sample(attribute, ip=ip, pid=1, tid=1, time=10 + ip % 512, chain=[ip], misc=1) for ip in addresses),
    ]
    directory = tmp_path / "recorded"
    directory.mkdir()
    PerfFile([attribute], records).write(directory / "data")
    return directory


def _write_copies(directory: Path) -> None:
    directory.mkdir(exist_ok=True)
    (directory / "kallsyms").write_text(KALLSYMS)
    (directory / "modules").write_text(MODULES)


def _names(profile: pf.Profile) -> list[tuple[str | None]]:
    return profile.sql("""SELECT f.name FROM samples s JOIN stacks USING (stack_id) JOIN frames USING (frame_id)
        LEFT JOIN functions f USING (function_id) ORDER BY frames.address""").fetchall()


NAMED = [("do_work",), ("other_work",), ("module_work",)]


def test_the_copy_in_the_directory_names_the_kernel(recording: Path) -> None:
    _write_copies(recording / "kcore_dir")
    assert _names(pf.fuse(recording)) == NAMED


def test_a_function_that_was_interrupted_at_its_start_is_itself(tmp_path: Path) -> None:
    """Before it is padding, which has a symbol of its own and calls nothing; perf names the address so."""
    attribute = Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD | crafting.CALLCHAIN)
    chain = [TEXT + 0x210, TEXT + 0x100, TEXT + 0x140, TEXT + 0x300]
    records = [
        _mapping(attribute, "[kernel.kallsyms]_text", TEXT, 0x1000000, TEXT),
        crafting.sample(attribute, ip=chain[0], pid=1, tid=1, time=10, chain=chain, misc=1),
    ]
    PerfFile([attribute], records).write(tmp_path / "perf.data")
    symbols = ("_text", 0), ("__pfx_entered", 0xF0), ("entered", 0x100), ("leaf", 0x200), ("after_the_call", 0x300)
    (tmp_path / "kallsyms").write_text("".join(f"{TEXT + at:x} t {name}\n" for name, at in symbols))
    # The call of the outermost frame is the last instruction of `leaf`.
    found = (
        pf.fuse(tmp_path / "perf.data", symbol_dirs=[tmp_path])
        .sql("""
        SELECT name::VARCHAR, address FROM stacks JOIN frames USING (frame_id) JOIN functions USING (function_id)
        ORDER BY depth DESC""")
        .fetchall()
    )
    assert found == list(zip(("leaf", "entered", "entered", "leaf"), chain, strict=True))


def test_a_list_in_a_given_directory_names_the_kernel(recording: Path, tmp_path: Path) -> None:
    _write_copies(tmp_path / "symbols")
    assert _names(pf.fuse(recording, symbol_dirs=[tmp_path / "symbols"])) == NAMED


def test_a_list_of_another_boot_is_not_used(recording: Path) -> None:
    _write_copies(recording / "kcore_dir")
    for name in ("kallsyms", "modules"):
        file = recording / "kcore_dir" / name
        file.write_text(file.read_text().replace("ffffffff9a", "ffffffff9b").replace("ffffffffc0b", "ffffffffc0c"))
    assert not {name for (name,) in _names(pf.fuse(recording))} & {name for (name,) in NAMED}


def test_code_after_the_kernels_mapping_is_the_kernels(tmp_path: Path) -> None:
    """perf maps the kernel up to `_etext`; what an idle processor ran at its start is after the kernel's data."""
    attribute = Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD)
    start, module, beyond = TEXT + 0x2000000, TEXT + 0x3000000, TEXT + 0x9000000
    records = [
        _mapping(attribute, "[kernel.kallsyms]_text", TEXT, 0x1000000, TEXT),
        _mapping(attribute, "[crafted_module]", module, 0x4000, 0),
        *(
            crafting.sample(attribute, ip=ip, pid=1, tid=1, time=number, misc=1)
            for number, ip in enumerate((start + 0x10, start - 0x10, module + 0x5000, beyond), 1)
        ),
    ]
    PerfFile([attribute], records).write(tmp_path / "perf.data")
    symbols = (TEXT, "T _text"), (TEXT + 0x1000000, "D data"), (start, "T start_kernel"), (beyond, "T beyond")
    (tmp_path / "kallsyms").write_text("".join(f"{at:x} {name}\n" for at, name in symbols))
    found = (
        pf.fuse(tmp_path / "perf.data", symbol_dirs=[tmp_path])
        .sql("""
        SELECT name::VARCHAR, unnamed_because FROM samples JOIN stacks USING (stack_id) JOIN frames USING (frame_id)
        LEFT JOIN functions USING (function_id) ORDER BY ts_ns""")
        .fetchall()
    )
    outside = "no kernel mapping was recorded here"
    assert found[0] == ("start_kernel", None)
    assert found[1] == (None, "no kernel symbol covers this address")
    assert found[2:] == [(None, outside), (None, outside)]
