"""Recordings whose samples have no times (`perf record --no-timestamp`): forked processes, and what they map."""

from __future__ import annotations

import subprocess
from pathlib import Path

import perf_crafting as crafting
import perfuse as pf
from needs import need
from perf_crafting import COMM, FORK, Attribute, PerfFile, Record

EVENT = Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.PERIOD)
PARENT, CHILD = 7, 8


def _paths(path: Path) -> list[tuple[int, str | None]]:
    with pf.fuse(path) as profile:
        return profile.sql(
            "SELECT pid, mappings.path FROM samples JOIN threads USING (thread_id) JOIN processes USING (process_id) "
            "JOIN stacks USING (stack_id) JOIN frames USING (frame_id) LEFT JOIN mappings USING (mapping_id) "
            "ORDER BY samples.record_offset"
        ).fetchall()


def _sample(pid: int, address: int) -> Record:
    return crafting.sample(EVENT, ip=address, pid=pid, tid=pid)


def test_a_forked_process_has_the_mappings_of_its_parent(tmp_path: Path) -> None:
    """The kernel states the time of a fork in the record itself; perf writes none for processes from before."""
    before, during = (crafting.task(EVENT, FORK, CHILD, PARENT, CHILD, time) for time in (0, 5000))
    for fork, expected in ((before, None), (during, "/a")):
        records = [crafting.mmap2(EVENT, PARENT, "/a", 0x400000, 0x6000), fork, _sample(CHILD, 0x401000)]
        path = PerfFile([EVENT], records).write(tmp_path / "perf.data")
        assert _paths(path) == [(CHILD, expected)]


def test_what_a_process_maps_hides_what_it_inherited(tmp_path: Path) -> None:
    records = [
        crafting.mmap2(EVENT, PARENT, "/a", 0x400000, 0x6000),
        crafting.task(EVENT, FORK, CHILD, PARENT, CHILD, 5000),
        Record(COMM, 1 << 13, b"\x08\0\0\0\x08\0\0\0" + crafting.text("b")),
        crafting.mmap2(EVENT, CHILD, "/b", 0x400000, 0x2000),
        _sample(CHILD, 0x401000),
        _sample(PARENT, 0x401000),
    ]
    assert _paths(PerfFile([EVENT], records).write(tmp_path / "perf.data")) == [(CHILD, "/b"), (PARENT, "/a")]


def test_samples_of_a_forked_process_are_in_its_function(tmp_path: Path) -> None:
    """perf finds no mapping for those that precede the fork in the file, which other processors' samples may do."""
    need("perf", "gcc", "nm")
    source = tmp_path / "forks.c"
    source.write_text(
        "#include <unistd.h>\n#include <sys/wait.h>\nvolatile long sum;\n"
        "__attribute__((noinline)) void work(long end) { for (long i = 0; i < end; i++) sum += i; }\n"
        "int main(void) { if (!fork()) { work(100000000); _exit(0); } wait(0); return 0; }\n"
    )
    subprocess.run(["gcc", "-O1", "-no-pie", "-o", tmp_path / "forks", source], check=True)
    path = tmp_path / "perf.data"
    record = ["perf", "record", "--no-timestamp", "-e", "cpu-clock:u", "-o", path, tmp_path / "forks"]
    subprocess.run(record, check=True, capture_output=True)
    symbols = subprocess.run(["nm", "-S", tmp_path / "forks"], check=True, capture_output=True, text=True).stdout
    listed = next(one for one in map(str.split, symbols.splitlines()) if one[-1] == "work")
    start, size = int(listed[0], 16), int(listed[1], 16)
    script = ["perf", "script", "-i", path, "-F", "ip"]
    addresses = subprocess.run(script, check=True, capture_output=True, text=True).stdout.split()
    expected = sum(start <= int(address, 16) < start + size for address in addresses)
    assert expected > 0
    with pf.fuse(path) as profile:
        named = profile.sql(
            "SELECT count(*) FROM samples JOIN stacks USING (stack_id) JOIN frames USING (frame_id) "
            "JOIN functions f USING (function_id) WHERE f.name = 'work'"
        ).fetchall()
    assert named == [(expected,)]
