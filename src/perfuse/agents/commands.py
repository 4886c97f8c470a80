"""Command lines in processes of their own, with limits of time, memory and output."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MAX_OUTPUT_BYTES = 8 << 20
"""A command that writes more is ended: an answer has far less."""
_READ_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Limits:
    """What one call may use.

    Attributes:
        seconds: Time that passes.
        memory_bytes: Memory of its process.
        unpacked_bytes: What a compressed input may become; None for the usual limits.
        follow: Which files that recordings name are opened, as `--follow` has it.
    """

    seconds: float
    memory_bytes: int
    unpacked_bytes: int | None = None
    follow: str = "none"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command wrote, and how it ended.

    Attributes:
        exit_code: Its exit code; negative for the signal that ended it.
        out: Its standard output.
        notes: Its messages, on standard error.
        stopped: Why the server ended it: `time`, `output`, `cancelled`; None where it ended by itself.
    """

    exit_code: int
    out: str
    notes: str
    stopped: str | None


class Commands:
    """Runs command lines in a directory, one after the other; any thread may cancel the one that runs."""

    def __init__(self, directory: Path, limits: Limits) -> None:
        self._directory = directory
        self.limits = limits
        self._lock = threading.Lock()
        self._running: subprocess.Popen[bytes] | None = None
        self._is_cancelled = False

    def run(self, arguments: Sequence[str], deadline: float) -> Outcome:
        """Runs `perfuse ARGUMENTS` until a deadline on the monotonic clock."""
        cpu_seconds = str(int(self.limits.seconds * (os.cpu_count() or 1)) + 1)
        command = [sys.executable, "-P", "-m", "perfuse.agents.child", cpu_seconds, *arguments]
        with self._lock:
            if self._is_cancelled:
                return Outcome(0, "", "", "cancelled")
            process = self._running = subprocess.Popen(
                command,
                cwd=self._directory,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        try:
            out, notes, stopped = _collect(process, deadline)
        finally:
            with self._lock:
                self._running = None
            _kill(process)
            process.wait()
            for stream in (process.stdout, process.stderr):
                if stream:
                    stream.close()
        if self._is_cancelled:
            stopped = "cancelled"
        return Outcome(process.returncode, out.decode("utf-8", "replace"), notes.decode("utf-8", "replace"), stopped)

    def cancel(self) -> None:
        """Ends the command that runs; no other one starts before `reset`."""
        with self._lock:
            self._is_cancelled = True
            if self._running is not None:
                _kill(self._running)

    def reset(self) -> None:
        """Lets commands start again."""
        with self._lock:
            self._is_cancelled = False


def _environment() -> dict[str, str]:
    left_out = {"COLUMNS", "LINES", "FORCE_COLOR", "CLICOLOR_FORCE", "_PERFUSE_COMPLETE"}
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    if "PYTHONPATH" in kept:
        # A relative path would be one in the directory of the recordings, where Python must import nothing.
        folders = [os.path.abspath(one) for one in kept["PYTHONPATH"].split(os.pathsep)]  # noqa: PTH100 - not resolved
        kept["PYTHONPATH"] = os.pathsep.join(folders)
    return {**kept, "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}


def _collect(process: subprocess.Popen[bytes], deadline: float) -> tuple[bytes, bytes, str | None]:
    """Reads both outputs to their end; ends the process at the deadline or where it writes too much."""
    assert process.stdout is not None
    assert process.stderr is not None
    texts = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    out, notes = texts.values()
    stopped: str | None = None
    with selectors.DefaultSelector() as selector:
        for descriptor in texts:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map() and stopped is None:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                stopped = "time"
                break
            for key, _ in selector.select(left_s):
                data = os.read(key.fd, _READ_BYTES)
                if not data:
                    selector.unregister(key.fd)
                texts[key.fd] += data
                if len(texts[key.fd]) > MAX_OUTPUT_BYTES:
                    stopped = "output"
    if stopped is None:
        try:
            process.wait(max(deadline - time.monotonic(), 0.01))
        except subprocess.TimeoutExpired:
            stopped = "time"
    return bytes(out), bytes(notes), stopped


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Ends a process with those that it started."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
