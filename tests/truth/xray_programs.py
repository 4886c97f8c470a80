"""Programs that clang instruments for XRay, and that print calls and times they measured themselves."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from needs import need

from .producers import PROGRAMS, run_tool

MODES = {"xray_fdr": "xray-fdr", "xray_basic": "xray-basic", "xray_profiling": "xray-profiling"}
"""LLVM's names of modes, by kind of recording."""

_EXACT = {"XRAY_MODE_OPTIONS": "func_duration_threshold_us=0"}
_BASIC = {
    # Its buffers are written when threads end: the recorder would end it before main does.
    "XRAY_OPTIONS": "patch_premain=true xray_mode=xray-basic xray_logfile_base=xray-log.",
    "XRAY_BASIC_OPTIONS": "func_duration_threshold_us=0",
}


DISTURBED_NS = 500_000
"""Most that the recorder and the rest of the machine may add to all calls of a run together."""


@dataclass(frozen=True, slots=True)
class Known:
    """What a program states about one of its functions."""

    calls: int
    self_ns: int
    total_ns: int


@dataclass(frozen=True, slots=True)
class Traced:
    """A run of a program that was recorded."""

    program: Path
    log: Path
    functions: dict[str, Known]


def build(directory: Path, source: str) -> Path:
    """Compiles a program of `programs` with clang 22 for all modes of XRay."""
    need("clang-22", "clang++-22")
    program = directory / source.removesuffix(".c")
    flags = ["-O1", "-g", "-fxray-instrument", "-fxray-instruction-threshold=1000"]
    run_tool(["clang-22", *flags, "-c", PROGRAMS / source, "-o", "program.o"], directory)
    run_tool(["clang++-22", "-O1", "-c", PROGRAMS / "xray_recorder.cpp", "-o", "recorder.o"], directory)
    modes = f"-fxray-modes={','.join(MODES.values())}"
    linked = ["program.o", "recorder.o", "-Wl,--wrap=main", "-pthread", "-o", program]
    run_tool(["clang++-22", "-fxray-instrument", modes, *linked], directory)
    return program


def run(program: Path, directory: Path, kind: str, *arguments: str) -> Traced:
    """Runs a program in the mode of a kind of recording, in a directory of its own.

    A run that something else on the machine disturbed is repeated: the clock that the program read within its calls and
    the one that their callers read then differ, and the log may contain either time.
    """
    directory.mkdir()
    environment = {**os.environ, **(_BASIC if kind == "xray_basic" else {"XRAY_MODE": MODES[kind], **_EXACT})}
    disturbed = []
    while len(disturbed) < 50:
        done = subprocess.run(
            [program, *arguments],
            cwd=directory,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr
        (log,) = directory.glob("xray-log.*")
        stated = json.loads(done.stdout)
        if stated["disturbed_ns"] < DISTURBED_NS:
            return Traced(program, log, {name: Known(**known) for name, known in stated["functions"].items()})
        disturbed.append(stated["disturbed_ns"])
        log.unlink()
    pytest.fail(f"all runs were disturbed, by {min(disturbed)} ns and more")
