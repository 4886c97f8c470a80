"""Samples by command: a program that forks, and replaces itself by another, compared with `perf script`."""

import io
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import perfuse
from needs import need
from perfuse.exporters import export
from truth.command import command_line, json_of

PROGRAM = """
i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done
( i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done; exec "$1" -c 'sum(range(8 * 10**6))' )
exec "$1" -c 'sum(range(8 * 10**6))'
"""
"""Samples of the shell, of a child before and after its exec, and of another program in the shell's own process."""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need("perf")
    directory = tmp_path_factory.mktemp("commands")
    python = directory / "counting program"
    shutil.copy(Path(sys.executable).resolve(), python)
    perf = ["perf", "record", "-qN", "-e", "cpu-clock", "-F", "1999", "-g", "-o", directory / "perf.data"]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONHOME": sys.base_prefix}
    subprocess.run([*perf, "--", "sh", "-c", PROGRAM, "sh", python], check=True, capture_output=True, env=environment)
    return directory / "perf.data"


def perf_samples(recording: Path) -> list[tuple[str, int, int]]:
    """Command, tid and period of each sample, as perf prints them."""
    fields = ["-F", "comm,tid,period", "-G"]
    command = ["perf", "script", "--no-inline", "-f", "-i", str(recording), *fields]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = [line.rsplit(maxsplit=2) for line in text.splitlines() if line.strip()]
    return [(comm.strip(), int(tid), int(period)) for comm, tid, period in rows]


def test_commands_are_those_of_perf(recording: Path) -> None:
    weights, samples, threads = Counter[str](), Counter[str](), dict[int, set[str]]()
    for command, tid, period in perf_samples(recording):
        weights[command] += period
        samples[command] += 1
        threads.setdefault(tid, set()).add(command)
    assert {"sh", "counting progra"} <= weights.keys()
    assert sum({"sh", "counting progra"} <= names for names in threads.values()) == 2
    groups = json_of("report", recording, "--by", "command", "--limit", "0")["groups"]
    assert {one["name"]: one["self_weight"] for one in groups} == weights
    assert {one["name"]: one["self_count"] for one in groups} == samples
    text = command_line("report", recording, "--by", "command")
    assert "Commands  samples of each" in text


def test_selected_samples_have_their_own_names(recording: Path) -> None:
    """A function that only one of two programs has selects its samples."""
    groups = json_of("report", recording, "--by", "command", "--only", "_PyEval*", "--limit", "0")["groups"]
    assert [one["name"] for one in groups] == ["counting progra"]


def test_text_of_perf_script_names_each_sample(recording: Path) -> None:
    out = io.BytesIO()
    export(perfuse.fuse(recording), out, to="perf-script")
    heads = [one.split("\n")[0] for one in out.getvalue().decode().split("\n\n") if one]
    ours = Counter(head.rsplit("/", 1)[0].rsplit(" ", 1)[0].strip() for head in heads)
    assert ours == Counter(command for command, _, _ in perf_samples(recording))


def test_a_saved_profile_keeps_the_names(recording: Path, tmp_path: Path) -> None:
    saved = tmp_path / "saved.perfuse"
    perfuse.fuse(recording).save(saved)
    for words in (("--by", "command"), ("--by", "command", "--json"), ("--by", "command", "--between", "0.05..0.4")):
        of_saved, of_recording = (command_line("report", path, *words) for path in (saved, recording))
        assert of_saved.replace(str(saved), str(recording)) == of_recording
    rows = "SELECT * FROM thread_names ORDER BY ALL"
    assert perfuse.fuse(saved).sql(rows).fetchall() == perfuse.fuse(recording).sql(rows).fetchall()
