"""Heap snapshots: logs without roots or references, and damaged logs, which must not cause exceptions."""

from pathlib import Path

import pytest

import perfuse
from perfuse.analysis.handles import leaked_handles
from perfuse.analysis.heap import Heap, snapshots
from perfuse.analysis.heap_rows import HeapRoot, PathStep, RootPath
from perfuse.reports.json_text import json_text
from perfuse.reports.runtime.heap import heap_lines, heap_report, large_snapshots, overview_lines
from perfuse.reports.text import Style, cell_width

TESTDATA = Path(__file__).parents[2] / "crates" / "formats" / "mono" / "src" / "testdata"
LOGS = [TESTDATA / name for name in ("v01-heapshot.mlpd", "v17-heapshot.mlpd")]


def _looked_over(log: Path) -> list[Heap]:
    """Every analysis of every snapshot of a log."""
    profile = perfuse.fuse(log)
    all_snapshots = snapshots(profile)
    heaps = [profile.heap(snapshot.snapshot_id) for snapshot in all_snapshots]
    for heap in heaps:
        classes = heap.classes()
        assert sum(one.num_objects for one in classes) == heap.num_objects
        tops = heap.dominated(limit=None)
        assert sum(one.retained_bytes for one in tops) == heap.size_bytes
        assert sum(one.num_retained for one in tops) == heap.num_objects
        for top in tops[:3]:
            assert heap.retained(top.address) == top
            assert all(one.dominator_address == top.address for one in heap.dominated(top.address))
            path = heap.path_to_root(top.address)
            assert (path is None) == (top.is_reachable is False)
        assert sum(one.num_retained for one in heap.unreachable(limit=None)) == (heap.num_unreachable or 0)
        assert heap.growth(heap) == []
    report = heap_report(profile)
    assert (report is None) == (not all_snapshots)
    assert report is None or json_text(report.as_json())
    assert report is None or all(cell_width(line) <= 90 for line in heap_lines(report, Style(width=90)))
    counts = "SELECT (SELECT count(*) FROM heap_dominators), (SELECT sum(num_objects)::BIGINT FROM heap_classes)"
    num = sum(heap.num_objects for heap in heaps)
    assert profile.sql(counts).fetchall() == [(num, num if num else None)]
    return heaps


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_a_log_cut_anywhere(log: Path, tmp_path: Path) -> None:
    whole = log.read_bytes()
    for cut in range(len(whole) // 3, len(whole), len(whole) // 23):
        part = tmp_path / "cut.mlpd"
        part.write_bytes(whole[:cut])
        heaps = _looked_over(part)
        assert all(heap.is_complete for heap in heaps[:-1])


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_flipped_bits(log: Path, tmp_path: Path) -> None:
    whole = bytearray(log.read_bytes())
    begin = snapshots(perfuse.fuse(log))[0]
    assert begin.end_ns is not None
    for number in range(25):
        place = len(whole) - 1 - (number * 7919) % (len(whole) - 200)
        whole[place] ^= 1 << number % 8
        part = tmp_path / f"flipped-{number}.mlpd"
        part.write_bytes(whole)
        _looked_over(part)


def test_without_roots_reachability_is_unknown() -> None:
    profile = perfuse.fuse(LOGS[0])
    heap = profile.heap()
    assert (heap.has_roots, heap.num_unreachable, heap.unreachable_bytes, heap.unreachable()) == (False, None, None, [])
    assert {one.num_unreachable for one in heap.classes()} == {None}
    assert str(heap.path_to_root(heap.dominated()[0].address)).startswith("nothing refers to it → ")
    report = heap_report(profile)
    assert report is not None
    text = "\n".join(heap_lines(report, Style()))
    assert "none were recorded: objects without references to them are taken as roots" in text
    query = "SELECT count(is_reachable), count(root_distance), count(nearer_address) FROM heap_dominators"
    assert profile.sql(query).fetchall() == [(0, 0, 0)]


def test_a_snapshot_without_its_end_is_incomplete(tmp_path: Path) -> None:
    whole = LOGS[1].read_bytes()
    last = perfuse.fuse(LOGS[1]).sql("SELECT max(record_offset) FROM heap_objects").fetchall()[0][0]
    part = tmp_path / "cut.mlpd"
    part.write_bytes(whole[:last])
    profile = perfuse.fuse(part)
    assert [snapshot.end_ns is None for snapshot in snapshots(profile)] == [False, True]
    assert not profile.heap().is_complete
    report = heap_report(profile)
    assert report is not None
    assert "cut short" in "\n".join(heap_lines(report, Style()))


def test_logs_without_snapshots() -> None:
    profile = perfuse.fuse(LOGS[1])
    with pytest.raises(perfuse.UsageError, match="no heap snapshot 7"):
        profile.heap(7)
    heap = profile.heap(0)
    for ask in (heap.retained, heap.path_to_root, heap.dominated):
        with pytest.raises(perfuse.UsageError, match="no object at 0x1"):
            ask(1)
    assert heap.sites() == []
    assert leaked_handles(profile) == []
    without = perfuse.fuse(TESTDATA / "v11-bt.mlpd")
    with pytest.raises(perfuse.UsageError, match="no heap snapshot was recorded"):
        without.heap()


def test_handles_that_nothing_frees() -> None:
    profile = perfuse.fuse(TESTDATA / "v14-bt.mlpd")
    handles = leaked_handles(profile)
    ((made, freed),) = profile.sql("SELECT count(created_ns), count(destroyed_ns) FROM gc_handles").fetchall()
    both = profile.sql("SELECT count(*) FROM gc_handles WHERE created_ns IS NOT NULL AND destroyed_ns IS NOT NULL")
    assert sum(one.num_handles for one in handles) == made - both.fetchall()[0][0]
    assert freed
    order = [one.keeps_objects for one in handles]
    assert order == sorted(order, reverse=True)


def test_a_path_as_text() -> None:
    steps = (PathStep(16, "Cache", 24, 99, None), PathStep(32, None, 16, 16, 8))
    root = HeapRoot("thread_static", "ThreadStatic Fields", 5, "thread Worker")
    assert str(RootPath(root, steps)) == "thread static of thread Worker → Cache → unknown type (at +8)"
    assert (
        str(RootPath(HeapRoot("domain", "Domain Structure", None, None), steps[:1]))
        == "domain: Domain Structure → Cache"
    )
    cut = RootPath(root, steps, 3)
    assert str(cut).endswith(" → Cache → … 3 objects … → unknown type (at +8)")
    assert (cut.first_steps, cut.last_steps) == (steps[:1], steps[1:])
    assert str(HeapRoot("static", None, None, None)) == "static field of an unknown owner"


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_large_snapshots_are_summarized(log: Path) -> None:
    profile = perfuse.fuse(log)
    assert large_snapshots(profile, 5) is None
    overview, whole = large_snapshots(profile, 0, most_objects=1), heap_report(profile, 0)
    assert overview is not None
    assert whole is not None
    assert overview.snapshots == whole.snapshots
    counted = {one.type_id: (one.num_objects[1], one.size_bytes[1]) for one in overview.classes}
    assert counted == {one.type_id: (one.num_objects, one.size_bytes) for one in whole.classes}
    assert overview.num_references == whole.heap.num_references + whole.heap.num_dangling
    grown = {one.type: (one.num_objects, one.size_bytes) for one in overview.growth}
    assert grown.items() <= {one.type: (one.num_objects, one.size_bytes) for one in whole.growth}.items()
    assert overview.num_classes == len(overview.classes)
    assert overview.num_grown == len(overview.growth)
    assert overview.as_json()["snapshots"] == whole.as_json()["snapshots"]
    text = "\n".join(overview_lines(overview, Style(width=90)))
    assert "with --section heap" in text
    assert perfuse.fuse(log).heap_sizes() == {
        one.snapshot.snapshot_id: (one.num_objects, one.size_bytes) for one in overview.snapshots
    }


def test_parts_of_long_answers() -> None:
    heap = perfuse.fuse(LOGS[1]).heap(0)
    classes = heap.classes()
    paths = (heap.path_to_root(one.largest_address) for one in classes)
    whole = max((path for path in paths if path), key=lambda path: len(path.steps))
    num = len(whole.steps)
    assert num == 3
    end = whole.steps[-1].address
    for most in range(2, num):
        part = heap.path_to_root(end, most)
        assert part
        assert (len(part.steps), part.num_left_out) == (most, num - most)
        assert part.first_steps == whole.steps[: (most + 1) // 2]
        assert part.last_steps == whole.steps[num - most // 2 :]
    assert heap.path_to_root(end, num) == heap.path_to_root(end) == whole
    largest = max(classes, key=lambda one: one.num_objects)
    every = heap.instances(largest.type_id, None)
    assert heap.instances(largest.type_id, 3, offset=2) == every[2:5]
    assert heap.instances(largest.type_id, None, offset=len(every) - 1) == every[-1:]
    assert heap.instances(largest.type_id, 3, offset=len(every) + 7) == []
