"""The event that is shown by default is that of the whole recording, whichever samples a selection leaves."""

import subprocess
from pathlib import Path

import pytest

import perf_crafting as crafting
import perfuse as pf
from needs import need
from perfuse.analysis.sampled import events, select_event
from perfuse.analysis.stack_groups import StackGroups
from perfuse.analysis.weights import Weights
from perfuse.pictures.flame_graph import FlameGraph

PROGRAM = """
#include <sys/mman.h>
volatile unsigned long sum;
__attribute__((noinline)) void spin(void) { for (unsigned long i = 0; i < 100000000; i++) sum += i; }
__attribute__((noinline)) void touch(void) {
    volatile char *memory = mmap(0, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise((void *)memory, 4 << 20, MADV_NOHUGEPAGE);
    for (unsigned long i = 0; i < 4 << 20; i += 4096)
        for (int k = 0; k < 500; k++) memory[i] = k;
}
int main(void) { spin(); touch(); }
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> pf.Profile:
    """More samples of the clock than page faults; of `touch`, more page faults."""
    directory: Path = tmp_path_factory.mktemp("events")
    need("perf", "cc")
    (directory / "two.c").write_text(PROGRAM, encoding="utf-8")
    compiler = ["cc", "-O0", "-fno-omit-frame-pointer", "-o", "two", "two.c"]
    subprocess.run(compiler, cwd=directory, check=True, capture_output=True)
    chosen = "cpu-clock/period=200000/u,page-faults/period=10/u"
    command = ["perf", "record", "-qN", "-e", chosen, "-g", "-o", "perf.data", "--", "./two"]
    subprocess.run(command, cwd=directory, check=True, capture_output=True)
    return pf.fuse(directory / "perf.data")


def test_the_event_of_a_filtered_profile_is_that_of_the_whole(recorded: pf.Profile) -> None:
    shown = events(recorded)[0]
    touching = recorded.only("touch")
    left = {one.name: one.num_samples for one in events(touching)}
    assert "cpu-clock" in shown.name
    assert left[shown.name] < max(left.values())
    assert [one.name for one in events(touching)] == [one.name for one in events(recorded)]
    views = (select_event(touching, None), Weights(touching).event, FlameGraph.of(touching).event)
    for event in (*views, StackGroups(touching).event):
        assert (event.name, event.num_samples) == (shown.name, left[shown.name])


@pytest.mark.parametrize("part", ["thread", "process", "between", "between and only"])
def test_the_event_of_selected_threads_and_times_is_that_of_the_whole(tmp_path: Path, part: str) -> None:
    """Of thread 12, and after 1 ms, there are more page faults; of all, more samples of the clock."""
    fields = crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD | crafting.IDENTIFIER
    clock, faults = (crafting.Attribute.of((1, number), fields, ids=[number + 1]) for number in (0, 2))
    rows = [(clock, 11, 0)] * 9 + [(clock, 12, 2)] * 2 + [(faults, 12, 2)] * 5
    samples = [crafting.sample(event, pid=pid, tid=pid, time=10**9 + ms * 10**6, ip=4096) for event, pid, ms in rows]
    names = [crafting.comm(clock, pid, pid, "app") for pid in (11, 12)]
    binary = crafting.mmap2(clock, 12, "/x/a", 4096, 4096)
    whole = pf.fuse(crafting.PerfFile([clock, faults], [*names, binary, *samples]).write(tmp_path / "perf.data"))
    selected = {
        "thread": lambda: whole.thread(12),
        "process": lambda: whole.process(12),
        "between": lambda: whole.between(0.001, 1.0),
        "between and only": lambda: whole.between(0.001, 1.0).only("module:a"),
    }[part]()
    assert [(one.name, one.num_samples) for one in events(whole)] == [("cpu-clock", 11), ("page-faults", 5)]
    assert [(one.name, one.num_samples) for one in events(selected)] == [("cpu-clock", 2), ("page-faults", 5)]
    assert (select_event(selected, None).name, Weights(selected).event.num_samples) == ("cpu-clock", 2)
