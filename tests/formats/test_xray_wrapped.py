"""Logs whose oldest buffers were overwritten, of a program that throws: what calls what is known from the program.

XRay records no exit of calls that an exception or `longjmp` left. `main` runs `serve`, which catches what `parse`
throws, again and again; the first event that is left may be any of them.
"""

from collections import Counter
from pathlib import Path

import pytest

import perfuse
from truth.command import command_line, json_of
from xray_bytes import HZ, Calls, buffer, log

MAIN, SERVE, PARSE, READ, THROW, REPLY = range(1, 7)
ENTER, EXIT = 0, 1


class Program:
    """Calls of a program as they are: its events, and the calls around each."""

    def __init__(self) -> None:
        self.events: list[tuple[int, int]] = []
        self._around: dict[int, list[int]] = {}
        self._stack: list[int] = []
        self._ended: set[int] = set()

    def call(self, function: int) -> None:
        at = len(self.events)
        self._around[at] = self._stack.copy()
        self.events.append((ENTER, function))
        self._stack.append(at)

    def end(self) -> None:
        at = self._stack.pop()
        self._ended.add(at)
        self.events.append((EXIT, self.events[at][1]))

    def throw_to(self, function: int) -> None:
        while self.events[self._stack[-1]][1] != function:
            self._stack.pop()

    def callers(self, first: int) -> Counter[tuple[int, int]]:
        """Calls that a log from an event on contains, by function and that of the nearest call around whose entry or
        exit it has, too."""
        found = Counter[tuple[int, int]]()
        for at, around in self._around.items():
            if at >= first:
                known = [one for one in around if one >= first or one in self._ended]
                found[self.events[at][1], self.events[known[-1]][1] if known else 0] += 1
        return found


def program(*, ends: bool) -> Program:
    """Five requests, each of which fails; with `ends` the program ends before the log does."""
    it = Program()
    it.call(MAIN)
    for _ in range(5):
        it.call(SERVE)
        for inner in (READ, REPLY):
            it.call(inner)
            it.end()
        it.call(PARSE)
        it.call(READ)
        it.end()
        it.call(THROW)
        it.throw_to(SERVE)
        it.end()
    if ends:
        it.end()
    return it


def recorded(path: Path, events: list[tuple[int, int]]) -> Path:
    """A log of one thread, 1 µs between events."""
    calls: Calls = [(action, function, 1000) for action, function in events]
    return log(path, buffer(5 * HZ, calls))


def callers(path: Path) -> Counter[tuple[int, int]]:
    """Calls by their function and that of the call around them, of calls whose entry is in the log."""
    sql = """
        SELECT f.native_id, coalesce(g.native_id, 0) FROM slices s JOIN functions f USING (function_id)
        LEFT JOIN slices p ON s.parent_slice_id = p.slice_id LEFT JOIN functions g ON p.function_id = g.function_id
        WHERE s.start_reason = 'entry'
    """
    return Counter(perfuse.fuse(path).sql(sql).fetchall())


@pytest.mark.parametrize("ends", [True, False])
def test_callers_are_those_of_the_program(tmp_path: Path, *, ends: bool) -> None:
    """For each event that a log may begin with."""
    it = program(ends=ends)
    num_compared = 0
    for first in range(1, len(it.events) - 10):
        # Nothing shows that other calls were around one that is the first event, and that an exception leaves.
        if it.events[first] in ((ENTER, PARSE), (ENTER, THROW)):
            continue
        found = callers(recorded(tmp_path / f"{first}.xray", it.events[first:]))
        assert found == it.callers(first), first
        num_compared += 1
    assert num_compared > 30


def test_times_of_what_was_left_end_with_the_catcher(tmp_path: Path) -> None:
    """Reports, exports and saved profiles: `throw` takes 1 µs, until `serve` returns, which catches it."""
    it = program(ends=False)
    first = it.events.index((EXIT, REPLY))
    path = recorded(tmp_path / "wrapped.xray", it.events[first:])
    saved = tmp_path / "saved.perfuse"
    perfuse.fuse(path).save(saved)
    for file in (path, saved):
        with perfuse.fuse(file) as profile:
            rows = profile.sql(
                "SELECT duration_ns, self_ns, end_reason::VARCHAR FROM slices JOIN functions USING (function_id) "
                f"WHERE native_id = {THROW} ORDER BY start_ns"
            ).fetchall()
            assert rows == [(1000, 1000, "unwound")] * 5
        assert json_of("report", file)["totals"]["num_truncated"] == 0
        lines = command_line("convert", file, "--to", "collapsed", "-o", "-").splitlines()
        of_throw = [line.rpartition(" ")[2] for line in lines if f";function {THROW} " in line]
        assert sum(map(int, of_throw)) == 5 * 1000


def test_long_calls_without_a_recorded_end_are_stated(tmp_path: Path) -> None:
    """`serve` was entered before the log, `parse` hangs in its last 9 ms: neither has a duration, and both are long."""
    ms = HZ // 1000
    calls = [
        (ENTER, READ, 1 * ms),
        (EXIT, READ, 2 * ms),
        (EXIT, SERVE, 3 * ms),
        (ENTER, PARSE, 0),
        (ENTER, READ, 9 * ms),
    ]
    path = log(tmp_path / "hung.xray", buffer(5 * HZ, calls))
    document = json_of("report", path, "--longer-than", "2ms")
    rows = {
        one["name"]: (one["num_calls"], one["max_ns"], one["num_lost"], one["num_truncated"], one["longest_part_ns"])
        for one in document["functions"]
    }
    assert rows == {
        f"function {READ}": (1, 2 * ms, 0, 0, None),
        f"function {PARSE}": (0, None, 0, 1, 9 * ms),
        f"function {SERVE}": (0, None, 1, 0, 5 * ms),
    }
    text = command_line("report", path, "--longer-than", "4ms")
    assert "0 calls of at least 4.00 ms" in text
    assert "2 calls whose start or end was not recorded" in text
    assert "1 open at the end, 9.00 ms or more" in text
    assert "1 begun before, 5.00 ms or more" in text
