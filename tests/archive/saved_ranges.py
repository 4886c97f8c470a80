"""Answers about ranges of time of a saved profile whose copies cannot be read, and those of the recordings."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from questions import answer_to, exported, report

import perfuse as pf
from packs_of_tests import damaged_copy
from perfuse.archive import writing
from perfuse.exporters import TARGETS
from perfuse.filters.selection import Selection
from perfuse.viewer.routes import Routes
from perfuse.viewer.session import Session


@contextmanager
def small_groups(rows: int) -> Iterator[None]:
    """Row groups of few rows, whose borders many calls cross; facts also about small recordings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "GROUP_ROWS", rows)
        patch.setattr(writing, "SMALL_COPIES", 0)
        yield


class Opened:
    """Recordings, and their saved profiles without readable copies: what needs these fails.

    Profiles that were saved stay open: threads of Basic mode get keys in the order in which parts of a log are decoded.
    """

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._known: dict[tuple[Path, ...], tuple[pf.Profile, Path]] = {}

    def of(self, paths: tuple[Path, ...], rows: int, **options: Any) -> tuple[pf.Profile, Path]:
        """The profile of recordings, and its saved profile, whose file with readable copies ends in `.whole`."""
        if not all(path.exists() for path in paths):
            pytest.skip("no corpus")
        if paths not in self._known:
            out = self._folder / f"{len(self._known)}.perfuse"
            recorded = self._stack.enter_context(pf.fuse(*paths, **options))
            with small_groups(rows):
                recorded.save(out.with_suffix(".whole"))
            self._known[paths] = recorded, damaged_copy(out.with_suffix(".whole"), out, "inputs/")
        return self._known[paths]


def part_of(profile: pf.Profile, start_ns: int, end_ns: int, **more: Any) -> pf.Profile:
    return profile._selected(Selection(start_ns, end_ns, **more))


def rows_of(part: pf.Profile, table: str) -> list[tuple[Any, ...]]:
    return part.sql(f"SELECT * FROM {table}").fetchall()


def flame_of(part: pf.Profile) -> str:
    return part.flame()._repr_html_()


EXPORTED = [
    one for one in TARGETS if one.name not in ("elf", "jslb", "mono", "perf-data", "perf-map", "xray", "xray-yaml")
]
"""Targets that are not made of the bytes of recordings."""


def viewed(part: pf.Profile, asked: tuple[tuple[str, str], ...]) -> list[object]:
    session = Session(lambda _progress: part, [])
    session.open_now()
    routes = Routes(session)
    return [answer_to(lambda one=one: routes.answer("GET", f"/api/{one[0]}", one[1], b"").body) for one in asked]


PAGES = (
    *((one, "") for one in ("overview", "report", "tree", "functions", "timeline", "symbols")),
    *(("tiles", f"k=14&first=0&last=40&tracks={track}") for track in range(6)),
)
"""Questions of the page: path and parameters."""


Asked = tuple[tuple[str, Callable[..., Any], tuple[Any, ...]], ...]
"""Questions: name, function, and arguments after the profile."""


def differences(
    asked: Asked,
    pair: tuple[pf.Profile, pf.Profile],
    ranges: Sequence[tuple[int, int]],
    folder: Path,
    choice: random.Random,
    **more: Any,
) -> list[str]:
    """Questions and exports with other answers of a saved profile than of the recordings.

    Half of them are asked, each of one of the ranges, and the first one, the report, of the first one.
    """
    asked = (*asked, *((one.name, exported, (one, one.outputs[0], folder)) for one in EXPORTED))
    chosen = (asked[0], *choice.sample(asked[1:], len(asked) // 2))
    different = []
    for number, times in enumerate(ranges):
        parts = [part_of(one, *times, **more) for one in pair]
        for what, ask, arguments in chosen[number :: len(ranges)]:
            expected, found = (answer_to(partial(ask, part, *arguments)) for part in parts)
            if repr(expected) != repr(found):
                error = found if isinstance(found, (str, Exception)) else "other"
                different.append(f"{what} of {times}: {error}"[:300])
    return different


def single_calls(pair: tuple[pf.Profile, pf.Profile], times: tuple[int, int], function: str) -> list[str]:
    """Questions about single calls with other answers of a range of a saved profile than of the recordings."""
    start, end = times
    query = f"SELECT * FROM slices WHERE start_ns >= {start} AND start_ns < {end}"
    asked: Asked = (
        ("slices", lambda part: part.sql(query).fetchall(), ()),
        ("slowest", report, ({"--slowest": function},)),
        ("longer", report, ({"--longer-than": 1000},)),
    )
    different = []
    for what, ask, arguments in asked:
        expected, found = (answer_to(partial(ask, part_of(one, *times), *arguments)) for one in pair)
        if repr(expected) != repr(found):
            different.append(f"{what} of {times}: {found}"[:300])
    return different


def other_pages(
    pair: tuple[pf.Profile, pf.Profile], times: tuple[int, int], asked: tuple[tuple[str, str], ...]
) -> list[tuple[str, str]]:
    """Questions of the page with other answers of a range of a saved profile than of the recordings."""
    answers = zip(asked, *(map(repr, viewed(part_of(one, *times), asked)) for one in pair), strict=True)
    return [one for one, expected, found in answers if expected != found]
