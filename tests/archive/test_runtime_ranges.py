"""Runtime events and calls of a range of a saved Mono log: the answers of the log, of a part of the saved tables."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from questions import graph, report

import perfuse as pf
from archive.saved_ranges import PAGES, Opened, differences, flame_of, other_pages, part_of, rows_of, single_calls
from perfuse.reports.runtime.report import SECTION_NAMES
from truth.kinds import CORPUS

LOGS = {
    "allocations": ("mono/v17/alloc.mlpd", 1000),
    "calls": ("mono/v17/calls-depth5.mlpd", 9000),
    "locks": ("mono/v17/monitor.mlpd", 3),
    "handles": ("mono/v17/gchandles.mlpd", 20),
    "finalizers": ("mono/v17/finalization.mlpd", 30),
    "counters": ("mono/v17/counters.mlpd", 30),
    "samples": ("mono/v17/sample-real.mlpd", 100),
    "32 bits": ("mono/v17/i386-calls.mlpd", 500),
    "version 14": ("mono/tiny/v14-bt.mlpd", 20),
    "version 1": ("mono/tiny/v01-calls.mlpd", 11),
}
"""Logs without heap snapshots, and the rows of a row group with which they have several."""
LONG = ("mono/v17/calls.mlpd", 20_000)
"""A log with events of every kind, whose stacks are 50 MB of text."""

TABLES = ("call_events", "allocations", "lock_events", "exceptions", "instants", "object_moves", "counter_samples")
ASKED_ELSEWHERE = ("heap", "objects", "records")
"""Sections with a test of their own, or that need options."""


def _times(profile: pf.Profile, rows: int, number: int) -> list[tuple[int, int]]:
    """Ranges: at events, at and beside borders of row groups, in and around slices, of all, of none, random ones."""
    tables = [one for one in TABLES if profile.has(one)]
    found = {one: [ts for (ts,) in profile.sql(f"SELECT ts_ns FROM {one}").fetchall()] for one in tables}
    times = [ts for of_table in found.values() for ts in of_table]
    borders = [of[at + beside] for of in found.values() for at in range(rows, len(of), rows) for beside in (-1, 0)]
    slices = profile.sql("SELECT start_ns, duration_ns FROM slices WHERE kind::VARCHAR <> 'call'").fetchall()
    first, last = min(times), max(times)
    source = random.Random(number)
    inside = [(start + length // 3, start + length // 2 + 1) for start, length in slices]
    around = [(start - 1000, start + length // 2 + 1) for start, length in slices]
    chosen = [
        (first, first + 1),
        (last, last + 1),
        (last + 1, last + 1000),
        (first - 5, last + 5),
        *((at, at + (last - first) // 50 + 1) for at in source.sample(borders, min(len(borders), 3))),
        *((at - (last - first) // 50, at) for at in source.sample(borders, min(len(borders), 2))),
        *source.sample(inside, min(len(inside), 2)),
        *source.sample(around, min(len(around), 2)),
    ]
    for _ in range(5):
        start = source.choice(times) + source.randrange(-2, 3)
        chosen.append((start, start + source.randrange(1, (last - first) // source.choice([2, 10, 100]) + 2)))
    return chosen


@cache
def _asked() -> tuple[tuple[str, Callable[..., Any], tuple[Any, ...]], ...]:
    """What is asked of each range, but for the folder of exports."""
    sections = [one for one in SECTION_NAMES if one not in ASKED_ELSEWHERE]
    options: tuple[dict[str, Any], ...] = (
        {},
        {"--stacks": True},
        *({"--section": (one,), "--stacks": True} for one in sections),
        *({"--section": (one,)} for one in sections),
        {"--sort": "count"},
        {"--sort": "self", "--section": ("calls",)},
        {"--tree": True},
        {"--inverted": True},
        {"--tree": True, "--event": "allocated-bytes"},
        {"--by": "function", "--event": "allocations"},
        {"--by": "thread"},
        {"--format": "csv"},
    )
    return (
        *((f"report {one}", report, (one,)) for one in options),
        # Some logs have hundreds of functions, and each view has two trees.
        ("functions", partial(report, limit=20), ({"--function": "*"},)),
        ("diff", graph, ("function",)),
        ("samples", rows_of, ("samples",)),
        ("flame", flame_of, ()),
    )


@pytest.mark.parametrize("name", LOGS)
def test_answers_about_ranges_are_those_of_the_log(
    name: str, opened: Opened, tmp_path: Path, choice: random.Random
) -> None:
    """The copy is damaged: what reads it is an error. From log to log, other questions are of other kinds of ranges."""
    path, rows = LOGS[name]
    recorded, saved_path = opened.of((CORPUS / path,), rows)
    with pf.fuse(saved_path) as saved:
        ranges = _times(recorded, rows, len(name))
        assert differences(_asked(), (recorded, saved), ranges, tmp_path / "out", choice) == []


@pytest.mark.parametrize(("path", "rows", "num_ranges"), [(*LONG, 1), (*LOGS["allocations"], 3), (*LOGS["locks"], 5)])
def test_the_page_of_a_range(path: str, rows: int, num_ranges: int, opened: Opened) -> None:
    """With its timeline: calls, waits, collections, instants."""
    recorded, saved_path = opened.of((CORPUS / path,), rows)
    pages = (*PAGES, ("counters", ""), ("activity", "by=thread&buckets=50"), ("calls", ""))
    with pf.fuse(saved_path) as saved:
        for times in _times(recorded, rows, 9)[4 : 4 + num_ranges]:
            assert other_pages((recorded, saved), times, pages) == [], times


def test_several_logs(opened: Opened, tmp_path: Path, choice: random.Random) -> None:
    """Logs of two processes, with counters of both."""
    names = ("mono/v17/counters.mlpd", "mono/tiny/v14-bt.mlpd")
    recorded, path = opened.of(tuple(CORPUS / name for name in names), 200)
    with pf.fuse(path) as saved:
        assert differences(_asked(), (recorded, saved), _times(recorded, 200, 5), tmp_path / "out", choice) == []


def test_single_calls_and_heap_snapshots_of_a_range(opened: Opened) -> None:
    """Of the row groups of calls with the range, and of the tables of snapshots."""
    path, rows = LOGS["calls"]
    recorded, saved_path = opened.of((CORPUS / path,), rows)
    with pf.fuse(saved_path) as saved:
        assert single_calls((recorded, saved), _times(recorded, rows, 5)[4], "*Fib*") == []
    recorded, saved_path = opened.of((CORPUS / "mono/v17/heapshot.mlpd",), 1000)
    options: tuple[dict[str, Any], ...] = (
        {"--section": ("heap",)},
        {"--type": "*"},
        {"--event": "retained", "--tree": True},
        {"--find": ("S", "64")},
    )
    first, last = recorded.span_ns or (0, 0)
    with pf.fuse(saved_path) as saved:
        for one in options:
            expected, found = (repr(report(part_of(of, first, last), one)) for of in (recorded, saved))
            assert expected == found
        for table in ("heap_classes", "heap_sites"):
            assert rows_of(saved, table) == rows_of(recorded, table)


def test_records_of_a_range(opened: Opened) -> None:
    """Of the copy: the saved tables have events, not the records that were made into them."""
    path, rows = LOGS["allocations"]
    recorded, saved_path = opened.of((CORPUS / path,), rows)
    with pf.fuse(saved_path.with_suffix(".whole")) as saved:
        for times in _times(recorded, rows, 3):
            expected, found = (report(part_of(of, *times), {"--section": ("records",)}) for of in (recorded, saved))
            assert repr(expected) == repr(found)


def test_threads(opened: Opened, tmp_path: Path, choice: random.Random) -> None:
    path, rows = LOGS["calls"]
    recorded, saved_path = opened.of((CORPUS / path,), rows)
    with pf.fuse(saved_path) as saved:
        query = "SELECT thread_id FROM call_events GROUP BY 1 ORDER BY count(*) DESC LIMIT 1 OFFSET 1"
        thread = recorded.sql(query).fetchall()[0][0]
        ranges = _times(recorded, rows, 3)
        assert differences(_asked(), (recorded, saved), ranges, tmp_path / "out", choice, thread=thread) == []
