"""Pids of perf.data that a later process got after an earlier one had ended."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import perf_crafting as crafting
import perfuse as pf
from perf_crafting import PerfFile

CHAINS = Path(__file__).parents[1] / "truth" / "recorded" / "perf_machine" / "chains.perf.data"
TIME = 10**15
"""Later than all records of the file."""


@pytest.mark.parametrize(
    ("tasks", "found"),
    [
        ([(crafting.FORK, 700, 1, 700), (crafting.EXIT, 700, 1, 700), (crafting.FORK, 700, 1, 700)], ["700"]),
        ([(crafting.FORK, 700, 1, 700), (crafting.EXIT, 700, 1, 700), (crafting.FORK, 701, 1, 701)], []),
        # A thread is no process, and its end is not that of its process.
        (
            [
                (crafting.FORK, 700, 1, 700),
                (crafting.FORK, 700, 700, 705),
                (crafting.EXIT, 700, 700, 705),
                (crafting.FORK, 700, 700, 706),
            ],
            [],
        ),
        (
            [
                (crafting.EXIT, 700, 1, 700),
                (crafting.FORK, 700, 1, 700),
                (crafting.EXIT, 700, 1, 700),
                (crafting.FORK, 700, 1, 700),
            ],
            ["700", "700"],
        ),
    ],
)
def test_processes_of_one_pid_are_reported(
    tmp_path: Path, tasks: list[tuple[int, int, int, int]], found: list[str]
) -> None:
    file = PerfFile.read(CHAINS)
    file.records += [crafting.task(file.attributes[0], *task, TIME + number) for number, task in enumerate(tasks)]
    path = file.write(tmp_path / "perf.data")
    reported = [one for one in pf.open(path).check() if one.code == "PD023"]
    assert [one.message.split()[2] for one in reported] == found
    for one in reported:
        kind, _, size = struct.unpack_from("<IHH", path.read_bytes(), one.offset)
        assert (kind, size > 32) == (crafting.FORK, True)
