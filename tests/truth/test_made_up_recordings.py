"""Every sample of made-up recordings is what perf prints: who, when, how much, and in which mappings."""

from __future__ import annotations

import io
import re
import subprocess
from pathlib import Path

import pytest

import perfuse as pf
from needs import need
from perfuse.exporters import export

from .made_up import MadeUp

SEEDS = range(20)
_SAMPLE = re.compile(r"^ *(.+?) +(\d+)/(\d+) +(?:\[\d+\] +)?(\d+\.\d{9}): +(\d+) +(\S+?): *(.*)$")
_MODULE = re.compile(r"\(([^()]*)\)$")

Sample = tuple[tuple[str, ...], list[str]]


def samples(text: str) -> list[Sample]:
    """The samples of a text of perf script: command, pid, tid, time, period, event, and the module of each frame."""
    found: list[Sample] = []
    for line in filter(None, text.splitlines()):
        head = _SAMPLE.match(line)
        if head is not None:
            found.append((head.groups()[:6], []))
        if module := _MODULE.search(line if head is None else head[7]):
            found[-1][1].append(module[1])
    return sorted(found)


@pytest.mark.truth(recording="perf_data", path="convert:perf-script", source="perf script")
@pytest.mark.parametrize("seed", SEEDS)
def test_samples_are_those_that_perf_prints(tmp_path: Path, seed: int) -> None:
    need("perf")
    recording = MadeUp(seed).file().write(tmp_path / "perf.data")
    fields = "comm,pid,tid,time,period,event,ip,sym,dso"
    command = ["perf", "--buildid-dir", str(tmp_path), "script", "--ns", "-f", "-i", str(recording), "-F", fields]
    theirs = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    out = io.BytesIO()
    with pf.fuse(recording) as profile:
        export(profile, out, to="perf-script")
    expected = samples(theirs)
    assert len(expected) > 80
    assert samples(out.getvalue().decode()) == expected
