"""Which files on this machine the content of a recording leads to: `follow=`, perf maps, debug information."""

import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

import perf_crafting as crafting
import perfuse as pf
from absent_modules import with_absent_modules
from perfuse.errors import UsageError

PROGRAM = """
#include <stdlib.h>
static volatile unsigned long total;
__attribute__((noinline)) void work_here(unsigned long n) { for (unsigned long i = 0; i < n; i++) total += i * i; }
int main(int argc, char **argv) { work_here(strtoul(argv[1], 0, 10)); return 0; }
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a program, and perf's recording of it in a directory of its own."""
    directory = tmp_path_factory.mktemp("followed")
    (directory / "work.c").write_text(PROGRAM)
    command = ["gcc", "-g", "-gz=zlib", "-O1", "-Wl,--build-id", "work.c", "-o", "worker"]
    subprocess.run(command, cwd=directory, check=True)
    (directory / "data").mkdir()
    perf = ["perf", "--buildid-dir", directory / "cache", "record", "-q", "-N", "-e", "cpu-clock", "-F", "2000"]
    subprocess.run([*perf, "-o", directory / "data/perf.data", "./worker", "400000000"], cwd=directory, check=True)
    return directory


def functions(recording: Path, **options: object) -> dict[str, int]:
    """Samples by the name of the innermost function."""
    profile = pf.fuse(recording, **options)  # type: ignore[arg-type]
    query = """
        SELECT coalesce(f.name, '?'), count(*) FROM samples
        JOIN stacks USING (stack_id) JOIN frames USING (frame_id) LEFT JOIN functions f USING (function_id) GROUP BY ALL
    """
    return dict(profile.sql(query).fetchall())


def test_names_come_from_the_files_that_may_be_opened(recorded: Path) -> None:
    data = recorded / "data/perf.data"
    assert functions(data).get("work_here", 0) > 0
    assert "work_here" not in functions(data, follow="named")
    assert functions(data, follow="named", symbol_dirs=[recorded]).get("work_here", 0) > 0
    assert "work_here" not in functions(data, follow="none")


def test_the_reason_names_the_policy(recorded: Path) -> None:
    for follow in ("named", "none"):
        profile = pf.fuse(recorded / "data/perf.data", follow=follow)
        reasons = profile.sql("SELECT DISTINCT unnamed_because FROM frames").fetchall()
        assert any(reason and f"--follow {follow}" in reason for (reason,) in reasons)


def test_a_pipe_at_a_recorded_path_is_not_opened(recorded: Path, tmp_path: Path) -> None:
    """It would block a reader forever."""
    renamed = tmp_path / "perf.data"
    shutil.copy(recorded / "data/perf.data", renamed)
    original = recorded / "worker"
    original.rename(recorded / "kept")
    os.mkfifo(original)
    try:
        assert "work_here" not in functions(renamed)
    finally:
        original.unlink()
        (recorded / "kept").rename(original)


@pytest.mark.parametrize(
    ("follow", "directories"), [("some", []), ("none", ["/"]), ("", [])], ids=["unknown", "contradiction", "empty"]
)
def test_invalid_policies(recorded: Path, follow: str, directories: list[str]) -> None:
    with pytest.raises(UsageError):
        pf.fuse(recorded / "data/perf.data", follow=follow, symbol_dirs=directories)  # type: ignore[arg-type]


def test_a_section_that_states_terabytes_is_not_unpacked(recorded: Path, tmp_path: Path) -> None:
    program = bytearray((recorded / "worker").read_bytes())
    for name in (".debug_line", ".debug_info"):
        header = section_offset(program, name)
        # Elf64_Chdr: type, reserved, uncompressed size, alignment.
        program[header + 8 : header + 16] = struct.pack("<Q", 1 << 41)
    (tmp_path / "worker").write_bytes(program)
    profile = pf.fuse(recorded / "data/perf.data", symbol_dirs=[tmp_path])
    names = {name for (name,) in profile.sql("SELECT DISTINCT name FROM functions").fetchall()}
    assert "work_here" in names, "the symbol table is still read"
    [found] = [one for one in profile.diagnostics if one.code == "FU020"]
    assert str(tmp_path / "worker") in found.message
    assert "unpacks to more than 1 MiB" in found.message


def section_offset(program: bytes | bytearray, wanted: str) -> int:
    """Offset of a section's content in a little-endian ELF file of 64 bits."""
    table, entry_size, number, names_at = (
        *struct.unpack_from("<Q", program, 40),
        *struct.unpack_from("<3H", program, 58),
    )
    sections = [struct.unpack_from("<2I4Q", program, table + index * entry_size) for index in range(number)]
    names = sections[names_at][4]
    for name, _, _, _, offset, _ in sections:
        start = names + name
        if program[start : program.index(0, start)].decode() == wanted:
            return int(offset)
    raise AssertionError(f"no section {wanted}")


@pytest.fixture
def perf_map(tmp_path: Path) -> Path:
    """Beside a recording, a perf map that names all code of its process."""
    source = Path(__file__).parents[1] / "cli/testdata/perf.data"
    (tmp_path / "perf.data").write_bytes(with_absent_modules(source.read_bytes()))
    [(pid,)] = (
        pf.fuse(tmp_path / "perf.data").sql("SELECT DISTINCT pid FROM processes WHERE pid > 0 LIMIT 1").fetchall()
    )
    path = tmp_path / f"perf-{pid}.map"
    path.write_text("1000 7ffffffffffff000 everything\n")
    return path


def has_everything(recording: Path, **options: object) -> bool:
    return "everything" in functions(recording, **options)


def test_a_perf_map_of_another_user_is_not_used(perf_map: Path) -> None:
    data = perf_map.with_name("perf.data")
    assert has_everything(data), "it belongs to this user"
    if os.geteuid() != 0:
        pytest.xfail("only root can give a file to another user")
    os.chown(perf_map, 65534, 65534)
    assert not has_everything(data)
    profile = pf.fuse(data)
    profile.sql("SELECT count(*) FROM frames").fetchall()
    [found] = [one for one in profile.diagnostics if one.code == "FU021"]
    assert str(perf_map) in found.message
    assert has_everything(data, symbol_dirs=[perf_map.parent]), "a directory that the user names is trusted"


BEGAN_S = 1_790_000_600
"""Seconds since 1970 at which a process began."""


@pytest.mark.parametrize(("after_s", "is_own"), [(-600, False), (-2, False), (0, True), (600, True)])
def test_a_perf_map_from_before_its_process_is_not_used(tmp_path: Path, after_s: int, is_own: bool) -> None:
    pid, code, start_ns = 77, 0x7F0000001000, 43_000_000_000_000
    event = crafting.Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME)
    named = struct.pack("<II", pid, pid) + crafting.text("app") + event.sample_id(pid, pid, start_ns)
    began = crafting.Record(crafting.COMM, 1 << 13, named)
    sampled = crafting.sample(event, ip=code + 4, pid=pid, tid=pid, time=start_ns + 1_000_000)
    # HEADER_CLOCK_DATA: version, clock, time of the wall clock and of that clock.
    clock = struct.pack("<IIQQ", 1, 1, BEGAN_S * 1_000_000_000, start_ns)
    data = crafting.PerfFile([event], [began, sampled], {29: clock}).write(tmp_path / "perf.data")
    perf_map = tmp_path / f"perf-{pid}.map"
    perf_map.write_text(f"{code:x} 100 everything\n")
    os.utime(perf_map, (BEGAN_S + after_s, BEGAN_S + after_s))
    assert has_everything(data) == is_own
    profile = pf.fuse(data)
    profile.sql("SELECT count(*) FROM frames").fetchall()
    found = [one.message for one in profile.diagnostics if one.code == "FU025"]
    if is_own:
        assert not found
    else:
        assert found == [f"{perf_map} is not used: it was last written {-after_s} s before the process began"]
    assert has_everything(data, symbol_dirs=[tmp_path]), "a directory that the user names is trusted"


def test_perf_maps_follow_the_policy(perf_map: Path) -> None:
    data = perf_map.with_name("perf.data")
    assert not has_everything(data, follow="named")
    assert has_everything(data, follow="named", symbol_dirs=[perf_map.parent])
    assert not has_everything(data, follow="none")


def test_a_perf_map_that_is_a_pipe_is_not_opened(perf_map: Path) -> None:
    perf_map.unlink()
    os.mkfifo(perf_map)
    assert not has_everything(perf_map.with_name("perf.data"))
