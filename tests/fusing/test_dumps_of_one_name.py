"""Processes of several containers have the same pid inside: their dumps have one name, and one pid in the header."""

import struct
from dataclasses import replace
from pathlib import Path

import pytest

import perf_crafting as crafting
import perfuse as pf
from perf_crafting import Attribute, PerfFile, Record

INSIDE, CODE, SIZE = 7, 0x7000_0000, 0x1000
SECOND = 1_000_000_000
STARTS = {500: 10 * SECOND, 600: 12 * SECOND, 700: 15 * SECOND}
"""When the process with each pid, as the recorder sees it, began its dump."""


def _dump(name: str, start: int) -> bytes:
    """A JITDUMP with one function, as section III of its specification defines it."""
    body = struct.pack("<IIQQQQ", INSIDE, INSIDE, CODE, CODE, 0x40, 0) + name.encode() + b"\0" + b"\x90" * 0x40
    header = struct.pack("<4sIIIIIQQ", b"DTiJ", 1, 40, 62, 0, INSIDE, start, 0)
    return header + struct.pack("<IIQ", 0, 16 + len(body), start + SECOND // 2) + body


def _marker(attribute: Attribute, pid: int, time: int) -> Record:
    """The mapping of a dump at a time."""
    record = crafting.mmap2(attribute, pid, f"/app/jit-{INSIDE}.dump", 0x1000_0000, SIZE)
    return Record(
        record.type, record.misc, record.body[: -len(attribute.sample_id())] + attribute.sample_id(pid, pid, time)
    )


@pytest.mark.parametrize("order", [(500, 600, 700), (700, 500, 600)])
def test_a_dump_is_of_the_process_that_mapped_it_at_its_start(tmp_path: Path, order: tuple[int, ...]) -> None:
    attribute = Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME | crafting.CALLCHAIN | crafting.PERIOD)
    records = [crafting.comm(attribute, pid, pid, "runtime") for pid in STARTS]
    records += [crafting.mmap2(attribute, pid, "//anon", CODE, SIZE, prot=7) for pid in STARTS]
    # The file is mapped some time before the header is written, or after it.
    records += [_marker(attribute, pid, start + (pid - 600) * 1000) for pid, start in STARTS.items()]
    chain = [crafting.CONTEXT_USER, CODE + 0x10]
    records += [
        crafting.sample(attribute, ip=chain[1], pid=pid, tid=pid, time=20 * SECOND, chain=chain) for pid in STARTS
    ]
    dumps = []
    for pid in order:
        (tmp_path / f"of_{pid}").mkdir()
        dumps.append(tmp_path / f"of_{pid}" / f"jit-{INSIDE}.dump")
        dumps[-1].write_bytes(_dump(f"of_{pid}", STARTS[pid]))
    profile = pf.fuse(PerfFile([attribute], records).write(tmp_path / "perf.data"), *dumps)
    query = """
        SELECT p.pid, n.name FROM samples JOIN threads USING (thread_id) JOIN processes p USING (process_id)
        JOIN stacks USING (stack_id) JOIN frames USING (frame_id) JOIN functions n USING (function_id)
    """
    assert sorted(profile.sql(query).fetchall()) == [(pid, f"of_{pid}") for pid in STARTS]
    assert {join.pid: Path(join.path).parent.name for join in profile.joins} == {pid: f"of_{pid}" for pid in STARTS}


BOOT = 86_400 * SECOND
"""What the clock of the recording has already counted when that of the dumps starts."""


@pytest.mark.parametrize("order", [(500, 600, 700), (700, 500, 600), (600, 700), (500, 600)])
def test_on_another_clock_the_times_between_the_starts_decide(tmp_path: Path, order: tuple[int, ...]) -> None:
    """perf without `-k mono`: 2 s are between the first and the second process, and 3 s between it and the third."""
    profile = _on_another_clock(tmp_path, order, STARTS)
    assert {join.pid: Path(join.path).parent.name for join in profile.joins} == {pid: f"of_{pid}" for pid in order}
    assert not [one for one in profile.diagnostics if one.code == "FU023"]
    assert {pid: name for pid, name in profile.sql(NAMES).fetchall() if name} == {pid: f"of_{pid}" for pid in order}


@pytest.mark.parametrize("order", [(600,), (500, 600)])
def test_an_uncertain_process_is_stated(tmp_path: Path, order: tuple[int, ...]) -> None:
    """A dump alone has no times between starts; processes that start at equal intervals have the same ones."""
    profile = _on_another_clock(tmp_path, order, {500: 10 * SECOND, 600: 12 * SECOND, 700: 14 * SECOND})
    uncertain = [one.message for one in profile.diagnostics if one.code == "FU023"]
    assert len(uncertain) == len(order)
    assert all("it may be of" in message for message in uncertain)
    assert len({join.pid for join in profile.joins}) == len(order)


NAMES = """
    SELECT p.pid, n.name FROM samples JOIN threads USING (thread_id) JOIN processes p USING (process_id)
    JOIN stacks USING (stack_id) JOIN frames USING (frame_id) LEFT JOIN functions n USING (function_id)
"""


def _on_another_clock(directory: Path, order: tuple[int, ...], starts: dict[int, int]) -> pf.Profile:
    attribute = Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME | crafting.CALLCHAIN | crafting.PERIOD)
    use_clockid = 1 << 25
    attribute = replace(
        attribute, attr=attribute.attr[:40] + struct.pack("<Q", attribute.flags & ~use_clockid) + attribute.attr[48:]
    )
    records = [crafting.comm(attribute, pid, pid, "runtime") for pid in starts]
    records += [crafting.mmap2(attribute, pid, "//anon", CODE, SIZE, prot=7) for pid in starts]
    records += [_marker(attribute, pid, BOOT + start + (pid - 600) * 1000) for pid, start in starts.items()]
    chain = [crafting.CONTEXT_USER, CODE + 0x10]
    records += [
        crafting.sample(attribute, ip=chain[1], pid=pid, tid=pid, time=BOOT + 20 * SECOND, chain=chain)
        for pid in starts
    ]
    dumps = []
    for pid in order:
        (directory / f"of_{pid}").mkdir()
        dumps.append(directory / f"of_{pid}" / f"jit-{INSIDE}.dump")
        dumps[-1].write_bytes(_dump(f"of_{pid}", starts[pid]))
    return pf.fuse(PerfFile([attribute], records).write(directory / "perf.data"), *dumps)


def test_code_of_a_later_dump_of_a_process_replaces_that_of_the_first(tmp_path: Path) -> None:
    """A runtime that starts another one by exec keeps its pid: both have a dump of one name."""
    attribute = Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME | crafting.CALLCHAIN | crafting.PERIOD)
    starts = {"first": 10 * SECOND, "second": 20 * SECOND}
    records = [
        crafting.comm(attribute, INSIDE, INSIDE, "runtime"),
        crafting.mmap2(attribute, INSIDE, "//anon", CODE, SIZE, prot=7),
    ]
    records += [_marker(attribute, INSIDE, start) for start in starts.values()]
    chain = [crafting.CONTEXT_USER, CODE + 0x10]
    for second in (11, 19, 21, 30):
        records.append(
            crafting.sample(attribute, ip=chain[1], pid=INSIDE, tid=INSIDE, time=second * SECOND, chain=chain)
        )
    dumps = []
    for name, start in starts.items():
        (tmp_path / name).mkdir()
        dumps.append(tmp_path / name / f"jit-{INSIDE}.dump")
        dumps[-1].write_bytes(_dump(name, start))
    for order in (dumps, dumps[::-1]):
        profile = pf.fuse(PerfFile([attribute], records).write(tmp_path / "perf.data"), *order)
        query = """
            SELECT ts_ns // 1000000000, name FROM samples JOIN stacks USING (stack_id)
            JOIN frames USING (frame_id) JOIN functions USING (function_id) ORDER BY 1
        """
        assert profile.sql(query).fetchall() == [(11, "first"), (19, "first"), (21, "second"), (30, "second")]


@pytest.mark.parametrize(("began", "is_own"), [(12 * SECOND, True), (8 * SECOND, False)], ids=["at its end", "before"])
def test_a_dump_that_was_mapped_after_its_last_record(tmp_path: Path, began: int, is_own: bool) -> None:
    """A process may write its dump when it ends; one from before the recording is of an earlier process of that pid."""
    attribute = Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD)
    samples = [crafting.sample(attribute, ip=CODE + 4, pid=INSIDE, tid=INSIDE, time=at * SECOND) for at in (10, 15, 16)]
    records = [crafting.comm(attribute, INSIDE, INSIDE, "runtime"), *samples, _marker(attribute, INSIDE, 17 * SECOND)]
    dump = tmp_path / f"jit-{INSIDE}.dump"
    dump.write_bytes(_dump("compiled", began))
    profile = pf.fuse(PerfFile([attribute], records).write(tmp_path / "perf.data"), dump)
    query = "SELECT f.name FROM samples JOIN stacks USING (stack_id) JOIN frames USING (frame_id) LEFT JOIN functions f"
    rows = profile.sql(f"{query} USING (function_id) WHERE ts_ns > {14 * SECOND}").fetchall()
    assert rows == [("compiled" if is_own else None,)] * 2
    assert [join.pid for join in profile.joins] == [INSIDE if is_own else None]
    assert ("FU001" in {one.code for one in profile.diagnostics}) != is_own
