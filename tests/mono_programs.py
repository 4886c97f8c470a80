"""Programs under Mono's log profiler."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from needs import need
from truth.producers import run_tool

TRIES = 3
"""Now and then a thread of Mono's profiler never ends when the program does: it is run again."""
PATIENCE_S = 60
"""After which a program counts as one that does not end."""


class NeverEndsError(AssertionError):
    """No run of a program ended."""

    def __init__(self) -> None:
        super().__init__(f"mono did not end in {TRIES} runs")


def compiled(source: Path, directory: Path, *options: str) -> Path:
    """Compiles a program; skips the test where Mono is not installed."""
    need("mono", "mcs")
    program = directory / source.with_suffix(".exe").name
    run_tool(["mcs", *options, f"-out:{program}", source], directory)
    return program


def under_profiler(program: Path, log: Path, options: str) -> list[str | Path]:
    """The command that runs a program and writes its log."""
    return ["mono", f"--profile=log:{options},output={log}", program]


def recorded(program: Path, log: Path, options: str, *arguments: str, given: str = "") -> Path:
    """Runs a program with `given` as standard input until it ends; returns its log."""
    run_until_it_ends([*under_profiler(program, log, options), *arguments], log, given=given)
    return log


def run_until_it_ends(command: Sequence[str | Path], log: Path, *, given: str = "") -> None:
    """Runs a command that writes the log of a Mono program, until a run ends."""
    for _ in range(TRIES):
        log.unlink(missing_ok=True)
        try:
            done = subprocess.run(
                command,
                cwd=log.parent,
                input=given,
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE_S,
            )
        except subprocess.TimeoutExpired:
            continue
        assert done.returncode == 0, done.stderr
        return
    raise NeverEndsError


def grows(log: Path, num_bytes: int) -> bool:
    """Waits for a log of a running program to have that many bytes; whether it gets them."""
    end = time.monotonic() + PATIENCE_S
    while not log.exists() or log.stat().st_size < num_bytes:
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
