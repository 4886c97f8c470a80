"""The event that is shown by default is that of the whole recording, whichever samples a filter of stacks leaves."""

import subprocess
from pathlib import Path

import pytest

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
