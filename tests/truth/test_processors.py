"""Samples by processor, compared with `perf script`."""

import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from needs import need
from truth.command import command_line, json_of

LOOP = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"


def _record(directory: Path, *options: str) -> Path:
    need("perf")
    recording = directory / "perf.data"
    command = ["perf", "record", "-qN", "-e", "cpu-clock", "-F", "999", *options, "-o", recording, "--"]
    program = "; ".join(f"taskset -c {cpu} sh -c '{LOOP}'" for cpu in sorted(os.sched_getaffinity(0))[:2])
    subprocess.run([*command, "sh", "-c", program], check=True, capture_output=True)
    return recording


@pytest.mark.parametrize("options", [["--sample-cpu"], ["-a"]])
def test_processors_are_those_of_perf(options: list[str], tmp_path: Path) -> None:
    recording = _record(tmp_path, *options)
    command = ["perf", "script", "-f", "-i", recording, "-F", "cpu,period"]
    weights, samples = Counter[str](), Counter[str]()
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        cpu, period = line.split()
        name = f"cpu {int(cpu.strip('[]'))}"
        weights[name] += int(period)
        samples[name] += 1
    groups = json_of("report", recording, "--by", "cpu", "--limit", "0")["groups"]
    assert {one["name"]: one["self_weight"] for one in groups} == weights
    assert {one["name"]: one["self_count"] for one in groups} == samples
    assert "Processors  samples of each" in command_line("report", recording, "--by", "cpu")


def test_without_processors_there_is_a_hint(tmp_path: Path) -> None:
    recording = _record(tmp_path)
    report = subprocess.run(
        ["perfuse", "report", recording, "--by", "cpu"], capture_output=True, text=True, check=False
    )
    assert (report.returncode, report.stdout) == (2, "")
    assert "no processor was recorded for cpu-clock" in report.stderr
    assert "--sample-cpu" in report.stderr
