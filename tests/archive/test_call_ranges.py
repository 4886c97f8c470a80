"""Calls of a range of time of a saved profile: the answers of the recordings, of a part of the saved tables."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from questions import answer_to, graph, report

import perfuse as pf
from archive.saved_ranges import PAGES, Opened, differences, flame_of, other_pages, part_of, rows_of, single_calls
from packs_of_tests import damaged_copy, rewritten
from perfuse.archive import border_events
from perfuse.archive.xz import packed, unpacked
from truth.kinds import CORPUS, KINDS

LOGS = {
    "basic, small": ("xray/basic/basic-small-v3.xray", 16),
    "basic, threads": ("xray/basic/basic-threads-v3.xray", 500),
    "basic, arguments": ("xray/basic/basic-orphan-argpayload-v3.xray", 3),
    "basic, fork": ("xray/basic/basic-fork-v3.xray", 2),
    "fdr": ("xray/fdr/lua-small-v5.xray", 1000),
    "fdr, threads": ("xray/fdr/threads4-v5.xray", 700),
    "fdr, several connections": ("xray/fdr/sqmt-small-v5.xray", 3000),
    "fdr, small buffers": ("xray/fdr/threads2-tinybuf-v5.xray", 50),
    "fdr, overwritten buffers": ("xray/fdr/threads4-rotate-v5.xray", 40),
    "fdr, counter that wraps": ("xray/fdr/wrap-v5.xray", 7),
    "fdr, typed events": ("xray/fdr/typed-v5.xray", 5),
    "fdr, version 1": ("xray/fdr-old/threads_custom-v1.xray", 300),
    "fdr, version 4": ("xray/fdr-old/threads_custom-v4.xray", 300),
}
"""Logs, and the rows of a row group with which they have several."""


def _log(opened: Opened, name: str) -> tuple[pf.Profile, Path]:
    path, rows = LOGS[name]
    return opened.of((CORPUS / path,), rows)


def _times(profile: pf.Profile, rows: int, number: int) -> list[tuple[int, int]]:
    """Ranges: of times of events at and beside borders of row groups, of one event, of all, of none, random ones."""
    times = [ts for (ts,) in profile.sql("SELECT ts_ns FROM call_events").fetchall()]
    first, last = min(times), max(times)
    borders = [times[at + beside] for at in range(rows, len(times), rows) for beside in (-1, 0)]
    source = random.Random(number)
    some = source.sample(borders, min(len(borders), 3)) if borders else []
    chosen = [
        (first - 1000, first),
        (first, first + 1),
        (last, last + 1),
        (last + 1, last + 1000),
        (first - 5, last + 5),
        (times[len(times) // 2], times[len(times) // 2] + 1),
        (times[len(times) // 2], times[len(times) // 2]),
        *((at, at + (last - first) // 50 + 1) for at in some),
        *((at - (last - first) // 50, at) for at in some),
    ]
    for _ in range(4):
        start = source.choice(times) + source.randrange(-2, 3)
        chosen.append((start, start + source.randrange(1, (last - first) // source.choice([2, 10, 100]) + 2)))
    return chosen


@cache
def _asked() -> tuple[tuple[str, Callable[..., Any], tuple[Any, ...]], ...]:
    """What is asked of each range, but for the folder of exports."""
    options: tuple[dict[str, Any], ...] = (
        {},
        {"--tree": True},
        {"--inverted": True},
        {"--stacks": True},
        {"--per-thread": True},
        {"--recursive-only": True},
        {"--llvm-compat": True},
        {"--graph": True},
        {"--group": True},
        {"--format": "csv"},
        *({"--by": by} for by in ("thread", "cpu", "function")),
        *({"--sort": order} for order in ("self", "total", "count", "max")),
    )
    return (
        *((f"report {one}", report, (one,)) for one in options),
        ("diff", graph, ("function",)),
        ("samples", rows_of, ("samples",)),
        ("flame", flame_of, ()),
    )


@pytest.mark.parametrize("name", LOGS)
def test_answers_about_ranges_are_those_of_the_log(
    name: str, opened: Opened, tmp_path: Path, choice: random.Random
) -> None:
    """The copy is damaged: what reads it is an error. From log to log, other questions are of other kinds of ranges."""
    recorded, path = _log(opened, name)
    with pf.fuse(path) as saved:
        ranges = _times(recorded, LOGS[name][1], len(name))
        assert differences(_asked(), (recorded, saved), ranges, tmp_path / "out", choice) == []


def test_several_logs(opened: Opened, tmp_path: Path, choice: random.Random) -> None:
    """Logs of the same threads, one after the other in the table: borders of logs are in the middle of row groups."""
    names = ("xray/fdr/small-v5.xray", "xray/fdr/threads4-rotate-v5.xray")
    recorded, path = opened.of(tuple(CORPUS / name for name in names), 33)
    with pf.fuse(path) as saved:
        assert differences(_asked(), (recorded, saved), _times(recorded, 33, 5), tmp_path / "out", choice) == []


def test_calls_beside_samples(opened: Opened, tmp_path: Path, choice: random.Random) -> None:
    """A log of the program that perf sampled, whose functions a map names."""
    kind = KINDS["perf_xray"]
    recorded, path = opened.of(kind.paths, 5, **kind.fuse_options)
    with pf.fuse(path) as saved:
        assert border_events.BORDER_EVENTS in saved._opened.members
        ranges = _times(recorded, 5, 5)
        assert differences(_asked(), (recorded, saved), ranges, tmp_path / "out", choice) == []
        for times in (ranges[4], ranges[-1]):
            parts = [part_of(one, *times).during("slice", "*") for one in (recorded, saved)]
            expected, found = (answer_to(partial(report, one, {"--tree": True})) for one in parts)
            assert repr(expected) == repr(found)


def test_threads_and_filters(opened: Opened, tmp_path: Path, choice: random.Random) -> None:
    """A thread of a range, and filters of stacks in it."""
    recorded, path = _log(opened, "basic, threads")
    with pf.fuse(path) as saved:
        thread = recorded.sql("SELECT tid FROM threads JOIN call_events USING (thread_id) LIMIT 1").fetchall()[0][0]
        ranges = _times(recorded, ROWS, 3)[7:]
        assert differences(_asked(), (recorded, saved), ranges, tmp_path / "out", choice, thread=thread) == []
        name = recorded.sql("SELECT name::VARCHAR FROM functions LIMIT 1 OFFSET 3").fetchall()[0][0]
        for times in ranges[:2]:
            filtered = [part_of(one, *times).hide(name) for one in (recorded, saved)]
            found = [(report(one, {}), rows_of(one, "samples")) for one in filtered]
            assert found[0] == found[1]


@pytest.mark.parametrize("name", ["basic, threads", "basic, arguments", "fdr, counter that wraps"])
def test_single_calls_of_a_range(name: str, opened: Opened) -> None:
    """By their own time, with the keys that they have among all calls."""
    recorded, path = _log(opened, name)
    query = "SELECT f.name::VARCHAR FROM slices JOIN functions f USING (function_id) GROUP BY 1"
    [function] = recorded.sql(f"{query} ORDER BY count(*) DESC, 1 LIMIT 1").fetchall()[0]
    with pf.fuse(path) as saved:
        for times in _times(recorded, LOGS[name][1], 5)[5::4]:
            assert single_calls((recorded, saved), times, function) == []


@pytest.mark.parametrize("name", ["basic, threads", "fdr, threads"])
def test_the_page_of_a_range(name: str, opened: Opened) -> None:
    """With its timeline: calls, and where threads were."""
    recorded, path = _log(opened, name)
    with pf.fuse(path) as saved:
        for times in _times(recorded, LOGS[name][1], 9)[6:]:
            assert other_pages((recorded, saved), times, PAGES) == [], times


ROWS = LOGS["basic, threads"][1]


@pytest.fixture(scope="module")
def threads(opened: Opened) -> tuple[pf.Profile, Path]:
    """A log of several threads, and its saved profile, with copies that are not readable."""
    return _log(opened, "basic, threads")


def _changed(saved: Path, query: str, out: Path) -> Path:
    """The saved profile with other border events: the rows of a query over `borders`."""
    import duckdb

    with ZipFile(saved) as archive:
        out.with_suffix(".parquet").write_bytes(archive.read(border_events.BORDER_EVENTS))
    copied = out.with_suffix(".changed")
    with duckdb.connect() as database:
        database.sql(f"CREATE VIEW borders AS FROM '{out.with_suffix('.parquet')}'")
        database.sql(f"COPY ({query}) TO '{copied}' (FORMAT parquet, COMPRESSION zstd)")
    out.write_bytes(
        rewritten(saved.with_suffix(".whole").read_bytes(), {border_events.BORDER_EVENTS: copied.read_bytes()})
    )
    return out


WRONG = {
    "numbers of rows are not in order": "SELECT * REPLACE (if(row > 2000, row - 5, row)::UBIGINT AS row) FROM borders",
    "numbers of rows": "SELECT * REPLACE (row + 1000000000 AS row) FROM borders",
    "column thread_id refers": "SELECT * REPLACE (4000000000::UINTEGER AS thread_id) FROM borders",
    "column function_id refers": "SELECT * REPLACE (4000000000::UINTEGER AS function_id) FROM borders",
    "recordings are not in order": "SELECT * REPLACE ((row % 2)::UINTEGER AS source_id) FROM borders",
    "rows differ": "SELECT * REPLACE (ts_ns + 1 AS ts_ns) FROM borders",
    "rows differ: ": "FROM borders WHERE row % 500 > 0",
    "column ts_ns is missing": "SELECT * EXCLUDE (ts_ns) FROM borders",
}
"""Border events that contradict the table, by a part of the error."""


@pytest.mark.parametrize("message", WRONG)
def test_border_events_that_contradict_the_table_are_refused(
    threads: tuple[pf.Profile, Path], tmp_path: Path, message: str
) -> None:
    path = _changed(threads[1], WRONG[message], tmp_path / "changed.perfuse")
    with pf.fuse(path) as profile:
        span = profile.span_ns
        assert span is not None
        part = part_of(profile, (span[0] + span[1]) // 2, span[1])
        with pytest.raises(pf.UnreadableInput, match=message.removesuffix(": ")):
            report(part, {})


def test_other_border_events_end(threads: tuple[pf.Profile, Path], tmp_path: Path) -> None:
    """Border events of row groups that are not read are compared with nothing: there is an answer."""
    for number, query in enumerate(
        (
            "FROM borders WHERE row = 0 OR kind <> 'exit'",
            "FROM borders WHERE kind <> 'enter' OR row % 2 = 0",
            "SELECT * REPLACE (0::UINTEGER AS function_id) FROM borders",
            "SELECT * REPLACE ('argument' AS kind) FROM borders",
            "FROM borders LIMIT 0",
        )
    ):
        path = _changed(threads[1], query, tmp_path / f"{number}.perfuse")
        with pf.fuse(path) as profile:
            first, last = profile.span_ns or (0, 0)
            for times in ((last + 1, last + 5), ((first + last) // 2, (first + last) // 2 + 5)):
                answer = answer_to(partial(report, part_of(profile, *times), {}))
                assert isinstance(answer, tuple) or "UnreadableInput" in answer or "ExportError" in answer


def test_damage_is_found_where_it_is_read(threads: tuple[pf.Profile, Path], tmp_path: Path) -> None:
    """A changed byte in the middle of the table: of ranges far from it, answers are right."""
    recorded, saved = threads
    damaged = damaged_copy(saved, tmp_path / "damaged.perfuse", "tables/call_events")
    with pf.fuse(damaged) as profile:
        times = [ts for (ts,) in recorded.sql("SELECT ts_ns FROM call_events").fetchall()]
        early = (min(times), min(times) + 1000)
        assert report(part_of(profile, *early), {}) == report(part_of(recorded, *early), {})
        with pytest.raises(pf.UnreadableInput, match="table call_events: its checksum is wrong"):
            report(part_of(profile, min(times), max(times)), {})
        with pytest.raises(pf.UnreadableInput, match="table call_events: its checksum is wrong"):
            part_of(profile, min(times), max(times)).export(tmp_path / "out.pftrace")
        assert not (tmp_path / "out.pftrace").exists()


def test_files_of_earlier_versions_are_read_by_their_copies(threads: tuple[pf.Profile, Path], tmp_path: Path) -> None:
    """Without border events, and without keys among the facts about recordings."""
    recorded, saved = threads
    whole = saved.with_suffix(".whole").read_bytes()
    older = tmp_path / "older.perfuse"
    with ZipFile(saved) as archive:
        facts = json.loads(unpacked(archive.read("resolved/facts.json.xz"), 1 << 20))
    for one in facts["recordings"]:
        del one["keys"], one["span"]
    changes = (
        {"resolved/facts.json.xz": packed(json.dumps(facts).encode())},
        {border_events.BORDER_EVENTS: None},
    )
    for change in changes:
        older.write_bytes(rewritten(whole, change))
        with pf.fuse(older) as profile:
            first, last = recorded.span_ns or (0, 0)
            parts = [part_of(one, first, (first + last) // 2) for one in (profile, recorded)]
            assert report(parts[0], {}) == report(parts[1], {})
