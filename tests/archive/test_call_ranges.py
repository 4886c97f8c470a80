"""Calls of a range of time of a saved profile: the answers of the recordings, of a part of the saved tables."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from questions import answer_to, exported, graph, report

import perfuse as pf
from archive.test_partial_reading import _damaged
from packs_of_tests import rewritten
from perfuse import _core
from perfuse.archive import border_events, writing
from perfuse.exporters import TARGETS
from perfuse.selection import Selection
from truth.kinds import CORPUS

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


@contextmanager
def _small_groups(rows: int) -> Iterator[None]:
    """Row groups of few rows, whose borders many calls cross; facts also about small recordings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "GROUP_ROWS", rows)
        patch.setattr(writing, "SMALL_COPIES", 0)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("calls")


@pytest.fixture(autouse=True)
def of_any_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long ranges are read from the tables, too."""
    monkeypatch.setattr(border_events, "MOST_GROUPS", 2.0)


def _saved(names: tuple[str, ...], rows: int, folder: Path) -> tuple[list[Path], Path]:
    """The recordings, and their saved profile without readable copies: what needs them fails."""
    paths = [CORPUS / name for name in names]
    if not all(path.exists() for path in paths):
        pytest.skip("no corpus")
    out = folder / f"{'-'.join(path.stem for path in paths)}.perfuse"
    if not out.exists():
        whole = out.with_suffix(".whole")
        with pf.fuse(*paths) as profile, _small_groups(rows):
            profile.save(whole)
        _damaged(whole, out, "inputs/")
    return paths, out


def _times(profile: pf.Profile, rows: int, number: int) -> list[tuple[int, int]]:
    """Ranges: of times of events at and beside borders of row groups, of one event, of all, of none, and random ones."""
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


def _part(profile: pf.Profile, start_ns: int, end_ns: int, **more: Any) -> pf.Profile:
    return profile._selected(Selection(start_ns, end_ns, **more))


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
        ("samples", _rows, ("samples",)),
        ("flame", _flame, ()),
    )


def _rows(part: pf.Profile, table: str) -> list[tuple[Any, ...]]:
    return part.sql(f"SELECT * FROM {table}").fetchall()


def _flame(part: pf.Profile) -> str:
    return part.flame()._repr_html_()


EXPORTED = [one for one in TARGETS if one.name not in ("elf", "jslb", "mono", "perf-data", "perf-map", "xray", "xray-yaml")]
"""Targets that are not made of the bytes of recordings."""


def _differences(
    recorded: pf.Profile, saved: pf.Profile, times: tuple[int, int], folder: Path, **more: Any
) -> list[str]:
    parts = [_part(one, *times, **more) for one in (recorded, saved)]
    asked = [
        *_asked(),
        *((one.name, exported, (one, one.outputs[0], folder)) for one in EXPORTED),
    ]
    different = []
    for what, ask, arguments in asked:
        expected, found = (answer_to(partial(ask, part, *arguments)) for part in parts)
        if repr(expected) != repr(found):
            different.append(f"{what} of {times}: {found if isinstance(found, (str, Exception)) else 'other'}"[:300])
    return different


@pytest.mark.parametrize("name", LOGS)
def test_answers_about_ranges_are_those_of_the_log(name: str, folder: Path, tmp_path: Path) -> None:
    """The copy is damaged: what reads it is an error."""
    path, rows = LOGS[name]
    paths, saved_path = _saved((path,), rows, folder)
    with pf.fuse(*paths) as recorded, pf.fuse(saved_path) as saved:
        ranges = _times(recorded, rows, len(name))
        different = [one for times in ranges for one in _differences(recorded, saved, times, tmp_path / "out")]
    assert different == []
