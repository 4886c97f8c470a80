"""Measures commands: wall time, CPU time, peak memory, number of files written."""

import atexit
import compileall
import importlib.resources
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path


class CommandError(Exception):
    """A measured command failed."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one run; `rss_bytes` is the peak of the largest process of the command."""

    wall_s: float
    cpu_s: float
    rss_bytes: int
    num_files: int

    def __add__(self, other: "Cost") -> "Cost":
        """The cost of two consecutive runs."""
        return Cost(
            self.wall_s + other.wall_s,
            self.cpu_s + other.cpu_s,
            max(self.rss_bytes, other.rss_bytes),
            self.num_files + other.num_files,
        )


@dataclass(frozen=True, slots=True)
class Goal:
    """A measured value compared with its target."""

    what: str
    is_met: bool

    def __str__(self) -> str:
        return f"{'met     ' if self.is_met else 'NOT MET '} {self.what}"


def run(command: Sequence[str | Path], output: Path, watched: Path, accept: Sequence[int] = (0,)) -> Cost:
    """Runs a command with its output in a file; counts new files in the directory `watched`."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "cost"
        before = _names(watched)
        with output.open("wb") as standard_output:
            launched = [_launcher(), report, *command]
            done = subprocess.run(launched, stdout=standard_output, stderr=subprocess.PIPE, check=False)
        messages = done.stderr.decode(errors="replace")
        if done.returncode:
            raise CommandError(f"the launcher failed: {messages}")
        wall, user, system, rss_kib, code = report.read_text(encoding="ascii").split()
    if int(code) not in accept:
        raise CommandError(f"{' '.join(map(str, command))}: exit code {code}\n{messages}")
    new = _names(watched) - before - {output.name}
    return Cost(float(wall), float(user) + float(system), int(rss_kib) * 1024, len(new))


@cache
def _launcher() -> Path:
    """The program that starts commands and measures them, compiled once for each process.

    A child of this process would be charged with the memory of this process.
    """
    directory = tempfile.mkdtemp(prefix="perfuse-launcher-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    program = Path(directory) / "launcher"
    source = Path(__file__).with_name("launcher.c")
    subprocess.run([os.environ.get("CC", "cc"), "-O1", "-o", program, source], check=True)
    return program


def installed(*names: str) -> list[str]:
    """The commands among these that are installed: the system's own, and a newer version under a name of its own."""
    return [name for name in names if shutil.which(name)]


def compile_perfuse() -> None:
    """Compiles the Python modules, as an installer does; Python may be configured not to do so for a source tree."""
    compileall.compile_dir(str(importlib.resources.files("perfuse")), quiet=1)


def best(costs: Sequence[Cost]) -> Cost:
    """The run with the shortest wall time."""
    return min(costs, key=lambda cost: cost.wall_s)


def decode(path: Path, table: str) -> tuple[float, int]:
    """The seconds to stream a table of a file in a separate process, and its number of rows."""
    command: list[str | Path] = [sys.executable, Path(__file__).with_name("decode.py"), path, table]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    return answer["seconds"], answer["num_rows"]


def warm(*paths: Path) -> None:
    """Reads files into the page cache."""
    for path in paths:
        with path.open("rb", buffering=0) as file:
            while file.read(1 << 24):
                pass


def output_of(*command: str | Path) -> str:
    """The standard output of a command."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def print_costs(costs: Mapping[str, Cost]) -> None:
    """Prints a Markdown table of runs, in the form of the README's; ratios are relative to the first."""
    first = next(iter(costs.values()))
    width = max(map(len, costs)) + 2
    print(f"| {'':{width}} |     wall |      CPU | peak memory | files written |   ratio |")
    print(f"|{'-' * (width + 2)}|---------:|---------:|------------:|--------------:|--------:|")
    for name, cost in costs.items():
        times = f"{cost.wall_s:6.2f} s | {cost.cpu_s:6.2f} s"
        counts = f"{cost.rss_bytes / 1e6:8,.0f} MB | {cost.num_files:13,} | {cost.wall_s / first.wall_s:6.1f}x"
        print(f"| {f'`{name}`':{width}} | {times} | {counts} |")


def copy_rate(num_bytes: int) -> float:
    """Bytes per second of a memory copy into pages that are already mapped."""
    # Not zeros: all pages that were never written share one zero page.
    source, target = memoryview(b"\x01" * num_bytes), memoryview(bytearray(num_bytes))
    rates = []
    for _ in range(3):
        started = time.perf_counter()
        target[:] = source
        rates.append(num_bytes / (time.perf_counter() - started))
    return max(rates)


def peak_bytes(pid: int) -> int:
    """Most memory that a process has used."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def _names(directory: Path) -> set[str]:
    return {entry.name for entry in os.scandir(directory)}
