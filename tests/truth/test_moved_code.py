"""Code that moves to where other code was, which moved too: names by the program's own times, and by perf."""

import platform
import re
import subprocess
import sys
from collections import Counter

import pytest

import perfuse
from needs import need

from .producers import PROGRAMS, Run, record


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    need("perf")
    if platform.machine() not in ("x86_64", "aarch64"):
        pytest.skip("the program has machine code of two machines")
    return record([sys.executable, PROGRAMS / "moved_code.py"], tmp_path_factory.mktemp("moved"))


SAMPLES = """
    SELECT ts_ns, address, name FROM samples JOIN stacks USING (stack_id) JOIN frames USING (frame_id)
    LEFT JOIN functions USING (function_id)"""


@pytest.mark.truth(recording="perf_data", path="api:Profile.sql", source="the program's own times")
def test_every_sample_has_the_name_of_the_busy_function(run: Run) -> None:
    profile = perfuse.fuse(run.perf_data, run.dump)
    found: Counter[tuple[str, int]] = Counter()
    for ts_ns, address, name in profile.sql(SAMPLES).fetchall():
        for phase in run.phases:
            start = phase.address or 0
            if phase.start_ns <= ts_ns < phase.end_ns and start <= address < start + 16:
                assert name == phase.function
                found[name, start] += 1
    assert len(found) == 4
    assert min(found.values()) > 20


@pytest.mark.truth(recording="perf_data", path="api:Profile.sql", source="perf script after perf inject")
def test_perf_gives_the_same_names(run: Run) -> None:
    perf = ["perf", "inject", "--jit", "-i", "perf.data", "-o", "injected"]
    subprocess.run(perf, cwd=run.directory, check=True, capture_output=True)
    script = ["perf", "script", "-G", "-i", "injected", "-F", "ip,sym"]
    printed = subprocess.run(script, cwd=run.directory, check=True, capture_output=True, text=True).stdout
    theirs = Counter(re.findall(r"\b(first|second)\b", printed))
    profile = perfuse.fuse(run.perf_data, run.dump)
    names = Counter(name for _, _, name in profile.sql(SAMPLES).fetchall())
    assert theirs == {name: names[name] for name in ("first", "second")}
    assert len(theirs) == 2
