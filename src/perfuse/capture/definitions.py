"""Lines of functions that a runtime names with their files only: where the sources define them.

A line is stated only where it is certain: the source is the one that ran, as it was not changed since the program
started, and one function of it has the name.
"""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import perfuse
from perfuse.capture.collecting import CollectedFile
from perfuse.capture.plan import Plan
from perfuse.capture.registry import RUNTIMES
from perfuse.capture.runtime import SourceDefinitions
from perfuse.capture.session import Outcome
from perfuse.errors import PerfuseError
from perfuse.table import Columns

CLOCK_STEP_S = 0.02
"""Times of files are those of the kernel's last clock tick."""
MOST_SOURCE_BYTES = 64 << 20
MOST_SECONDS = 60
MOST_FUNCTIONS = 150_000
CHANGED = "changed after the program started"
UNKNOWN = "of a process that sees other files, or of which it is not known when it started"


@dataclass(slots=True)
class NotedLines:
    """Where functions are defined.

    Attributes:
        lines: The line at which each function starts, by file and name.
        without: Why functions of a file have no lines.
    """

    lines: dict[str, dict[str, int]] = field(default_factory=dict)
    without: dict[str, str] = field(default_factory=dict)

    @property
    def changed(self) -> tuple[str, ...]:
        """Files that were changed after the program started."""
        return tuple(path for path, reason in self.without.items() if reason == CHANGED)


def defined_lines(plan: Plan, outcome: Outcome, files: Sequence[CollectedFile]) -> NotedLines:
    """Lines of the functions that the collected files of a run name."""
    found = NotedLines()
    for runtime in RUNTIMES:
        if runtime.definitions is not None:
            recorded = [
                str(executable) for one, executable in plan.runtimes if one is runtime and executable is not None
            ]
            _add_lines(found, runtime.definitions, [*recorded, sys.executable], plan, outcome, files)
    return found


def _add_lines(
    found: NotedLines,
    definitions: SourceDefinitions,
    interpreters: Sequence[str],
    plan: Plan,
    outcome: Outcome,
    files: Iterable[CollectedFile],
) -> None:
    named: dict[str, set[str]] = {}
    started: dict[str, float] = {}
    for file in files:
        names = _names_in(plan.directory / file.name, file.kind, definitions)
        since = _started_at(plan, outcome, file.pid)
        for path, functions in names.items():
            named.setdefault(path, set()).update(functions)
            if since is None:
                # A process in a container has its own file at a path that others have as well.
                found.without[path] = UNKNOWN
            else:
                started[path] = min(since, started.get(path, since))
    sources: dict[str, bytes] = {}
    num_bytes = num_functions = 0
    for path in sorted(named.keys() - found.without.keys()):
        num_functions += len(named[path])
        if num_bytes > MOST_SOURCE_BYTES or num_functions > MOST_FUNCTIONS:
            found.without[path] = "too many sources"
            continue
        source = _unchanged_since(path, started[path])
        if isinstance(source, bytes):
            sources[path] = source
            num_bytes += len(source)
        else:
            found.without[path] = source
    lines = _ask(interpreters, definitions.script, sources) if sources else {}
    for path in sources:
        if path in lines:
            found.lines[path] = {name: lines[path][name] for name in sorted(named[path] & lines[path].keys())}
        else:
            found.without[path] = "cannot be compiled"


def _names_in(path: Path, kind: str, definitions: SourceDefinitions) -> dict[str, set[str]]:
    """Functions by source file, of a dump or map."""
    names: dict[str, set[str]] = {}
    for text in _texts(path, kind, definitions):
        name = re.fullmatch(definitions.names, text)
        if name is not None:
            names.setdefault(name["path"], set()).add(name["name"])
    return names


def _texts(path: Path, kind: str, definitions: SourceDefinitions) -> Iterable[str]:
    """The names in a dump or map, as the runtime wrote them."""
    if kind == "map":
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                yield line.rstrip("\n").partition(" ")[2].partition(" ")[2]
        return
    try:
        dump = perfuse.open(path)
    except PerfuseError:
        return
    if dump.summary.producer == definitions.producer:
        yield from Columns(dump.tables["functions"])["linkage_name"]


def _started_at(plan: Plan, outcome: Outcome, pid: int) -> float | None:
    """When a process started to read its sources; None where that is not known, or it sees another file system."""
    seen = outcome.watcher.processes.get(pid)
    if seen is not None and seen.in_container:
        return None
    if plan.request.command and not plan.request.system_wide:
        return outcome.started_at
    return seen.started_at if seen is not None else None


def _unchanged_since(path: str, started_at: float) -> bytes | str:
    """The content of a file that was not changed since a time; else the reason why it is not used.

    The time of the last change of its inode cannot be set by a program, as that of its content can.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return "is not a file"
    try:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            return "is not a file"
        if before.st_size > MOST_SOURCE_BYTES:
            return "is too large"
        if max(before.st_mtime, before.st_ctime, os.lstat(path).st_ctime) > started_at - CLOCK_STEP_S:
            return CHANGED
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(MOST_SOURCE_BYTES + 1)
        after = os.fstat(descriptor)
    except OSError:
        return "cannot be read"
    finally:
        os.close(descriptor)
    is_same = (before.st_mtime_ns, before.st_ctime_ns) == (after.st_mtime_ns, after.st_ctime_ns)
    return content if is_same and len(content) == before.st_size else CHANGED


def _ask(interpreters: Iterable[str], script: str, sources: Mapping[str, bytes]) -> dict[str, dict[str, int]]:
    """The lines of the functions of sources, as the first interpreter that can run the script prints them.

    A source that it cannot read is left out.
    """
    question = json.dumps({path: source.decode("latin-1") for path, source in sources.items()})
    for interpreter in interpreters:
        try:
            done = subprocess.run(
                (interpreter, "-I", "-S", "-c", script),
                input=question.encode("ascii"),
                capture_output=True,
                timeout=MOST_SECONDS,
                check=True,
            )
            answer: dict[str, dict[str, int]] = json.loads(done.stdout)
        except (OSError, ValueError, subprocess.SubprocessError):
            continue
        return answer
    return {}
