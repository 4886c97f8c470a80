"""Runs `perfuse record`, and reads what it wrote."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truth.command import json_of

PROGRAMS = Path(__file__).parent / "programs"
HOT, WARM = "inner_hot", "outer_warm"


@dataclass(frozen=True, slots=True)
class Run:
    """A run of `perfuse record`."""

    done: subprocess.CompletedProcess[str]
    directory: Path

    @property
    def note(self) -> dict[str, Any]:
        """What it noted."""
        found: dict[str, Any] = json.loads((self.directory / "record.json").read_text(encoding="ascii"))
        return found

    def share(self, *names: str) -> float:
        """The share of samples with a function of one of these names on the stack, by `perfuse report`."""
        report = self.report()
        total = sum(event["weight"] for event in report["events"])
        rows = [row for row in report["top_total"] if any(name in row["name"] for name in names)]
        return max((row["total_weight"] for row in rows), default=0) / total if total else 0

    def report(self, *options: str) -> dict[str, Any]:
        """The report on the directory."""
        report: dict[str, Any] = json_of("report", self.directory, "--limit", "0", *options)
        return report


def default_signals() -> None:
    """For a child process: the tests themselves may run where signals are ignored."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)


def record(
    command: Sequence[str | Path],
    directory: Path,
    *options: str,
    environment: Mapping[str, str] | None = None,
) -> Run:
    """Records a command that is run in a directory of its own; the recording is in `run` there."""
    words = [sys.executable, "-m", "perfuse", "record", "-o", "run", "--no-report", *options]
    done = subprocess.run(
        [*words, *(["--", *map(str, command)] if command else [])],
        cwd=directory,
        env={**os.environ, "NO_COLOR": "1", **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        preexec_fn=default_signals,
    )
    return Run(done, directory / "run")


DURATIONS_S = (0.5, 5, 50)


def record_until(
    has_enough: Callable[[Run], object], command: Sequence[str | Path], directory: Path, *options: str
) -> Run:
    """Records for a limited time; where the machine did something else in that time, again for longer."""
    for duration_s in DURATIONS_S:
        shutil.rmtree(directory / "run", ignore_errors=True)
        run = record(command, directory, *options, "--duration", str(duration_s))
        assert run.directory.exists(), run.done.stderr
        if has_enough(run):
            break
    return run


def names_in(directory: Path) -> set[str]:
    """The names in a directory, and those of recordings in /tmp."""
    own = {path.name for path in directory.iterdir()}
    return own | {path.name for pattern in ("perf*.map", "jit-*") for path in Path("/tmp").glob(pattern)}


def pythons() -> dict[tuple[int, int], str]:
    """CPythons of PATH and of pyenv, by version.

    Debian has one that is too old for names, and package indexes have none: the tests that need another one are of
    machines that have it. `test_plan.py` covers the others.
    """
    found: dict[tuple[int, int], str] = {}
    folders = [*Path("~/.pyenv/versions").expanduser().glob("*/bin"), *map(Path, os.environ["PATH"].split(os.pathsep))]
    for folder in reversed(folders):
        for path in folder.glob("python3.[0-9]*"):
            number = re.fullmatch(r"python3\.(\d+)", path.name)
            if number is None or (3, int(number[1])) in found:
                continue
            if subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
                found[3, int(number[1])] = str(path)
    return found


PYTHONS = pythons()
