"""After a run: brings the dumps and maps that runtimes wrote into the recording's directory, and removes the originals.

Names such as /tmp/perf-PID.map can be foreseen by anybody: a file is taken only where it is a regular file, of the
process's user, and was written during the run. It is removed only where it was not there before.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from perfuse.capture.registry import runtime_that_maps
from perfuse.capture.runtime import Runtime
from perfuse.capture.watching import WatchedProcess
from perfuse.errors import PerfuseError

SLACK_S = 2.0
"""Clocks of file systems may be late by as much."""
MAPS = Path("/tmp")
"""Where runtimes write perf maps, whatever TMPDIR is."""


@dataclass(frozen=True, slots=True)
class CollectedFile:
    """A file of a runtime that was brought into the directory.

    Attributes:
        name: Its name there.
        original: Where the runtime wrote it.
        pid: The process that wrote it, outside of containers.
        kind: `dump` or `map`.
    """

    name: str
    original: str
    pid: int
    kind: str


@dataclass(slots=True)
class RecordedProcess:
    """A process that was sampled.

    Attributes:
        pid: Its id.
        own_pid: Its id in its own pid namespace; None where that was not seen.
        name: Its name.
        runtime: Title of its runtime; None for native code alone.
        files: Names of its files in the directory.
        advice: Why its functions have no names, and what to do; None where there is nothing to say.
    """

    pid: int
    own_pid: int | None
    name: str | None
    runtime: str | None
    files: list[str] = field(default_factory=list)
    advice: str | None = None


@dataclass(frozen=True, slots=True)
class SampledProcess:
    """What a perf.data has about a process: its name, base names of the files it mapped, dumps that it announced."""

    pid: int
    name: str | None
    mapped: frozenset[str]
    dumps: tuple[str, ...]


class Before:
    """Files that were there before the run, which are never removed."""

    def __init__(self, directories: Iterable[Path]) -> None:
        self._known: set[tuple[int, int]] = set()
        for directory in directories:
            with contextlib.suppress(OSError), os.scandir(directory) as entries:
                for entry in entries:
                    if _OF_A_RUNTIME.match(entry.name):
                        with contextlib.suppress(OSError):
                            status = entry.stat(follow_symlinks=False)
                            self._known.add((status.st_dev, status.st_ino))

    def has(self, status: os.stat_result) -> bool:
        """Whether a file was there."""
        return (status.st_dev, status.st_ino) in self._known


_OF_A_RUNTIME = re.compile(r"(jit-.*\.dump|perf(info)?-\d+\.map|isolate-.*\.log)$")


def sampled_processes(perf_data: Path, held: int | None) -> list[SampledProcess]:
    """The processes of a perf.data.

    Args:
        perf_data: The recording.
        held: The process that perf was attached to before it executed its program: what it had mapped until then is
            not the program's.

    Raises:
        UnreadableInput: It cannot be read.
    """
    import perfuse
    from perfuse.fusing.facts import SamplingFacts
    from perfuse.table import Columns

    recording = perfuse.open(perf_data)
    # Not from the cache, which would keep the file open.
    facts = SamplingFacts.of.__wrapped__(recording)
    processes = Columns(recording.tables["processes"])
    mappings = Columns(recording.tables["mappings"])
    mapped: dict[int, set[str]] = {}
    keys_before = {key for key, pid in zip(processes["process_id"], processes["pid"], strict=True) if pid == held}
    for key, path, start in zip(mappings["process_id"], mappings["path"], mappings["start_ns"], strict=True):
        if path and not (start is None and key in keys_before):
            mapped.setdefault(key, set()).add(path.rsplit("/", 1)[-1])
    by_pid: dict[int, tuple[str | None, set[str]]] = {}
    for key, pid, name in zip(processes["process_id"], processes["pid"], processes["name"], strict=True):
        # A process that executes another program is a further row of the same pid; the last one stays.
        _, files = by_pid.setdefault(pid, (None, set()))
        by_pid[pid] = (name, files | mapped.get(key, set()))
    dumps: dict[int, list[str]] = {}
    for marker in facts.markers:
        dumps.setdefault(marker.pid, []).append(marker.path)
    return [
        SampledProcess(pid, name, frozenset(files), tuple(dict.fromkeys(dumps.get(pid, ()))))
        for pid, (name, files) in sorted(by_pid.items())
        if pid > 0 and pid in facts.pids
    ]


class Collector:
    """Brings files of processes into a directory.

    Attributes:
        files: What was brought.
        lost: Why dumps that processes announced are missing, by pid.
        may_remove: Whether originals are removed: the processes ended with the recording.
    """

    def __init__(
        self,
        directory: Path,
        *,
        seen: Mapping[int, WatchedProcess],
        before: Before,
        started_at: float,
        may_remove: bool,
        system_wide: bool,
    ) -> None:
        self.files: list[CollectedFile] = []
        self.lost: dict[int, str] = {}
        self._directory = directory
        self._seen = seen
        self._before = before
        self._started_at = started_at
        self.may_remove = may_remove
        self._system_wide = system_wide
        self._names: set[str] = set()

    def collect(self, process: SampledProcess, runtime: Runtime | None) -> None:
        """Brings the dumps that a process announced, and its map."""
        seen = self._seen.get(process.pid)
        for path in process.dumps:
            self._bring_dump(process.pid, path, seen)
        descriptor = seen.map if seen is not None else None
        is_elsewhere = seen is not None and seen.in_container
        if descriptor is None and not is_elsewhere:
            for folder in (MAPS, self._directory / "runtime-files"):
                if self._bring(folder / f"perf-{process.pid}.map", process.pid, "map"):
                    break
        elif descriptor is not None and seen is not None and self._is_acceptable(os.fstat(descriptor), process.pid):
            self._take(descriptor, f"/tmp/perf-{seen.own_pid}.map", process.pid, "map")
        if runtime is not None and self._may_remove_of(process.pid) and not is_elsewhere:
            self._remove_leftovers(process, runtime)

    def _may_remove_of(self, pid: int) -> bool:
        """Whether a process is of this run; in a recording of the whole machine, only those that were seen are."""
        return self.may_remove and (not self._system_wide or pid in self._seen)

    def _bring_dump(self, pid: int, path: str, seen: WatchedProcess | None) -> None:
        if seen is not None and path in seen.dumps:
            self._take(seen.dumps[path], path, pid, "dump")
            return
        if seen is not None and seen.in_container:
            self.lost[pid] = f"{path} was in a container that ended before the dump was seen"
        elif not self._bring(Path(path), pid, "dump"):
            self.lost.setdefault(pid, f"{path} is not there, or was not written by this process")

    def _bring(self, path: Path, pid: int, kind: str) -> bool:
        """Brings a file of the file system, and removes the original; returns whether it did."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            status = os.fstat(descriptor)
            if not self._is_acceptable(status, pid):
                return False
            removes = self._may_remove_of(pid) and not self._before.has(status)
            if not self._take(descriptor, str(path), pid, kind, moved=path if removes else None):
                return False
            if removes:
                with contextlib.suppress(OSError):
                    still = path.lstat()
                    if (still.st_dev, still.st_ino) == (status.st_dev, status.st_ino):
                        path.unlink()
        finally:
            os.close(descriptor)
        return True

    def _is_acceptable(self, status: os.stat_result, pid: int) -> bool:
        seen = self._seen.get(pid)
        owners = {os.geteuid(), 0, *([seen.uid] if seen is not None else [])}
        is_recent = not self._may_remove_of(pid) or status.st_mtime >= self._started_at - SLACK_S
        return stat.S_ISREG(status.st_mode) and status.st_uid in owners and is_recent

    def _take(self, descriptor: int, original: str, pid: int, kind: str, moved: Path | None = None) -> bool:
        """Copies an open file into the directory, or moves it there."""
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return False
        name = self._free_name(pid, kind)
        target = self._directory / name
        if not (moved is not None and _moved(moved, target, descriptor)):
            with open(os.dup(descriptor), "rb") as source, target.open("xb") as out:  # noqa: PTH123 - a descriptor
                source.seek(0)
                shutil.copyfileobj(source, out, 1 << 20)
        if kind == "dump" and not self._is_of(target, pid):
            target.unlink()
            self.lost[pid] = f"{original} was written by another process"
            return False
        self._names.add(name)
        self.files.append(CollectedFile(name, original, pid, kind))
        return True

    def _is_of(self, dump: Path, pid: int) -> bool:
        """Whether the header of a dump has the process's id; a file that is not a dump is of nobody."""
        import perfuse
        from perfuse.fusing.matching import recorded_pid

        try:
            recording = perfuse.open(dump)
        except PerfuseError:
            return False
        seen = self._seen.get(pid)
        known = {pid, *([seen.own_pid] if seen is not None else [])}
        # The id in a namespace that was not seen cannot be compared.
        return recording.role == "code_dump" and (seen is None or recorded_pid(recording) in known)

    def _free_name(self, pid: int, kind: str) -> str:
        if kind == "map":
            return f"perf-{pid}.map"
        name, number = f"jit-{pid}.dump", 1
        while name in self._names:
            number += 1
            name = f"jit-{pid}-{number}.dump"
        return name

    def _remove_leftovers(self, process: SampledProcess, runtime: Runtime) -> None:
        """Removes what a runtime left beside its dump."""
        folders = {str(MAPS), *(str(Path(path).parent) for path in process.dumps)}
        seen = self._seen.get(process.pid)
        if seen is not None and seen.directory:
            folders.add(seen.directory)
        own_pid = seen.own_pid if seen is not None else process.pid
        for folder in folders:
            for pattern in runtime.leftovers:
                # A folder of this file system, below which only names with the process's id are looked at.
                for path in Path(folder).glob(pattern.format(pid=own_pid)):
                    with contextlib.suppress(OSError):
                        status = path.lstat()
                        if self._is_acceptable(status, process.pid) and not self._before.has(status):
                            path.unlink()


def _moved(path: Path, target: Path, descriptor: int) -> bool:
    """Moves a file within its file system; False where it has to be copied."""
    try:
        path.rename(target)
        moved = target.lstat()
    except OSError:
        return False
    opened = os.fstat(descriptor)
    if (moved.st_dev, moved.st_ino) == (opened.st_dev, opened.st_ino):
        return True
    target.unlink()
    return False


def describe(
    processes: Iterable[SampledProcess], collector: Collector, seen: Mapping[int, WatchedProcess]
) -> Iterator[RecordedProcess]:
    """Collects the files of each process, and states which of them stay without names."""
    for process in processes:
        runtime = runtime_that_maps(process.mapped)
        collector.collect(process, runtime)
        own = [file for file in collector.files if file.pid == process.pid]
        files = [file.name for file in own]
        has_dump = any(file.kind == "dump" for file in own)
        advice = collector.lost.get(process.pid)
        # A forked process has the mappings of its parent, and the names of that one's dump.
        is_forked = not process.dumps and any(_OF_A_RUNTIME.match(name) for name in process.mapped)
        if advice is None and runtime is not None and not files and runtime.advice and not is_forked:
            advice = f"{runtime.title} wrote no names: {runtime.advice}"
        if advice is None and runtime is not None and runtime.while_running and has_dump and not collector.may_remove:
            advice = runtime.while_running
        watched = seen.get(process.pid)
        yield RecordedProcess(
            pid=process.pid,
            own_pid=watched.own_pid if watched else None,
            name=process.name,
            runtime=runtime.title if runtime else None,
            files=files,
            advice=advice,
        )
