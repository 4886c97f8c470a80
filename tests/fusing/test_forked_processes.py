"""A forked process has a copy of its parent's memory, with the JIT code in it; an exec begins an empty one.

The files are assembled here: what is at each address follows from what fork(2), execve(2) and shared memory are.
"""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import perf_crafting as crafting
import perfuse as pf
from perf_crafting import Attribute, PerfFile, Record

PARENT, CHILD, GRANDCHILD = 100, 200, 300
PRIVATE, SHARED, NAMED, SIZE = 0x7000_0000, 0x7100_0000, 0x7200_0000, 0x1000
OWN, SECOND, THIRD = 0x0, 0x100, 0x200
FORKED, FORKED_AGAIN, EXECUTED, MAPPED = 2000, 4000, 6000, 7000
COMM_EXEC = 1 << 13

CODE = [
    ("before", PARENT, PRIVATE + OWN, 1000),
    ("of_parent", PARENT, PRIVATE + SECOND, 3000),
    ("of_child", CHILD, PRIVATE + SECOND, 3000),
    ("replaced", PARENT, PRIVATE + OWN, 5000),
    ("shared", CHILD, SHARED + OWN, 3000),
    ("shared", GRANDCHILD, SHARED + SECOND, 5000),
    ("of_grandchild", GRANDCHILD, PRIVATE + THIRD, 5000),
]
"""Name, process, address and time of each piece of code."""

MAPS = {
    PARENT: [(NAMED + OWN, "map_of_parent"), (NAMED + SECOND, "map_of_parent_later")],
    CHILD: [(NAMED + SECOND, "map_of_child")],
}
"""Content of the perf maps."""

SAMPLES = [
    (PARENT, 1500, PRIVATE + OWN, "before"),
    (CHILD, 2500, PRIVATE + OWN, "before"),
    (CHILD, 2500, PRIVATE + SECOND, None),
    (PARENT, 3500, PRIVATE + SECOND, "of_parent"),
    (CHILD, 3500, PRIVATE + SECOND, "of_child"),
    (GRANDCHILD, 4500, PRIVATE + OWN, "before"),
    (GRANDCHILD, 4500, PRIVATE + SECOND, "of_child"),
    (PARENT, 5500, PRIVATE + OWN, "replaced"),
    (CHILD, 5500, PRIVATE + OWN, "before"),
    (PARENT, 2900, SHARED + OWN, None),
    (PARENT, 3500, SHARED + OWN, "shared"),
    (CHILD, 3500, SHARED + OWN, "shared"),
    (GRANDCHILD, 4500, SHARED + OWN, "shared"),
    (CHILD, 5500, SHARED + SECOND, "shared"),
    (PARENT, 1500, NAMED + OWN, "map_of_parent"),
    (CHILD, 2500, NAMED + OWN, "map_of_parent"),
    (CHILD, 3500, NAMED + SECOND, "map_of_child"),
    (GRANDCHILD, 4500, NAMED + OWN, "map_of_parent"),
    (GRANDCHILD, 5500, PRIVATE + THIRD, "of_grandchild"),
    (GRANDCHILD, 6500, PRIVATE + THIRD, None),
    (GRANDCHILD, 6500, PRIVATE + OWN, None),
    (GRANDCHILD, 6500, SHARED + OWN, None),
    (GRANDCHILD, 6500, NAMED + OWN, None),
    (CHILD, 7500, PRIVATE + OWN, None),
    (PARENT, 7500, PRIVATE + OWN, "replaced"),
]
"""Process, time and address of each sample, and the name of its function."""


def _fork(attribute: Attribute, parent: int, child: int, time: int) -> Record:
    body = struct.pack("<IIIIQ", child, parent, child, parent, time)
    return Record(crafting.FORK, 0, body + attribute.sample_id(parent, parent, time))


def _at(record: Record, attribute: Attribute, pid: int, time: int) -> Record:
    """A record from before the recording at a time of it."""
    fields = record.body[: -len(attribute.sample_id())]
    return Record(record.type, record.misc, fields + attribute.sample_id(pid, pid, time))


def _recording(samples: list[tuple[int, int, int, str | None]]) -> PerfFile:
    attribute = Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME | crafting.CALLCHAIN | crafting.PERIOD)
    executed = _at(crafting.comm(attribute, GRANDCHILD, GRANDCHILD, "other"), attribute, GRANDCHILD, EXECUTED)
    timed = [
        (FORKED, _fork(attribute, PARENT, CHILD, FORKED)),
        (FORKED_AGAIN, _fork(attribute, CHILD, GRANDCHILD, FORKED_AGAIN)),
        (EXECUTED, Record(crafting.COMM, COMM_EXEC, executed.body)),
        (MAPPED, _at(crafting.mmap2(attribute, CHILD, "/lib/other.so", PRIVATE, SIZE), attribute, CHILD, MAPPED)),
    ]
    for pid, time, address, _ in samples:
        chain = [crafting.CONTEXT_USER, address]
        timed.append((time, crafting.sample(attribute, ip=address, pid=pid, tid=pid, time=time, chain=chain)))
    before = [
        crafting.comm(attribute, PARENT, PARENT, "runtime"),
        crafting.mmap2(attribute, PARENT, f"/tmp/jit-{PARENT}.dump", 0x1000_0000, SIZE),
        crafting.mmap2(attribute, PARENT, "//anon", PRIVATE, SIZE, prot=7),
        crafting.mmap2(attribute, PARENT, "/dev/zero (deleted)", SHARED, SIZE, prot=7),
        crafting.mmap2(attribute, PARENT, "//anon", NAMED, SIZE, prot=7),
    ]
    timed.sort(key=lambda one: one[0])
    return PerfFile([attribute], [*before, *(record for _, record in timed)])


def _dump() -> bytes:
    """A JITDUMP of x86-64, as section III of its specification defines it."""
    out = struct.pack("<4sIIIIIQQ", b"DTiJ", 1, 40, 62, 0, PARENT, 500, 0)
    for index, (name, pid, address, time) in enumerate(CODE):
        body = struct.pack("<IIQQQQ", pid, pid, address, address, 0x40, index) + name.encode() + b"\0" + b"\x90" * 0x40
        out += struct.pack("<IIQ", 0, 16 + len(body), time) + body
    return out


def _write(directory: Path, samples: list[tuple[int, int, int, str | None]]) -> pf.Profile:
    dump = directory / f"jit-{PARENT}.dump"
    dump.write_bytes(_dump())
    for pid, rows in MAPS.items():
        lines = [f"{address:x} 40 {name}\n" for address, name in rows]
        (directory / f"perf-{pid}.map").write_text("".join(lines), encoding="ascii")
    return pf.fuse(_recording(samples).write(directory / "perf.data"), dump)


_NAMES = """
    SELECT p.pid, s.ts_ns, f.address, n.name FROM samples s JOIN threads t USING (thread_id)
    JOIN processes p USING (process_id) JOIN stacks k USING (stack_id) JOIN frames f USING (frame_id)
    LEFT JOIN functions n USING (function_id)
"""


@pytest.mark.parametrize("only", [None, PARENT, CHILD, GRANDCHILD])
def test_code_of_forked_processes(tmp_path: Path, only: int | None) -> None:
    samples = [one for one in SAMPLES if only in (None, one[0])]
    profile = _write(tmp_path, samples)
    assert sorted(profile.sql(_NAMES).fetchall(), key=str) == sorted(samples, key=str)


def test_code_belongs_to_the_process_that_made_it(tmp_path: Path) -> None:
    """JD031: a forked child continues to write to its parent's dump."""
    profile = _write(tmp_path, SAMPLES)
    query = """
        SELECT f.name, p.pid, c.start_address FROM code_objects c JOIN functions f USING (function_id)
        JOIN processes p USING (process_id)
    """
    made = [(name, pid, address) for name, pid, address, _ in CODE]
    assert sorted(profile.sql(query).fetchall()) == sorted(made)
    (join,) = profile.joins
    assert (join.pid, join.found_by) == (PARENT, "marker")


def test_a_namespace_has_one_known_process(tmp_path: Path) -> None:
    """The pids of another namespace are not those of the recording: all code is that of the process with the dump."""
    attribute = Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME | crafting.CALLCHAIN | crafting.PERIOD)
    dump = tmp_path / f"jit-{PARENT}.dump"
    dump.write_bytes(_dump())
    records = [
        crafting.mmap2(attribute, 9000, f"/tmp/jit-{PARENT}.dump", 0x1000_0000, SIZE),
        crafting.sample(attribute, ip=SHARED, pid=9000, tid=9000, time=3500, chain=[crafting.CONTEXT_USER, SHARED]),
    ]
    profile = pf.fuse(PerfFile([attribute], records).write(tmp_path / "perf.data"), dump)
    assert profile.sql(_NAMES).fetchall() == [(9000, 3500, SHARED, "shared")]


def test_the_address_of_an_exec_is_in_the_old_program(tmp_path: Path) -> None:
    """The kernel records an exec before it maps the new program, and sets the registers after that."""
    attribute = Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME | crafting.CALLCHAIN | crafting.PERIOD)
    executed = _at(crafting.comm(attribute, CHILD, CHILD, "other"), attribute, CHILD, EXECUTED)
    chain = [crafting.CONTEXT_USER, PRIVATE]
    records = [
        crafting.mmap2(attribute, PARENT, "/bin/shell", PRIVATE, SIZE),
        _fork(attribute, PARENT, CHILD, FORKED),
        Record(crafting.COMM, COMM_EXEC, executed.body),
        crafting.sample(attribute, ip=PRIVATE, pid=CHILD, tid=CHILD, time=EXECUTED + 100, chain=chain),
    ]
    profile = pf.fuse(PerfFile([attribute], records).write(tmp_path / "perf.data"))
    query = "SELECT f.address, m.path FROM frames f LEFT JOIN mappings m USING (mapping_id)"
    assert profile.sql(query).fetchall() == [(PRIVATE, "/bin/shell")]


def test_code_without_times_is_of_the_program_that_made_it(tmp_path: Path) -> None:
    """JD015: some writers state no times. Their code is not of the program before the exec."""
    attribute = Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME | crafting.CALLCHAIN | crafting.PERIOD)
    executed = _at(crafting.comm(attribute, CHILD, CHILD, "runtime"), attribute, CHILD, EXECUTED)
    dump = tmp_path / f"jit-{CHILD}.dump"
    body = struct.pack("<IIQQQQ", CHILD, CHILD, PRIVATE, PRIVATE, 0x40, 0) + b"timeless\0" + b"\x90" * 0x40
    header = struct.pack("<4sIIIIIQQ", b"DTiJ", 1, 40, 62, 0, CHILD, 0, 0)
    dump.write_bytes(header + struct.pack("<IIQ", 0, 16 + len(body), 0) + body)
    records = [
        _fork(attribute, PARENT, CHILD, FORKED),
        Record(crafting.COMM, COMM_EXEC, executed.body),
        _at(crafting.mmap2(attribute, CHILD, str(dump), 0x1000_0000, SIZE), attribute, CHILD, EXECUTED + 1),
        crafting.sample(
            attribute, ip=PRIVATE, pid=CHILD, tid=CHILD, time=MAPPED, chain=[crafting.CONTEXT_USER, PRIVATE]
        ),
    ]
    profile = pf.fuse(PerfFile([attribute], records).write(tmp_path / "perf.data"), dump)
    assert profile.sql(_NAMES).fetchall() == [(CHILD, MAPPED, PRIVATE, "timeless")]
