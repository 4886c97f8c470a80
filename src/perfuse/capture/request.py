"""What a user asks `perfuse record` for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from perfuse.capture.perf import MOST_STACK_BYTES, STACK_BYTES
from perfuse.errors import UsageError, nearest_hint

Recorder = Literal["perf", "xray", "mono"]
"""What records: perf samples any program; XRay and Mono's log profiler record every call or event of theirs."""
STACKS = ("auto", "fp", "dwarf")
MONO_EVENTS = ("samples", "calls", "allocations", "heap", "locks", "exceptions")


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be recorded, and how.

    Attributes:
        command: The program with its arguments; empty for `pids` and `system_wide`.
        pids: Running processes.
        system_wide: All processes of the machine.
        recorder: What records; None for the one that the program is made for.
        duration_s: Seconds until the recording ends; None for the end of the program.
        hz: Samples per second and thread; None for the default.
        stacks: `auto`, `fp`, `dwarf` or `dwarf,BYTES`.
        runtimes: Names of runtimes to prepare; None for those that are detected.
        off_cpu: Whether the time in which threads wait is recorded too.
        event: perf's event; None for the best one.
        mono_events: What Mono's log profiler records.
        perf: The perf program; None for that of PATH.
        perf_options: Further options for perf.
        keep: Whether files of runtimes also stay where they were written.
    """

    command: tuple[str, ...] = ()
    pids: tuple[int, ...] = ()
    system_wide: bool = False
    recorder: Recorder | None = None
    duration_s: float | None = None
    hz: int | None = None
    stacks: str = "auto"
    runtimes: tuple[str, ...] | None = None
    off_cpu: bool = False
    event: str | None = None
    mono_events: tuple[str, ...] = ()
    perf: str | None = None
    perf_options: tuple[str, ...] = ()
    keep: bool = False

    def check(self) -> None:
        """Refuses what cannot be combined.

        Raises:
            UsageError: The request contradicts itself, or names something unknown.
        """
        if not self.command and not self.pids and not self.system_wide:
            hint = "perfuse record -- CMD, or --pid PID, or --system-wide"
            raise UsageError("nothing to record", hint=hint)
        if self.pids and (self.command or self.system_wide):
            raise UsageError("--pid records running processes: it takes neither a command nor --system-wide")
        if self.recorder in ("xray", "mono"):
            if not self.command:
                raise UsageError(f"--with {self.recorder} starts a program: give its command after --")
            given = {
                "--frequency": self.hz,
                "--stacks": self.stacks != "auto",
                "--off-cpu": self.off_cpu,
                "--event": self.event,
                "--system-wide": self.system_wide,
                "--perf-option": self.perf_options,
                "--runtime": self.runtimes,
            }
            refused = [option for option, value in given.items() if value]
            if refused:
                raise UsageError(f"{', '.join(refused)}: of perf, not of --with {self.recorder}")
        if self.mono_events and self.recorder != "mono":
            raise UsageError("--what is about Mono's log profiler: add --with mono")
        if self.runtimes is not None:
            self._check_runtimes()
        self.stack_bytes()

    def _check_runtimes(self) -> None:
        from perfuse.capture.registry import RUNTIMES

        names = [runtime.name for runtime in RUNTIMES]
        for name in self.runtimes or ():
            if name not in names:
                raise UsageError(f"no runtime {name!r}", hint=nearest_hint(name, [*names, "none", "all"]))

    def stack_bytes(self) -> tuple[str, int]:
        """The kind of stacks, and the size of a copied one.

        Raises:
            UsageError: The option is none of those that perf takes.
        """
        kind, _, size = self.stacks.partition(",")
        if kind not in STACKS or (size and kind != "dwarf"):
            raise UsageError(f"no stacks {self.stacks!r}", hint="auto, fp, dwarf, or dwarf,BYTES")
        if not size:
            return kind, STACK_BYTES
        if not re.fullmatch(r"\d+", size) or not 0 < int(size) <= MOST_STACK_BYTES or int(size) % 8:
            hint = f"BYTES is a multiple of 8 up to {MOST_STACK_BYTES:,}"
            raise UsageError(f"{size!r} is not a size of a copied stack", hint=hint)
        return kind, int(size)
