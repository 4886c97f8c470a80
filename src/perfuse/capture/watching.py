"""What can be seen of processes only while they run: their users, their pid namespaces, and dumps in containers.

A container's private file system is gone with its last process. A descriptor that was opened through `/proc/PID/root`
still reads a dump afterwards.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

POLL_S = 0.1
MOST_DESCRIPTORS = 256
_MOST_BETWEEN_CLOCKS_S = 0.001
_DUMP = re.compile(r"/jit-[\w-]*\.dump$")


@dataclass(slots=True)
class WatchedProcess:
    """A process that was seen.

    Attributes:
        pid: Its id.
        own_pid: Its id in its own pid namespace.
        uid: Its user.
        started_at: When it started, or the first process of the same program that it was forked from, in seconds since
            1970; None where that was not seen.
        directory: Its current directory, when it was last seen.
        in_container: Whether it sees another file system.
        dumps: Open dumps of a process in a container, by their path there.
        map: Its open perf map, where it is in a container.
    """

    pid: int
    own_pid: int
    uid: int
    started_at: float | None = None
    directory: str | None = None
    in_container: bool = False
    dumps: dict[str, int] = field(default_factory=dict)
    map: int | None = None


class Watcher:
    """Looks at processes and their children, ten times per second.

    Attributes:
        processes: The processes that were seen, by id.
    """

    def __init__(self, pids: Iterable[int]) -> None:
        self.processes: dict[int, WatchedProcess] = {}
        self._roots = tuple(pids)
        self._alive: set[int] = set(self._roots)
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._own = _file_system_of("self")
        self._num_descriptors = 0

    def start(self) -> None:
        """Starts to look."""
        self._thread = threading.Thread(target=self._watch, daemon=True, name="perfuse-record")
        self._thread.start()

    def stop(self) -> None:
        """Ends it."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def close(self) -> None:
        """Closes the dumps that were opened."""
        for process in self.processes.values():
            for descriptor in (*process.dumps.values(), *([] if process.map is None else [process.map])):
                with contextlib.suppress(OSError):
                    os.close(descriptor)
            process.dumps.clear()
            process.map = None

    def _watch(self) -> None:
        while True:
            self.look()
            if self._stopped.wait(POLL_S):
                return

    def look(self) -> None:
        """Looks once."""
        waiting, seen = list(self._alive), set[int]()
        while waiting:
            pid = waiting.pop()
            if pid in seen:
                continue
            if not self._see(pid):
                self._alive.discard(pid)
                continue
            seen.add(pid)
            waiting += _children(pid)
        # A process whose parent has ended is still known.
        self._alive |= seen

    def _see(self, pid: int) -> bool:
        """Looks at a process; returns whether it is there."""
        process = self.processes.get(pid)
        if process is None:
            process = _new(pid)
            if process is None:
                return False
            self.processes[pid] = process
        try:
            process.directory = os.readlink(f"/proc/{pid}/cwd")  # noqa: PTH115 - of a process, not a path
            process.in_container = _file_system_of(str(pid)) != self._own
        except OSError:
            return Path(f"/proc/{pid}").exists()
        if process.in_container and self._num_descriptors < MOST_DESCRIPTORS:
            self._open_dumps(process)
        return True

    def _open_dumps(self, process: WatchedProcess) -> None:
        root = f"/proc/{process.pid}/root"
        for path in _mapped_dumps(process.pid):
            if path not in process.dumps:
                descriptor = self._opened(root + path)
                if descriptor is not None:
                    process.dumps[path] = descriptor
        self._open_map(process, f"{root}/tmp/perf-{process.own_pid}.map")

    def _open_map(self, process: WatchedProcess, path: str) -> None:
        """Opens the map that is there now: a container gets its own /tmp after its first process has started."""
        try:
            status = Path(path).lstat()
        except OSError:
            return
        if process.map is not None and os.path.samestat(os.fstat(process.map), status):
            return
        descriptor = self._opened(path)
        if descriptor is not None and process.map is not None:
            os.close(process.map)
            self._num_descriptors -= 1
        process.map = process.map if descriptor is None else descriptor

    def _opened(self, path: str) -> int | None:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        self._num_descriptors += 1
        return descriptor


def _new(pid: int) -> WatchedProcess | None:
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    numbers = fields.get("NSpid", str(pid)).split()
    return WatchedProcess(pid, int(numbers[-1]), int(fields.get("Uid", "0").split()[0]), _started_at(pid))


def _started_at(pid: int) -> float | None:
    """When a process started, or the first one of the same program that it was forked from."""
    started_at: float | None = None
    program = _program(pid)
    booted_at = _booted_at()
    while program is not None and _program(pid) == program:
        try:
            # The name, in parentheses, may contain anything.
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            pid, started_at = int(fields[1]), booted_at + int(fields[19]) / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError, IndexError):
            break
    return started_at


def _booted_at() -> float:
    """When the machine started, in seconds since 1970."""
    while True:
        before = time.time()
        booted_at = before - time.clock_gettime(time.CLOCK_BOOTTIME)
        # Where this process was suspended between the clocks, they are not of the same time.
        if time.time() - before < _MOST_BETWEEN_CLOCKS_S:
            return booted_at


def _program(pid: int) -> str | None:
    try:
        return os.readlink(f"/proc/{pid}/exe")  # noqa: PTH115 - of a process, not a path
    except OSError:
        return None


def _file_system_of(process: str) -> tuple[str, str]:
    """The mount namespace and the root directory of a process."""
    return os.readlink(f"/proc/{process}/ns/mnt"), os.readlink(f"/proc/{process}/root")  # noqa: PTH115


def _children(pid: int) -> list[int]:
    found = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError, ValueError):
                found += [int(word) for word in (task / "children").read_text(encoding="ascii").split()]
    except OSError:
        return []
    return found


def _mapped_dumps(pid: int) -> set[str]:
    """The dumps that a process has mapped, as it names them."""
    try:
        text = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return set()
    paths = (line.split(None, 5)[5] for line in text.splitlines() if line.count(" ") >= 5 and "/" in line)
    return {path for path in paths if _DUMP.search(path)}
