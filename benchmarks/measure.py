"""What a command costs: wall and processor time, peak memory, files it leaves behind."""

import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


class CommandError(Exception):
    """A command that was to be measured did not do its job."""


@dataclass(frozen=True, slots=True)
class Cost:
    """One run; `rss_bytes` is the largest of the command's processes."""

    wall_s: float
    cpu_s: float
    rss_bytes: int
    num_files: int

    def __add__(self, other: "Cost") -> "Cost":
        """Both, one after the other."""
        return Cost(
            self.wall_s + other.wall_s,
            self.cpu_s + other.cpu_s,
            max(self.rss_bytes, other.rss_bytes),
            self.num_files + other.num_files,
        )


def run(command: Sequence[str | Path], output: Path, watched: Path, accept: Sequence[int] = (0,)) -> Cost:
    """Runs a command with its output in a file; counts the files that are new in the directory `watched`."""
    before = _names(watched)
    with output.open("wb") as standard_output:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=standard_output, stderr=subprocess.PIPE)
        assert process.stderr is not None
        messages = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    if process.returncode not in accept:
        said = messages.decode(errors="replace")
        raise CommandError(f"{' '.join(map(str, command))}: exit code {process.returncode}\n{said}")
    new = _names(watched) - before - {output.name}
    return Cost(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, len(new))


def best(costs: Sequence[Cost]) -> Cost:
    """The run that was disturbed least."""
    return min(costs, key=lambda cost: cost.wall_s)


def copy_rate(num_bytes: int) -> float:
    """Bytes a second of a plain copy in memory, into pages that were touched before."""
    source, target = memoryview(bytes(num_bytes)), memoryview(bytearray(num_bytes))
    rates = []
    for _ in range(3):
        started = time.perf_counter()
        target[:] = source
        rates.append(num_bytes / (time.perf_counter() - started))
    return max(rates)


def _names(directory: Path) -> set[str]:
    return {entry.name for entry in os.scandir(directory)}
