"""Mappings with names of memory: programs that were loaded into it, and code of JIT compilers that is mapped again."""

from __future__ import annotations

import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import perf_crafting as crafting
import perfuse as pf
from needs import need
from perf_crafting import Attribute, PerfFile, sample

PID, CODE, SIZE, SECOND = 7, 0x7000_0000, 0x1000, 1_000_000_000
EVENT = Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD)
SOURCE = """
#define FUNCTION(name) __attribute__((noinline)) unsigned long name(unsigned long n) { return n * n + n / 7; }
FUNCTION(first) FUNCTION(second) FUNCTION(third)
int main(void) { return (int)(first(1) + second(2) + third(3)); }
"""
NAMES = """SELECT f.name FROM samples JOIN stacks USING (stack_id) JOIN frames USING (frame_id)
    LEFT JOIN functions f USING (function_id) ORDER BY ts_ns"""


def _names(profile: pf.Profile) -> list[str | None]:
    return [name for (name,) in profile.sql(NAMES).fetchall()]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need("gcc", "nm", "readelf")
    directory = tmp_path_factory.mktemp("program")
    (directory / "program.c").write_text(SOURCE)
    command = ["gcc", "-O1", "-no-pie", "-Wl,--build-id=sha1", "-o", "program", "program.c"]
    subprocess.run(command, cwd=directory, check=True)
    return directory / "program"


def _recorded(program: Path, path: str, into: Path, *, with_id: bool) -> tuple[Path, list[str]]:
    """A recording of a program at a path, with a sample in each function, and their names by nm."""
    printed = subprocess.run(["nm", program], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in printed.splitlines()]
    symbols = {row[2]: int(row[0], 16) for row in rows if row[-1] in {"first", "second", "third", "main"}}
    notes = subprocess.run(["readelf", "-n", program], check=True, capture_output=True, text=True).stdout
    [build_id] = [line.split()[-1] for line in notes.splitlines() if "Build ID:" in line]
    identity = bytes.fromhex(build_id) if with_id else b""
    # Programs that are not relocatable begin at this address, and their addresses in files follow from it.
    records = [crafting.mmap2(EVENT, PID, path, 0x400000, 0x4000, build_id=identity)]
    for number, address in enumerate(symbols.values()):
        records.append(sample(EVENT, ip=address + 1, pid=PID, tid=PID, time=number + 1))
    return PerfFile([EVENT], records).write(into / "perf.data"), list(symbols)


def test_programs_in_memory_are_found_by_their_build_id(program: Path, tmp_path: Path) -> None:
    recorded, symbols = _recorded(program, "/memfd:program (deleted)", tmp_path, with_id=True)
    assert len(symbols) == 4
    assert _names(pf.fuse(recorded, symbol_dirs=[program.parent])) == symbols
    assert _names(pf.fuse(recorded)) == [None] * 4


def test_files_in_shared_memory_are_files(program: Path, tmp_path: Path) -> None:
    place = tmp_path / "root" / "dev" / "shm" / "program"
    place.parent.mkdir(parents=True)
    place.write_bytes(program.read_bytes())
    recorded, symbols = _recorded(program, "/dev/shm/program", tmp_path, with_id=False)
    assert _names(pf.fuse(recorded, symbol_dirs=[tmp_path / "root"])) == symbols


def _mapped_again(path: str, directory: Path) -> list[str | None]:
    """Names of code before and after something else is mapped where it is."""
    later = crafting.mmap2(EVENT, PID, path, CODE, SIZE, prot=5)
    later = replace(later, body=later.body[: -len(EVENT.sample_id())] + EVENT.sample_id(PID, PID, 12 * SECOND))
    records = [
        crafting.mmap2(EVENT, PID, f"/app/jit-{PID}.dump", 0x1000_0000, SIZE),
        sample(EVENT, ip=CODE + 8, pid=PID, tid=PID, time=11 * SECOND),
        later,
        sample(EVENT, ip=CODE + 8, pid=PID, tid=PID, time=13 * SECOND),
    ]
    body = struct.pack("<IIQQQQ", PID, PID, CODE, CODE, 0x40, 1) + b"compiled\0" + b"\x90" * 0x40
    dump = struct.pack("<4sIIIIIQQ", b"DTiJ", 1, 40, 62, 0, PID, 10 * SECOND, 0)
    dump += struct.pack("<IIQ", 0, 16 + len(body), 10 * SECOND) + body
    dump_path = directory / f"jit-{PID}.dump"
    dump_path.write_bytes(dump)
    return _names(pf.fuse(PerfFile([EVENT], records).write(directory / "perf.data"), dump_path))


MEMORY = [
    "//anon",
    "/memfd:code (deleted)",
    "/anon_hugepage (deleted)",
    "/SYSV00000000 (deleted)",
    "/dev/zero (deleted)",
]


@pytest.mark.parametrize("path", MEMORY)
def test_memory_that_is_mapped_again_keeps_its_code(path: str, tmp_path: Path) -> None:
    """As where a compiler makes pages executable after it has written them: perf removes these mappings too."""
    assert _mapped_again(path, tmp_path) == ["compiled", "compiled"]


def test_a_file_that_is_mapped_replaces_code(tmp_path: Path) -> None:
    """Where no mapping of the code itself was recorded."""
    assert _mapped_again("/usr/lib/later.so", tmp_path) == ["compiled", None]
