"""The perf that is installed: its version, what it was built with, and its options for a recording."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perfuse.capture.runtime import Stacks
from perfuse.capture.versions import output_of, version_in

FIRST_WITH_CONTROL = (5, 10)
"""`--control=fd:`, by which sampling starts before the program does."""
STACK_BYTES = 16384
"""Size of a copied stack: what CPython's frames need; perf's own default is half of it."""
MOST_STACK_BYTES = 65528
HZ = 999
"""Out of step with what happens every millisecond."""
HZ_OF_COPIES = 499
BUFFER_OF_COPIES = "8M"
"""Per processor; perf's own half megabyte overflows at 16 KiB a sample."""


@dataclass(frozen=True, slots=True)
class Perf:
    """A perf program.

    Attributes:
        path: The program.
        version: Its version.
        features: What it was built with, as `perf version --build-options` names it.
    """

    path: str
    version: tuple[int, ...]
    features: frozenset[str]


@dataclass(frozen=True, slots=True)
class PerfOption:
    """An option of `perf record`, and why it is there."""

    words: tuple[str, ...]
    why: str


def find_perf(path: str | None) -> Perf | None:
    """The perf of that path, or of PATH; None where there is none that runs."""
    found = path or shutil.which("perf")
    if found is None:
        return None
    text = output_of((found, "version", "--build-options")) or output_of((found, "--version"))
    if not text:
        return None
    features = frozenset(re.findall(r"^\s*([\w-]+):\s*\[\s*on\s*\]", text, re.MULTILINE))
    return Perf(found, version_in(text), features)


def options(
    perf: Perf,
    *,
    directory: Path,
    event: str,
    hz: int | None,
    stacks: Stacks,
    stack_bytes: int,
    off_cpu: bool,
    more: Sequence[str],
) -> list[PerfOption]:
    """The options of a recording, apart from what is recorded."""
    root = os.geteuid() == 0
    copies = stacks == "dwarf"
    chosen = [
        PerfOption(("-e", event), _EVENTS.get(event.removesuffix(":u"), "the event that was asked for")),
        PerfOption(("-F", str(hz or (HZ_OF_COPIES if copies else HZ))), "samples per second and thread"),
        PerfOption(("-k", "mono"), "the clock of dumps"),
    ]
    if copies:
        chosen.append(
            PerfOption(("--call-graph", f"dwarf,{stack_bytes}"), "copies of stacks, which perfuse unwinds afterwards")
        )
        if "zstd" in perf.features:
            chosen.append(PerfOption(("-z",), "compresses them"))
        if root:
            chosen.append(PerfOption(("-m", BUFFER_OF_COPIES), "buffers that hold them"))
    else:
        chosen.append(PerfOption(("-g",), "callers by frame pointers"))
    if off_cpu:
        chosen.append(PerfOption(("--off-cpu",), "time in which threads wait"))
    if root:
        chosen.append(PerfOption(("--namespaces",), "process ids in containers"))
    chosen.append(PerfOption(("--sample-cpu",), "which thread was on which processor"))
    chosen.append(PerfOption(("-N",), "no copies of programs in ~/.debug"))
    chosen.append(PerfOption(("-o", str(directory / "perf.data")), "the recording"))
    if more:
        chosen.append(PerfOption(tuple(more), "given with --perf-option"))
    return chosen


_EVENTS = {"cycles": "processor cycles", "cpu-clock": "time on the processor: no cycle counter is available"}
