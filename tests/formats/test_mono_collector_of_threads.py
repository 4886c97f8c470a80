"""Section `gc` of threads: a pause is of the threads that exist then, and objects move within pauses."""

from pathlib import Path

import pytest

import perfuse as pf
from truth.command import command_line, json_of

FIRST, LATE, MS = 0x10, 0x20, 1_000_000
THREAD, STOP, STOPPED, START, STARTED, MINOR = 5, 6, 7, 8, 9, 0
MOVES = {10: 3, 30: 2, 50: 1}
"""Number of objects that move in the pause at a time in milliseconds."""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Thread 0x20 exists from 20 to 40 ms."""
    path = tmp_path / "gc.mlpd"
    with pf.mono.Writer(path, version=17, pid=7) as writer:
        for native, at, what in ((FIRST, 1, "LOAD"), (LATE, 20, "LOAD"), (LATE, 40, "UNLOAD")):
            writer.event(f"METADATA_END_{what}", native, at * MS, mtype=THREAD, pointer=native)
        for at, num in MOVES.items():
            for late, event in enumerate((STOP, STOPPED)):
                writer.event("GC_EVENT", FIRST, at * MS + late, event=event, generation=MINOR)
            objects = [{"object": 0x1000 + 8 * index} for index in range(2 * num)]
            writer.event("GC_MOVE", FIRST, at * MS + 10, objects=objects)
            for late, event in enumerate((START, STARTED)):
                writer.event("GC_EVENT", FIRST, at * MS + 20 + late, event=event, generation=MINOR)
    return path


@pytest.mark.truth(
    recording="mono_allocations", path="report:gc", source="a log assembled here, with a thread from 20 to 40 ms"
)
def test_objects_moved_in_pauses_of_a_thread(log: Path) -> None:
    def found(*options: str) -> tuple[int, int]:
        gc = json_of("report", log, "--section", "gc", *options)["gc"]
        return gc["pauses"]["count"], gc["num_moves"]

    assert found() == found("--thread", str(FIRST)) == (3, 6)
    assert found("--thread", str(LATE)) == (1, 2)
    assert found("--thread", str(FIRST), "--between", "0..0.03") == (2, 5)


def test_a_thread_without_a_pause_has_no_section(log: Path) -> None:
    text = command_line("report", log, "--section", "gc", "--thread", str(LATE), "--between", "0.034..1")
    assert "moved" not in text
    assert "recorded, without an event in the selection" in text
