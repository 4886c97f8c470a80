"""Code that moves to where other code was, which moved too: names by the program's own times, and by perf."""

import platform
import re
import subprocess
import sys
from collections import Counter

import pytest

import perfuse
from needs import need

from .command import json_of
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


@pytest.mark.truth(recording="perf_data", path="annotate", source="perf script, and the program's own times")
def test_code_that_returned_to_an_address_has_the_samples_of_each_time(run: Run) -> None:
    script = ["perf", "script", "-G", "-i", run.perf_data, "--ns", "-F", "time,ip"]
    printed = subprocess.run(script, check=True, capture_output=True, text=True).stdout
    samples = [(int(second + rest), int(ip, 16)) for second, rest, ip in re.findall(r"(\d+)\.(\d+):\s+(\w+)", printed)]
    expected = [
        (phase.address, sum(phase.start_ns <= at < phase.end_ns and 0 <= ip - phase.address < 16 for at, ip in samples))
        for phase in run.phases
        if phase.function == "first" and phase.address
    ]
    (code,) = json_of("annotate", run.perf_data, run.dump, "first")["compilations"]
    assert [(int(one["address"], 16), one["self_samples"]) for one in code["places"]] == expected
    assert len(expected) == 3
    assert code["self_samples"] == sum(count for _, count in expected)
